// What all heads of a small model look at, from the first step of training to the last.
import { format } from "./core.js";
import { Lab, byWeight, clamp, make, pattern, put, square, svg, write } from "./ui.js";
import { line, scaleLinear } from "./d3.js";
import { axes, canvas, cursor, legend, playButton } from "./draw.js";

const TRAITS = [
  "tokens", "steps", "losses", "curve", "heads", "scores", "measures", "patterns", "at",
  "head",
];
const HINT = "Drag the line, or point at a cell to read its weight.";
const FORMED = 0.5;
const two = (x) => (x < 0.005 ? "" : x.toFixed(2));

const go = (lab, ways) =>
  lab.set({ at: clamp(lab.get("at") + ways, 0, lab.get("steps").length - 1) });

// The loss above the scores of the heads, over one axis of steps, with a line that is moved.
const chart = (lab) => {
  const [steps, losses, heads] = lab.all("steps", "losses", "heads");
  const scores = lab.get("measures").map((name) => lab.get("scores")[name]);
  const curve = lab.get("curve");
  const root = canvas(320, scores.length ? 222 : 134, "Loss and scores over the training");
  const last = Math.max(...steps, ...curve.map(([step]) => step));
  const x = scaleLinear([0, last], [34, 306]);
  const y = scaleLinear([0, Math.max(...losses, ...curve.map(([, loss]) => loss))], [84, 18]);
  const z = scaleLinear([0, 1], [184, 118]);
  axes(root)({ x, y, yLabel: "loss", ...(scores.length ? { xTicks: [] } : { xLabel: "training step" }) });
  root.append(svg("path", { class: "al-curve al-loss", d: line(([s]) => x(s), ([, l]) => y(l))(curve) }));
  root.append(...steps.map((s, k) => svg("circle", { class: "al-bin", cx: x(s), cy: y(losses[k]), r: 3.5 })));
  const lines = scores.map((rows, k) => heads.map((_, h) =>
    svg("path", { class: k ? "al-curve al-second" : "al-curve", d: line((s) => x(s), (s, n) => z(rows[n][h]))(steps) })));
  if (scores.length) {
    axes(root)({ x, y: z, xLabel: "training step", yLabel: "score of each head", yTicks: [0, 0.5, 1] });
    root.append(svg("path", { class: "al-rule", d: `M34,${z(FORMED)}H306` }), ...lines.flat());
  }
  const nearest = (px) => steps.indexOf(steps.reduce((a, b) =>
    (Math.abs(x(b) - px) < Math.abs(x(a) - px) ? b : a)));
  const mark = cursor(root, "Training step", (scores.length ? [[18, 84], [118, 184]] : [[18, 84]]), {
    to: (px) => lab.set({ at: nearest(px) }),
    by: (ways) => go(lab, ways),
  });
  return {
    root,
    update() {
      const step = steps[lab.get("at")];
      mark(x(step), `step ${step}`, step, [steps[0], steps[steps.length - 1]]);
      for (const own of lines) {
        own.forEach((one, h) => one.classList.toggle("al-thin", h !== lab.get("head")));
      }
    },
  };
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Training lab", TRAITS);
    const [tokens, steps, heads] = lab.all("tokens", "steps", "heads");
    const scores = lab.get("scores");
    const names = lab.get("measures");
    const last = steps.length - 1;
    lab.param("at", (text) => [...steps.keys()].find((at) => String(steps[at]) === text),
      (at) => String(steps[at]));
    lab.root.classList.add("al-training");
    lab.button("Step back", () => go(lab, -1));
    lab.button("Step on", () => go(lab, 1));
    playButton(lab, "Play", (first) => {
      const at = lab.get("at");
      if (at === last && !first) return false;
      return lab.set({ at: at === last ? 0 : at + 1 });
    }, 800);
    lab.choice("head", "Head", heads.map((name, i) => [i, name]));
    lab.resetButton();

    const patterns = () => lab.get("patterns")[lab.get("at")];
    lab.tells(HINT, (h, i, j) =>
      `${heads[h]}: ${tokens[i]} (${i + 1}) looks at ${tokens[j]} (${j + 1}) with weight ` +
        patterns()[h][i][j].toFixed(3));
    const pictures = heads.map((name, h) => {
      const picture = pattern((i, j) => {
        picture.frame(i, j, j);
        lab.inspect(h)(i, j);
      }, { rows: true, pointerdown: () => lab.set({ head: h }) });
      const told = make("p", { class: "al-told" }, "");
      const title = make("p", { class: "al-stage-title" }, name);
      return { picture, told, title, element: make("div", {}, title, picture.element, told) };
    });
    const curves = chart(lab);
    lab.stage("The training", "drag the line").show(curves.root, legend(
      ...names.map((name, k) => [k ? "second" : "bar", k ? `${name} (dashed)` : name])));
    lab.stage("What each head looks at", "a row for each word")
      .show(make("div", { class: "al-heads" }, ...pictures.map(({ element }) => element)));

    const weights = lab.table("Attention weights", "of the chosen head", {
      ...square(tokens), inspect: (...cell) => lab.inspect(lab.get("head"))(...cell),
    });
    weights.table.classList.add("al-compact");
    const table = lab.table("Scores", "of all heads, at this step", { corner: "head", rows: heads, columns: names });

    const above = (at) => names.map((name) => [name,
      heads.flatMap((head, h) => (scores[name][at][h] > FORMED ? [`${head} (${scores[name][at][h].toFixed(2)})`] : []))])
      .filter(([, found]) => found.length);
    const formed = steps.findIndex((_, at) => above(at).length);
    const said = (at) => above(at).map(([name, found]) => `${name} of ${found.join(" and ")}`).join("; ");

    return lab.start(() => {
      const [at, head] = [lab.get("at"), lab.get("head")];
      curves.update();
      pictures.forEach(({ picture, told, title }, h) => {
        picture.update(patterns()[h], ...picture.at());
        const own = names.map((name) => `${name} ${scores[name][at][h].toFixed(2)}`).join(", ");
        write(told, own);
        put(picture.element, { "aria-label": `${heads[h]} at step ${steps[at]}: ${own}` });
        title.classList.toggle("al-chosen", h === head);
      });
      weights.update(patterns()[head], { tone: byWeight, text: two });
      table.update(heads.map((_, i) => names.map((name) => scores[name][at][i])), { tone: byWeight });
      table.choose(head);
      const loss = `After ${steps[at]} steps, the loss is ${format(lab.get("losses")[at])}.`;
      const who = names.length ? ` Above one half: ${said(at) || "no score of any head"}.` : "";
      write(lab.summary, loss + who);
      if (formed > 0) {
        const solved = at === formed - 1;
        lab.ask("Which is the last step shown at which no score is above one half yet?", solved,
          `Done: the next step shown is ${steps[formed]}, with ${said(formed)}. On the way, the ` +
            `loss falls to ${format(lab.get("losses")[formed])}.`);
      }
    });
  },
};
