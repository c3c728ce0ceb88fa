// A head of a trained model reads a sentence: ask a word, exchange one, and see it look.
import { dot, matmul, spellSoftmax } from "./core.js";
import { Lab, argmax, byWeight, clamp, grid, make, range, svg, write } from "./ui.js";

const TRAITS = ["scenes", "scene", "exchanged", "asked", "averaged"];
const DOES = {
  "3.1": "from they or it to what it stands for",
  "2.9": "at the same word, earlier",
  "1.6": "from a bracket to its opening",
  "0.2": "at the word before",
};

// ---- the machine: from tokens to the output, with the head's own numbers ----

const WIDTH = 32; // of one head
const HEADS_OF_LAYER = 12;
const unpack = ({ scale, steps }) => {
  const all = Int8Array.from(atob(steps), (letter) => letter.charCodeAt(0));
  return range(all.length / WIDTH).map((i) => Array.from(all.slice(i * WIDTH, (i + 1) * WIDTH), (x) => x * scale));
};

// A vector as a strip of cells: the stronger the color, the larger the number; gray is negative.
const strip = (kind, label) => {
  const cells = range(WIDTH).map((x) => svg("rect", { x, width: 1, height: 1 }));
  const element = svg("svg", { class: `mc-strip ${kind}`, viewBox: `0 0 ${WIDTH} 1`,
    preserveAspectRatio: "none", role: "img", "aria-label": label }, ...cells);
  const update = (vector) => {
    const most = Math.max(...vector.map(Math.abs), 1e-9);
    cells.forEach((cell, i) => {
      cell.style.setProperty("--tone", `${(100 * Math.abs(vector[i])) / most}%`);
      cell.classList.toggle("mc-below", vector[i] < 0);
    });
  };
  return { element, update };
};

const part = (text, ...content) => make("div", { class: "mc-step" }, make("p", {}, text), ...content);
const line = (...cells) => make("tr", {}, ...cells);
const cell = (wide, ...content) => make("td", { class: "mc-plain", colspan: wide }, ...content);

// The rows are words; what is computed of each stands in its row, from left to right.
const machine = (lab) => {
  const element = make("div", { class: "mc-board" });
  let [built, parts] = ["", null];
  const build = (texts, head) => {
    const told = make("p", { class: "al-line" }, "Point at a number to see how it is computed.");
    const asks = make("th", { scope: "row" }, "");
    const query = strip("al-query", "query");
    const rows = grid({
      label: "The head's steps, a row for each word", corner: "1 token", rows: texts,
      columns: ["3 score", "4 mask", "5 weight"], inspect: (i, j) => write(told, parts.spell(i, j)),
    });
    const [keys, values] = ["al-k", "al-v"].map((kind) =>
      texts.map((word) => strip(kind, `${kind === "al-k" ? "key" : "value"} of ${word}`)));
    const [names, ...lines] = rows.table.rows;
    names.children[0].after(make("th", { scope: "col" }, "2 key k"));
    names.append(make("th", { scope: "col" }, "2 value v"));
    lines.forEach((one, i) => {
      one.children[0].after(make("td", {}, keys[i].element));
      one.append(make("td", {}, values[i].element));
    });
    const mix = strip("al-v", "context z, the mix of all values");
    // The query stands over the keys that it meets, the mix below the values that it is of.
    rows.table.tHead.append(line(asks, cell(1, query.element), cell(4, "its query q meets each key")));
    rows.table.append(make("tfoot", {}, line(make("th", { scope: "row" }, "6 mix"),
      cell(4, "each value times its weight, added up to the context z"), cell(1, mix.element))));
    const own = Number(head.split(".")[1]);
    const heads = range(HEADS_OF_LAYER).map((h) =>
      make("span", { class: h === own ? "mc-head mc-own" : "mc-head" }));
    element.replaceChildren(
      rows.element,
      part(`7 heads: z beside those of the layer's ${HEADS_OF_LAYER - 1} other heads, each from its own q, k and v`,
        make("div", { class: "mc-heads" }, ...heads)),
      part(`8 output: one matrix mixes all ${HEADS_OF_LAYER * WIDTH} numbers into the word's next vector`),
      told
    );
    return { asks, query, rows, keys, values, mix, heads, own };
  };
  const update = (texts, head, inner, asked, weights) => {
    const key = [head, ...texts].join(" ");
    if (key !== built) parts = build(texts, head);
    built = key;
    const [q, k, v] = [inner.q, inner.k, inner.v].map(unpack);
    const scores = inner.scores[asked].map((x) => x / 100);
    write(parts.asks, `2 ${texts[asked]}`);
    parts.query.update(q[asked]);
    k.forEach((row, i) => parts.keys[i].update(row));
    v.forEach((row, i) => parts.values[i].update(row));
    const [z] = matmul([weights], v);
    parts.mix.update(z);
    parts.heads[parts.own].replaceChildren(parts.mix.element.cloneNode(true));
    parts.rows.update(texts.map((_, i) => [scores[i], 0, weights[i]]), {
      text: (x, i, j) => (j === 1 ? "seen" : x.toFixed(2)),
      tone: (x, i, j) => (j === 2 ? byWeight(x) : 0),
    });
    parts.rows.choose(asked);
    parts.spell = (i, j) => {
      if (j === 1) return `${texts[i]} is seen: this model reads both ways. GPT would hide every word after ${texts[asked]}.`;
      if (j === 2) {
        return lab.get("averaged") ? `A plain mean, whatever the score: 1 / ${texts.length} = ${weights[i].toFixed(2)}`
          : `${texts[asked]} → ${texts[i]}: ${spellSoftmax(scores, i)}`;
      }
      if (j === 0) {
        return `${texts[asked]} · ${texts[i]}: q · k / √${WIDTH} = ` +
          `${dot(q[asked], k[i]).toFixed(1)} / ${Math.sqrt(WIDTH).toFixed(2)} = ${scores[i].toFixed(2)}`;
      }
      return `${texts[i]}: ${WIDTH} numbers each for key and value; ${weights[i].toFixed(2)} of its value goes into z`;
    };
  };
  return { element, update };
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "What a trained head looks at", TRAITS);
    lab.root.classList.add("al-look");
    const scenes = lab.get("scenes");
    const scene = () => scenes[lab.get("scene")];
    const which = (of = scene()) => (lab.get("exchanged") && of.words[1] ? 1 : 0);
    const words = () => scene().words[which()];
    const row = () => (lab.get("averaged")
      ? words().map(() => 1 / words().length)
      : scene().weights[which()][lab.get("asked")].map((x) => x / 255));
    const show = (next) => ({ scene: next, exchanged: false, asked: scenes[next].ask });

    // ---- the sentence, and lines from the word that asks ----

    const lines = svg("svg", { class: "lk-lines", "aria-hidden": "true" });
    // A word's place stays when the sentence changes, and so does the focus.
    const chips = make("div", { class: "lk-words", role: "group", "aria-label": "Words of the sentence, each with its weight" });
    const ask = (j) => {
      lab.set({ asked: j });
      chips.children[j].focus();
    };
    const move = (event) => {
      const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!along) return;
      event.preventDefault();
      ask(clamp(lab.get("asked") + along, 0, words().length - 1));
    };
    const longest = Math.max(...scenes.flatMap((one) => one.words.map((all) => all.length)));
    chips.append(...range(longest).map((j) => make(
      "button", { type: "button", class: "lk-word", click: () => ask(j), keydown: move },
      make("span", { class: "lk-text" }, ""), make("span", { class: "lk-number" }, ""),
      make("span", { class: "lk-room", "aria-hidden": "true" }, "")
    )));
    const board = make("div", { class: "lk-board" }, lines, chips);
    lab.stages.append(board);

    // Over the words between two of a row; through the space between two rows.
    const line = (from, to, weight) => {
      const [a, b] = [from.x + from.width / 2, to.x + to.width / 2];
      const down = Math.sign(Math.round((to.y - from.y) / 10));
      const [start, end] = [from.y + (down > 0 ? from.height : 0), to.y + (down < 0 ? to.height : 0)];
      const high = start - Math.min(18 + Math.abs(b - a) / 4, 84);
      const [first, last] = down ? [(start + end) / 2, (start + end) / 2] : [high, high];
      const d = `M${a} ${start}C${a} ${first} ${b} ${last} ${b} ${end}`;
      return svg("path", { d, class: "lk-line", style: `--weight:${weight.toFixed(3)}` });
    };
    const draw = () => {
      const box = board.getBoundingClientRect();
      const boxes = Array.from(chips.children, (chip) => {
        const { x, y, width, height } = chip.getBoundingClientRect();
        return { x: x - box.x, y: y - box.y, width, height };
      });
      const [asked, weights] = [lab.get("asked"), row()];
      lines.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
      lines.replaceChildren(...weights.flatMap((weight, j) =>
        (j === asked || weight < 0.02 ? [] : [line(boxes[asked], boxes[j], weight)])));
    };
    new ResizeObserver(draw).observe(board);

    // ---- what can be changed ----

    const heads = Object.keys(DOES).filter((head) => scenes.some((one) => one.head === head));
    const exchange = lab.button("", () => {
      lab.set({ exchanged: !lab.get("exchanged"), asked: scene().ask });
    });
    exchange.classList.add("lk-exchange");
    lab.param("exchanged", (text) => ({ 1: true, 0: false })[text], (on) => (on ? "1" : "0"));
    lab.between("asked", 0, 63, true);
    lab.resetButton();
    lab.inSettings = true;
    lab.between("scene", 0, scenes.length - 1, true); // a head has several sentences
    const head = lab.choice("scene", "Head", () => heads.map((name) => {
      const own = scene().head === name ? lab.get("scene") : scenes.findIndex((one) => one.head === name);
      return [own, `${name}: ${DOES[name]}`];
    }), show);
    head.classList.add("lk-head");
    lab.button("Another sentence", () => {
      const same = range(scenes.length).filter((i) => scenes[i].head === scene().head);
      lab.set(show(same[(same.indexOf(lab.get("scene")) + 1) % same.length]));
    });
    lab.toggle("averaged", "Plain mean");
    lab.settings(() => {});
    const inside = machine(lab);
    const opened = lab.fold("Look inside", inside.element);
    opened.tab.hidden = false;
    lab.tabs.prepend(opened.tab);
    lab.kept.inside = opened;
    lab.numbers.panel.before(opened.panel);

    lab.readout.remove(); // each word has its number
    let flipped = false;
    return lab.start(() => {
      // A link may ask for a word that this sentence has not.
      if (lab.get("asked") >= words().length) return lab.set({ asked: scene().ask });
      const [asked, weights, texts] = [lab.get("asked"), row(), words()];
      Array.from(chips.children).forEach((chip, j) => {
        chip.hidden = j >= texts.length;
        if (chip.hidden) chip.setAttribute("aria-label", "no word");
      });
      chips.classList.toggle("lk-long", texts.length > 10);
      const most = argmax(weights);
      const differs = scene().words[1]?.findIndex((word, j) => word !== scene().words[0][j]);
      texts.forEach((text, j) => {
        const chip = chips.children[j];
        const special = /^\[.+\]$/.test(text);
        chip.className = ["lk-word", special && "lk-special", j === asked && "lk-asks",
          j === differs && "lk-differs"].filter(Boolean).join(" ");
        chip.tabIndex = j === asked ? 0 : -1;
        chip.style.setProperty("--tone", `${(100 * weights[j]).toFixed(1)}%`);
        write(chip.firstChild, text);
        write(chip.children[1], weights[j] < 0.05 ? "" : ` ${weights[j].toFixed(2)}`);
        // The room of its exchange: no other word moves.
        write(chip.lastChild, scene().words[1 - which()]?.[j] ?? "");
        chip.setAttribute("aria-pressed", String(j === asked));
        chip.setAttribute("aria-label", `${text} ${weights[j].toFixed(2)}`);
      });
      exchange.disabled = differs === undefined;
      const [now, other] = [texts[differs], scene().words[1 - which()]?.[differs]];
      write(exchange, exchange.disabled ? "No word to swap" : `Swap “${now}” for “${other}”`);
      const mean = lab.get("averaged");
      write(lab.summary, mean
        ? `A plain mean gives every word ${weights[0].toFixed(2)}, whichever word asks.`
        : `“${texts[asked]}” looks at “${texts[most]}” (${weights[most].toFixed(2)}).`);
      const inner = scene().inner?.[which()];
      opened.tab.disabled = !inner;
      if (inner && !opened.panel.hidden) inside.update(texts, scene().head, inner, asked, weights);
      if (!inner && !opened.panel.hidden) opened.open(false);
      flipped ||= lab.get("exchanged") && !mean && asked === differs;
      lab.ask("Try it: make it look somewhere else by swapping one word.", flipped,
        "Done: you swapped one word, and the same head looks somewhere else.");
      draw();
    });
  },
};
