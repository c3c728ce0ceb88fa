// The wrapper and the split class with the same weights, side by side.
import {
  causalHead, format, largestDifference, spellDot, spellSoftmax, splitAttention, stackHeads,
  wrapper,
} from "./core.js";
import { Lab, byWeight, grid, make, write } from "./ui.js";

const TRAITS = ["inputs", "tokens", "num_heads", "d_head", "head", "heads"];
const HINT = "Point at a number, or move to it with the arrow keys, to read its sum.";

const widths = (d_in, t, h, d) => [
  ["argument d_out", d, h * d],
  ["W_query.weight", `${h} × (${d}, ${d_in})`, `(${h * d}, ${d_in})`],
  ["queries", `${h} × (b, ${t}, ${d})`, `(b, ${h}, ${t}, ${d})`],
  ["scores", `${h} × (b, ${t}, ${t})`, `(b, ${h}, ${t}, ${t})`],
  ["divisor", `√${d}`, `√${d}`],
  ["output", `(b, ${t}, ${h * d})`, `(b, ${t}, ${h * d})`],
  ["weights in all", 3 * h * d * d_in, `${3 * h * d * d_in} + out_proj ${h * d * (h * d + 1)}`],
];

export default {
  render({ model, el }) {
    const lab = new Lab({ model, el }, "Multi-head lab", TRAITS);
    lab.slider("num_heads", "num_heads", {
      min: 1,
      max: 4,
      change: (h) => ({ head: Math.min(lab.get("head"), h - 1), num_heads: h }),
    });
    lab.slider("d_head", "d_out of one head", { min: 1, max: 4 });
    const indices = () =>
      Array.from({ length: lab.get("num_heads") }, (_, i) => [i, `head ${i}`]);
    lab.choice("head", "Show weights of", indices);
    lab.resetButton();

    const stages = {
      widths: lab.stage("Every width"),
      weights: lab.stage("Weights α"),
      first: lab.stage("MultiHeadAttentionWrapper"),
      second: lab.stage("MultiHeadAttention", "(no out_proj)"),
    };
    const tokens = lab.get("tokens");
    const grids = {};
    let now = null;
    let size = "";
    let inspected = null;
    const spell = (name, i, j) => {
      if (name === "weights") {
        return `head ${lab.get("head")}, ${tokens[i]} → ${tokens[j]}: ` +
          spellSoftmax(now.shown.scores[i], j);
      }
      const d = lab.get("d_head");
      const part = now.parts[Math.floor(j / d)];
      const column = part.values.map((row) => row[j % d]);
      return `${tokens[i]}, head ${Math.floor(j / d)}, feature ${(j % d) + 1}: ` +
        spellDot(part.weights[i], column);
    };
    const read = () => write(lab.readout, inspected ? spell(...inspected) : HINT);
    const add = (name, columns, corner) => {
      grids[name] = grid({
        label: stages[name].heading.textContent,
        corner,
        rows: tokens,
        columns,
        inspect: (i, j) => {
          inspected = [name, i, j];
          read();
        },
      });
      stages[name].show(grids[name].element);
    };
    const build = (h, d) => {
      inspected = null;
      const columns = Array.from({ length: h * d }, (_, j) => `h${Math.floor(j / d)} ${(j % d) + 1}`);
      add("weights", tokens, "q \\ k");
      add("first", columns, "token");
      add("second", columns, "token");
      const line = ([name, a, b]) =>
        make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, String(a)), make("td", {}, String(b)));
      const head = ["", "wrapper", "split"].map((name) => make(name ? "th" : "td", name ? { scope: "col" } : { class: "al-empty" }, name));
      const table = make(
        "table",
        { "aria-label": "Every width" },
        make("thead", {}, make("tr", {}, ...head)),
        make("tbody", {}, ...widths(lab.get("inputs")[0].length, tokens.length, h, d).map(line))
      );
      const scroll = { class: "al-scroll", role: "group", tabindex: "0", "aria-label": "Every width" };
      stages.widths.show(make("div", scroll, table));
    };

    return lab.start(() => {
      const [h, d] = [lab.get("num_heads"), lab.get("d_head")];
      const inputs = lab.get("inputs");
      const heads = lab.get("heads")[d].slice(0, h);
      const parts = heads.map((head) => causalHead(inputs, head));
      now = {
        parts,
        shown: parts[lab.get("head")],
        first: wrapper(inputs, heads),
        second: splitAttention(inputs, stackHeads(heads), h),
      };
      if (size !== [h, d].join()) build(h, d);
      size = [h, d].join();
      write(stages.weights.note, `of head ${lab.get("head")}`);
      grids.weights.update(now.shown.weights, { tone: byWeight });
      grids.first.update(now.first);
      grids.second.update(now.second);
      const own = (i, j) => Math.floor(j / d) === lab.get("head");
      grids.first.flagCells("al-seen", own);
      grids.second.flagCells("al-seen", own);
      write(
        lab.summary,
        `${h} heads of width ${d}: ${h * d} numbers a token. Largest difference between ` +
          `both classes: ${format(largestDifference(now.first, now.second))}.`
      );
      read();
    });
  },
};
