// How the width of keys spreads the scores, and what a divisor does to softmax.
import { drawScores, format, scaleMeasures, short, spellSoftmax } from "./core.js";
import { Lab, byWeight, grid, write } from "./ui.js";

const TRAITS = ["d_k", "divisor", "other", "seed"];
const WIDEST = 1024;
const KEYS = 8;
const WIDTHS = [1, 4, 16, 64, 256, 1024];
// Where the slider stops: powers of two and half-way between them.
const STOPS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
const HINT = "Point at a number, or move to it with the arrow keys, to read what it says.";
const COLUMNS = ["d_k", "divisor", "expected", "spread", "largest α", "entropy", "gradient"];
const MEANING = [
  "the width of a key",
  "what the scores are divided by",
  "the standard deviation that theory expects: √d_k / divisor",
  "the standard deviation of 128 scores, of 16 queries with 8 keys each",
  "the largest of 8 weights, mean over 16 queries",
  "the entropy of 8 weights, mean over 16 queries; log 8 = 2.0794 if all are equal",
  "the size of softmax's derivative, mean over 16 queries; near 0, nothing is learned",
];

const verdict = (largest, entropy) => {
  if (largest > 0.85) return "Softmax is saturated.";
  if (entropy > 2) return "All keys look alike.";
  return "";
};

export default {
  render({ model, el }) {
    const lab = new Lab({ model, el }, "Scale lab", TRAITS);
    lab.slider("d_k", "d_k", {
      min: 0,
      max: STOPS.length - 1,
      read: (width) => STOPS.findIndex((stop) => stop >= width),
      change: (place) => ({ d_k: STOPS[place] }),
    });
    lab.number("d_k", "exactly", { min: 1, max: WIDEST });
    lab.choice("divisor", "Divide by", [
      ["none", "nothing"], ["root", "√d_k"], ["full", "d_k"], ["other", "√ of another d"],
    ]);
    lab.number("other", "another d", { min: 1, max: WIDEST });
    lab.button("New draws", () => lab.set({ seed: (lab.get("seed") % 1000) + 1 }));
    lab.resetButton();

    let seed = null;
    let drawn = null;
    const divideBy = (width) =>
      ({ none: 1, root: Math.sqrt(width), full: width, other: Math.sqrt(lab.get("other")) })[
        lab.get("divisor")
      ];
    const measure = (width) => {
      const divisor = divideBy(width);
      const found = scaleMeasures(drawn, width, divisor);
      const { spread, largest, entropy, gradient } = found;
      const expected = Math.sqrt(width) / divisor;
      return {
        ...found,
        line: [width, divisor, expected, spread, largest, entropy, gradient],
      };
    };

    let now = null;
    let lines = null;
    let inspected = null;
    const rowNames = ["scores ω", "weights α"];
    const read = () => {
      if (!inspected) return write(lab.readout, HINT);
      const [name, i, j] = inspected;
      if (name === "measures") {
        return write(lab.readout, `${COLUMNS[j]} ${format(lines[i][j])}: ${MEANING[j]}`);
      }
      write(
        lab.readout,
        i === 0
          ? `score of key ${j + 1}: ${short(now.scores[j] * divideBy(lab.get("d_k")))} / ` +
              `${short(divideBy(lab.get("d_k")))} = ${format(now.scores[j])}`
          : `key ${j + 1}: ${spellSoftmax(now.scores, j)}`
      );
    };
    const add = (name, title, note, rows, columns, corner) => {
      const stage = lab.stage(title, note);
      const part = grid({
        label: title,
        corner,
        rows,
        columns,
        inspect: (i, j) => {
          inspected = [name, i, j];
          read();
        },
      });
      stage.show(part.element);
      return part;
    };
    const keys = Array.from({ length: KEYS }, (_, i) => `key ${i + 1}`);
    const one = add("one", "One of 16 queries and its 8 keys", "of width d_k", rowNames, keys, "row");
    const names = ["now", ...WIDTHS.map((width) => `d_k ${width}`)];
    const measures = add("measures", "By width", "", names, COLUMNS, "row");

    return lab.start(() => {
      if (seed !== lab.get("seed")) {
        seed = lab.get("seed");
        drawn = drawScores({ seed, queries: 16, keys: KEYS, width: WIDEST });
      }
      now = measure(lab.get("d_k"));
      lines = [now.line, ...WIDTHS.map((width) => measure(width).line)];
      one.update([now.scores, now.weights], { tone: (x, i) => (i ? byWeight(x) : 0) });
      measures.update(lines, {
        text: (x, i, j) => (j === 0 ? String(x) : format(x)),
        tone: (x, i, j) => (j === 4 ? byWeight(x) : 0),
      });
      measures.choose(0);
      const { spread, largest, entropy, gradient } = now;
      write(
        lab.summary,
        `With d_k = ${lab.get("d_k")}, scores spread by ${format(spread)}. One of 8 keys ` +
          `gets ${format(largest)} of the weight; entropy ${format(entropy)}, gradient ` +
          `${format(gradient)}. ` + verdict(largest, entropy)
      );
      read();
    });
  },
};
