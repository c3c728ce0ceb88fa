// One word in two sentences: move a word in the plane, and its meaning turns.
import { dot, matmul, softmax, spellDot, spellSoftmax } from "./core.js";
import { Lab, clamp, make, put, svg, way, write } from "./ui.js";

const TRAITS = ["vectors", "sentences", "word", "axes"];
const MOST = 2.5;
const [WIDTH, HEIGHT, LEFT, BOTTOM, UNIT_X, UNIT_Y] = [340, 250, 26, 222, 106, 78];
const HINT =
  "Drag a word, or push it with the arrow keys. Point at a bar to read its sum.";

const point = ([x, y]) => [LEFT + UNIT_X * x, BOTTOM - UNIT_Y * y];
const two = (vector) => `(${vector.map((x) => x.toFixed(2)).join(", ")})`;

// Scores, weights and context vector of one word of a sentence.
const look = (vectors, words, word) => {
  const x = words.map((name) => vectors[name]);
  const scores = x.map((row) => dot(vectors[word], row));
  const weights = softmax(scores);
  return { x, scores, weights, z: matmul([weights], x)[0] };
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "One word, two meanings", TRAITS);
    lab.root.classList.add("al-bank");
    const word = lab.get("word");
    const axes = lab.get("axes");
    const sentences = lab.get("sentences").map((text) => text.split(" "));
    // As they are read: of two words in one place, the later one is on top.
    const names = [...new Set([...sentences.flat(), ...Object.keys(lab.get("vectors"))])];
    lab.param("vectors", (text) => {
      const given = text.split(";").map((part) => part.split(":"));
      const found = Object.fromEntries(given.map(([name, at = ""]) => [name, at.split(",").map(Number)]));
      const good = Object.entries(found).every(([name, at]) =>
        names.includes(name) && at.length === 2 && at.every((x) => x >= 0 && x <= MOST));
      return good ? { ...lab.first.vectors, ...found } : undefined;
    }, (vectors) => names.filter((name) => String(vectors[name]) !== String(lab.first.vectors[name]))
      .map((name) => `${name}:${vectors[name].join()}`).join(";"));
    let now = [];

    // Of a word j in sentence i, or of the sum where j is -1.
    lab.tells(HINT, (i, j) => {
      const { x, scores, weights } = now[i];
      if (j >= 0) {
        const product = spellDot(lab.get("vectors")[word], x[j]);
        return `${word} · ${sentences[i][j]}: ${product}; weight ${spellSoftmax(scores, j)}`;
      }
      const sums = axes.map((axis, k) => `${axis}: ${spellDot(weights, x.map((row) => row[k]))}`);
      return sums.join("; ");
    });
    const inspect = (i, j) => lab.inspect(i, j)();

    // ---- the sentences, a bar for each weight ----

    // One tab stop a sentence; the arrow keys lead from bar to bar.
    const rows = sentences.map((words, i) => {
      const bars = words.map(() => make("span", { class: "bk-bar" }));
      const told = words.map(() => make("span", { class: "bk-number" }, ""));
      const buttons = words.map((text, j) =>
        make(
          "button",
          { type: "button", class: "bk-word", tabindex: "-1",
            focus: () => inspect(i, j), pointerover: () => inspect(i, j) },
          make("span", { class: "bk-track" }, bars[j]), make("span", {}, text), told[j]
        )
      );
      const z = make("button", {
        type: "button", class: "bk-z", tabindex: "-1",
        focus: () => inspect(i, -1), pointerover: () => inspect(i, -1),
      }, "");
      const stops = [z, ...buttons];
      stops[0].tabIndex = 0;
      const move = (event) => {
        const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const next = way && stops[stops.indexOf(document.activeElement) + way];
        if (!next) return;
        event.preventDefault();
        stops.forEach((stop) => (stop.tabIndex = stop === next ? 0 : -1));
        next.focus();
      };
      const element = make(
        "div",
        { class: "bk-sentence", role: "group", "aria-label": `Sentence ${i + 1}: ${words.join(" ")}`, keydown: move },
        make("p", {}, make("b", {}, String(i + 1)), ` ${word} becomes `, z),
        make("div", { class: "bk-words" }, ...buttons)
      );
      return { element, bars, told, z };
    });

    // ---- the plane, a handle for each word ----

    const ways = sentences.map(() => svg("path", { class: "bk-way" }));
    const ends = sentences.map((_, i) =>
      svg("g", {}, svg("circle", { class: "bk-end", r: 9 }),
        svg("text", { class: "bk-which", y: 4, "text-anchor": "middle" }, String(i + 1)))
    );
    const plane = svg(
      "svg",
      { class: "bk-plane", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group",
        "aria-label": `A plane of two meanings, ${axes.join(" and ")}` },
      svg("path", { class: "bk-axis", d: `M${LEFT} 8V${BOTTOM}H${WIDTH - 4}` }),
      svg("text", { x: WIDTH - 4, y: HEIGHT - 8, "text-anchor": "end" }, `${axes[0]} →`),
      svg("text", { x: LEFT + 6, y: 16 }, `↑ ${axes[1]}`),
      ...ways
    );
    const move = (name, vector) => lab.set({
      vectors: { ...lab.get("vectors"), [name]: vector.map((x) => clamp(x, 0, MOST)) },
    });
    const follow = (event, name) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
      const steps = [(at.x - LEFT) / UNIT_X, (BOTTOM - at.y) / UNIT_Y];
      move(name, steps.map((x) => Math.round(20 * x) / 20));
    };
    const push = (event, name) => {
      const where = way(event);
      if (!where) return;
      event.preventDefault();
      const far = event.shiftKey ? 0.5 : 0.1;
      move(name, lab.get("vectors")[name].map((x, k) => Math.round(100 * (x + far * where[k])) / 100));
    };
    const handles = names.map((name) => {
      const label = svg("text", {}, name);
      const ground = svg("rect", { class: "bk-ground", height: 24, width: 9 * name.length + 8 });
      const element = svg(
        "g",
        { class: name === word ? "bk-handle bk-own" : "bk-handle", tabindex: 0, role: "button",
          "aria-roledescription": "movable word",
          pointerdown: (event) => {
            event.preventDefault();
            element.focus();
            element.setPointerCapture(event.pointerId);
          },
          // Else the page would scroll; touch-action does not reach into an SVG.
          touchstart: (event) => event.preventDefault(),
          pointermove: (event) => element.hasPointerCapture(event.pointerId) && follow(event, name),
          keydown: (event) => push(event, name) },
        ground, svg("circle", { class: "bk-ground", r: 14 }), svg("circle", { class: "bk-dot", r: 5 }), label
      );
      plane.append(element);
      return { name, element, label, ground };
    });
    plane.append(...ends);
    lab.resetButton();
    lab.stages.append(
      make("div", { class: "bk-both" }, plane, make("div", { class: "bk-sentences" }, ...rows.map((row) => row.element)))
    );

    // Words in one place have their names above each other.
    const placeWords = (vectors) => {
      const taken = [];
      for (const { name, element, label, ground } of handles) {
        const [x, y] = point(vectors[name]);
        const above = taken.filter(([a, b]) => Math.abs(a - x) < 60 && Math.abs(b - y) < 16).length;
        taken.push([x, y]);
        put(element, { transform: `translate(${x} ${y})` });
        const left = x > WIDTH - 80;
        const height = -6 - 20 * above;
        put(label, { "text-anchor": left ? "end" : "start", x: left ? -10 : 10, y: height });
        put(ground, { x: left ? -10 - Number(ground.getAttribute("width")) : 6, y: height - 17 });
        const numbers = axes.map((axis, k) => `${axis} ${vectors[name][k].toFixed(1)}`);
        element.setAttribute("aria-label", `${name}: ${numbers.join(", ")}`);
      }
    };
    const meaning = (z) => {
      const gap = z[0] - z[1];
      return Math.abs(gap) < 0.1 ? "neither way" : `towards ${axes[gap > 0 ? 0 : 1]}`;
    };

    return lab.start(() => {
      const vectors = lab.get("vectors");
      now = sentences.map((words) => look(vectors, words, word));
      placeWords(vectors);
      const start = point(vectors[word]);
      now.forEach(({ weights, z }, i) => {
        const end = point(z);
        ways[i].setAttribute("d", `M${start.join(" ")}L${end.join(" ")}`);
        ends[i].setAttribute("transform", `translate(${end.join(" ")})`);
        weights.forEach((w, j) => {
          rows[i].bars[j].style.height = `${(100 * w).toFixed(1)}%`;
          write(rows[i].told[j], w.toFixed(2));
        });
        write(rows[i].z, two(z));
      });
      const turns = now.map(({ z }) => meaning(z));
      const turned = turns.map((way, i) => `In sentence ${i + 1}, ${word} turns ${way}`);
      const [first, second] = turns;
      const same = first === second;
      lab.ask(`Move one word, and let ${word} turn the same way in both sentences.`, same && first !== "neither way",
        `Done: both sentences now turn ${word} ${first}. One cue that changes sides is enough.`);
      write(lab.summary, `${turned[0]}; ${turned[1][0].toLowerCase()}${turned[1].slice(1)}.${same ? " One meaning is left." : ""}`);
    });
  },
};
