// Weights that are dropped, and the mean over many draws that stays.
import {
  drawKept, dropout, filled, format, largestDifference, meanDropout, rowSums, short,
} from "./core.js";
import { Lab, byWeight, grid, write } from "./ui.js";

const TRAITS = ["weights", "tokens", "source", "p", "draw", "draws", "training"];
const HINT = "Point at a number, or move to it with the arrow keys, to read how it comes about.";
const WHY =
  "Both are right: after the same seed, PyTorch takes its dropout draws from its own " +
  "random stream on most machines (@a) and from the MKL library's on others (@b).";

export default {
  render({ model, el }) {
    const lab = new Lab({ model, el }, "Dropout lab", TRAITS);
    const tokens = lab.get("tokens");
    const t = tokens.length;
    const presets = lab.get("presets");
    const published = t === presets.a.length
      ? [["a", "published @a (seed 123)"], ["b", "published @b (seed 123)"]]
      : [];
    lab.choice("source", "Mask", [...published, ["draw", "fresh draw"]], (source) =>
      source === "draw" ? { source } : { p: 0.5, source }
    );
    lab.slider("p", "p", {
      min: 0, max: 0.9, step: 0.05, show: (p) => p.toFixed(2),
      // The published masks are for p = 0.5 only.
      change: (p) => (p === 0.5 ? { p } : { source: "draw", p }),
    });
    lab.button("Draw again", () =>
      lab.set({ source: "draw", draw: (lab.get("draw") % 100000) + 1 })
    );
    lab.slider("draws", "Mean over", { min: 1, max: 1000, show: (n) => `${n} draws` });
    lab.toggle("training", "train(), not eval()");
    lab.resetButton();

    let now = null;
    let inspected = null;
    const read = () => {
      if (!inspected) return write(lab.readout, HINT);
      const [name, i, j] = inspected;
      const start = `${tokens[i]} → ${tokens[j]}: `;
      const weight = () => lab.get("weights")[i][j];
      const p = lab.get("p");
      const text = {
        weights: () => `${start}${format(weight())}`,
        kept: () => `${start}${now.kept[i][j] ? "stays" : "is dropped"}`,
        dropped: () => {
          if (!lab.get("training")) return `${start}${format(weight())}, as eval() leaves it`;
          if (!now.kept[i][j]) return `${start}dropped, so 0.0000`;
          return `${start}${short(weight())} / (1 - ${short(p)}) = ${format(now.dropped[i][j])}`;
        },
        mean: () => `${start}mean ${format(now.mean[i][j])}, weight ${format(weight())}`,
      };
      const sums = { weights: lab.get("weights"), dropped: now.dropped, mean: now.mean };
      write(
        lab.readout,
        j === t ? `row ${tokens[i]} sums to ${format(rowSums(sums[name])[i])}` : text[name]()
      );
    };
    const add = (name, title, columns) => {
      const stage = lab.stage(title);
      const part = grid({
        label: title,
        corner: "q \\ k",
        rows: tokens,
        columns,
        inspect: (i, j) => {
          inspected = [name, i, j];
          read();
        },
      });
      stage.show(part.element);
      return Object.assign(part, { stage });
    };
    const columns = [...tokens, "sum"];
    const before = add("weights", "Weights α", columns);
    const mask = add("kept", "Kept (1) or dropped (0)", tokens);
    const after = add("dropped", "After dropout", columns);
    const mean = add("mean", "Mean over the draws", columns);

    const compute = () => {
      const weights = lab.get("weights");
      const [p, source] = [lab.get("p"), lab.get("source")];
      if (!lab.get("training")) {
        return { kept: filled(t, t, () => true), dropped: weights, mean: weights };
      }
      const kept =
        source === "draw"
          ? drawKept(t, t, p, lab.get("draw"))
          : filled(t, t, (i, j) => presets[source][i][j] === "1");
      return {
        kept,
        dropped: dropout(weights, kept, p),
        mean: meanDropout(weights, p, lab.get("draw"), lab.get("draws")),
      };
    };

    return lab.start(() => {
      now = compute();
      const weights = lab.get("weights");
      const tone = (x, i, j) => (j < t ? byWeight(x) : 0);
      const withSums = (a) => a.map((row, i) => [...row, rowSums(a)[i]]);
      before.update(withSums(weights), { tone });
      mask.update(now.kept, { text: (x) => (x ? "1" : "0") });
      after.update(withSums(now.dropped), { tone });
      mean.update(withSums(now.mean), { tone });
      for (const part of [mask, after]) {
        part.flagCells("al-hidden", (i, j) => j < t && !now.kept[i][j]);
      }
      const gap = format(largestDifference(now.mean, weights));
      const text = lab.get("training")
        ? `Kept weights are divided by 1 - p = ${short(1 - lab.get("p"))}. The mean over ` +
          `${lab.get("draws")} draws is within ${gap} of the weights. `
        : "In eval() nothing is dropped and nothing is scaled. ";
      write(lab.summary, text + (lab.get("source") === "draw" ? "" : WHY));
      read();
    });
  },
};
