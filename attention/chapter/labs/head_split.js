// Where every entry of arange goes when heads are split and joined.
import { isContiguous, slice, splitSteps } from "./core.js";
import { Lab, grid, make, write } from "./ui.js";

const TRAITS = ["batch", "num_tokens", "d_out", "num_heads", "step"];
const WIDTHS = [2, 4, 6, 8, 12];
// Light tints of the Okabe-Ito colors, one for each token.
const TINTS = ["#fde3b0", "#cdeaf9", "#b5e5d5", "#fbf6b8", "#f6d9e8", "#d5d9f5"];
const HINT = "Point at an entry, or move to it with the arrow keys, to read where it comes from.";
const STEPS = [
  ["start", "0. x", "x"],
  ["viewed", "1. view", "x.view(b, t, h, d_head)"],
  ["split", "2. transpose", ".transpose(1, 2)"],
  ["scores", "3. scores", "q @ k.transpose(2, 3), with q = k"],
  ["back", "4. transpose back", ".transpose(1, 2)"],
  ["joined", "5. join", ".contiguous().view(b, t, d_out)"],
];
const AXES = {
  start: ["batch", "token"],
  viewed: ["batch", "token", "head"],
  split: ["batch", "head", "token"],
  scores: ["batch", "head", "query"],
  back: ["batch", "token", "head"],
  joined: ["batch", "token"],
  straight: ["batch", "head", "row"],
};

// Every index of the axes before the last two.
const leads = (shape) =>
  shape.slice(0, -2).reduce(
    (found, size) => found.flatMap((lead) => Array.from({ length: size }, (_, i) => [...lead, i])),
    [[]]
  );

export default {
  render({ model, el }) {
    const lab = new Lab({ model, el }, "Head-split lab", TRAITS);
    lab.radios("step", "Step", STEPS.map(([, name], i) => [i, name]));
    lab.choice("batch", "b", [[1, "1"], [2, "2"]]);
    lab.slider("num_tokens", "t", { min: 1, max: 6 });
    lab.choice("d_out", "d_out", WIDTHS.map((d) => [d, String(d)]), (d) =>
      // One head always fits.
      d % lab.get("num_heads") ? { num_heads: 1, d_out: d } : { d_out: d }
    );
    const divisors = () =>
      Array.from({ length: lab.get("d_out") }, (_, i) => i + 1)
        .filter((h) => lab.get("d_out") % h === 0)
        .map((h) => [h, String(h)]);
    lab.choice("num_heads", "h", divisors);
    lab.resetButton();
    const right = lab.stage("");
    right.element.classList.add("al-wide");
    const wrong = lab.stage("One view straight to (b, h, t, d_head)", "mixes tokens up");
    wrong.element.classList.add("al-wide");

    const tokenOf = (x) => Math.floor(x / lab.get("d_out")) % lab.get("num_tokens");
    const origin = (x) => {
      const [d, t] = [lab.get("d_out"), lab.get("num_tokens")];
      return `entry ${x} is feature ${x % d} of token ${tokenOf(x)} of batch ${Math.floor(x / (d * t))}`;
    };
    let drawn = "";
    let inspected = null;
    const read = () => write(lab.readout, inspected ? inspected() : HINT);

    const draw = (name, a) => {
      const axes = AXES[name];
      const blocks = leads(a.shape).map((lead) => {
        const values = slice(a, ...lead);
        const title = lead.map((i, k) => `${axes[k]} ${i}`).join(", ");
        const row = axes[lead.length];
        const sums = name === "scores";
        const part = grid({
          label: `${STEPS.find(([step]) => step === name)?.[1] || "straight view"}: ${title}`,
          corner: row,
          rows: values.map((_, i) => `${row} ${i}`),
          columns: values[0].map((_, j) => (sums ? `key ${j}` : String(j))),
          inspect: (i, j) => {
            const where = `[${[...lead, i, j].join(", ")}]`;
            inspected = () =>
              sums ? `scores${where} = ${values[i][j]}: head ${lead[1]}, query ${i} with key ${j}`
                : `${where}: ${origin(values[i][j])}`;
            read();
          },
        });
        part.update(values, { text: (x) => String(x) });
        part.cells.forEach((line, i) =>
          line.forEach((cell, j) => {
            if (sums) return;
            const token = tokenOf(values[i][j]);
            cell.style.background = TINTS[token];
            cell.append(make("small", {}, ` t${token}`));
          })
        );
        return make("div", { class: "al-block" }, make("p", {}, title), part.element);
      });
      return make("div", { class: "al-blocks" }, ...blocks);
    };

    return lab.start(() => {
      const [b, t, d, h] = ["batch", "num_tokens", "d_out", "num_heads"].map((x) => lab.get(x));
      const all = splitSteps(b, t, d, h);
      const [name, title, code] = STEPS[lab.get("step")];
      const now = all[name];
      const key = [b, t, d, h, lab.get("step")].join();
      if (key !== drawn) {
        drawn = key;
        inspected = null;
        write(right.heading, title);
        write(right.note, code);
        right.show(draw(name, now));
        wrong.show(draw("straight", all.straight));
      }
      const mixed = leads(all.straight.shape).filter(([batch, head]) =>
        slice(all.straight, batch, head).some((row, i) => row.some((x) => tokenOf(x) !== i))
      ).length;
      const list = (x) => `(${x.join(", ")})`;
      write(
        lab.summary,
        `Shape ${list(now.shape)}, stride ${list(now.strides)}, ` +
          `${isContiguous(now) ? "contiguous" : "not contiguous"}. The straight view ` +
          (mixed ? `mixes tokens in ${mixed} of ${b * h} heads.` : "happens to be right here.")
      );
      read();
    });
  },
};
