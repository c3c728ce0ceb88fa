// Scores, weights and context of one head, as three linked stages.
import {
  attention, causal, format, map, short, spellDot, spellSoftmax, transpose,
} from "./core.js";
import { Lab, byShare, byWeight, features, grid, write } from "./ui.js";

const TRAITS = [
  "inputs", "tokens", "query", "trainable", "scaled", "causal", "W_query", "W_key", "W_value",
];
const HINT = "Point at a number, or move to it with the arrow keys, to read its sum.";

const compute = (lab) => {
  const inputs = lab.get("inputs");
  const trainable = lab.get("trainable");
  const projections = trainable
    ? { query: lab.get("W_query"), key: lab.get("W_key"), value: lab.get("W_value") }
    : null;
  const width = trainable ? projections.key[0].length : inputs[0].length;
  return {
    ...attention({
      inputs,
      projections,
      divisor: lab.get("scaled") ? Math.sqrt(width) : 1,
      hidden: lab.get("causal") ? causal(inputs.length) : null,
    }),
    inputs,
    projections,
    width,
  };
};

// The sum behind one cell, with its numbers. `now` is what compute gave.
const spell = (lab, now, name, i, j) => {
  const tokens = lab.get("tokens");
  if (name === "scores") {
    if (now.scores[i][j] === -Infinity) {
      return `${tokens[j]} comes after ${tokens[i]}: hidden, so its score is -inf`;
    }
    const product = spellDot(now.queries[i], now.keys[j]);
    const divided = ` / √${now.width} = ${format(now.scores[i][j])}`;
    return `${tokens[i]} · ${tokens[j]}: ${lab.get("scaled") ? `${product};${divided}` : product}`;
  }
  if (name === "weights") {
    return `${tokens[i]} → ${tokens[j]}: ${spellSoftmax(now.scores[i], j)}`;
  }
  if (name === "context") {
    const column = now.values.map((row) => row[j]);
    return `${tokens[i]}, feature ${j + 1}: ${spellDot(now.weights[i], column)}`;
  }
  if (name === "inputs") return `${tokens[i]}, feature ${j + 1}: ${short(now.inputs[i][j])}`;
  const W = { queries: "query", keys: "key", values: "value" }[name];
  const column = transpose(now.projections[W])[j];
  return `${W} ${j + 1} of ${tokens[i]}: ${spellDot(now.inputs[i], column)}`;
};

export default {
  render({ model, el }) {
    const lab = new Lab({ model, el }, "Attention lab", TRAITS);
    const indices = lab.get("tokens").map((token, i) => [i, token]);
    lab.radios("query", "Query", indices);
    lab.toggle("trainable", "Trainable projections");
    lab.toggle("scaled", "Divide scores by √d_k");
    lab.toggle("causal", "Causal mask");
    lab.resetButton();

    const stages = {
      inputs: lab.stage("Inputs x", "(edit any value)"),
      queries: lab.stage("Queries q = x W_query"),
      keys: lab.stage("Keys k = x W_key"),
      values: lab.stage("Values v = x W_value"),
      scores: lab.stage("1. Scores ω"),
      weights: lab.stage("2. Weights α = softmax(ω)"),
      context: lab.stage("3. Context z = Σ α · v"),
    };
    const grids = {};
    let size = "";
    let now = null;
    let inspected = null;

    const read = () => {
      const known = inspected && (now[inspected[0]] || inspected[0] === "inputs");
      write(lab.readout, known ? spell(lab, now, ...inspected) : HINT);
      for (const [name, part] of Object.entries(grids)) {
        const [from, i, j] = known ? inspected : [];
        const square = from === "scores" || from === "weights";
        const takes = square && ["inputs", "queries", "keys", "values"].includes(name);
        part.link(...(takes ? [i, j] : []));
      }
    };
    const build = () => {
      const tokens = lab.get("tokens");
      const wide = { scores: tokens, weights: tokens };
      for (const name of Object.keys(stages)) {
        grids[name] = grid({
          label: stages[name].heading.textContent,
          corner: wide[name] ? "q \\ k" : "token",
          rows: tokens,
          columns: wide[name] || features(now[name][0].length),
          inspect: (i, j) => {
            inspected = [name, i, j];
            read();
          },
          pick: name === "inputs" ? null : (i) => lab.set({ query: i }),
          edit: name !== "inputs" ? null : (i, j, number) =>
            lab.set({ inputs: map(lab.get("inputs"), (x, a, b) => (a === i && b === j ? number : x)) }),
        });
        if (name !== "inputs") grids[name].table.classList.add("al-picks");
        stages[name].show(grids[name].element);
      }
    };

    return lab.start(() => {
      now = compute(lab);
      const shape = [now.inputs.length, now.inputs[0].length, now.width].join();
      if (shape !== size) build();
      size = shape;
      for (const name of ["queries", "keys", "values"]) {
        stages[name].element.hidden = !lab.get("trainable");
      }
      write(stages.scores.note, lab.get("scaled") ? `= q · k / √${now.width}` : "= q · k");
      const query = lab.get("query");
      for (const [name, part] of Object.entries(grids)) {
        const tone = { weights: byWeight, scores: byShare(now.scores, 0.45) }[name] || null;
        part.update(now[name], { tone });
        part.choose(query);
      }
      const row = now.weights[query];
      const most = row.indexOf(Math.max(...row));
      const tokens = lab.get("tokens");
      const context = now.context[query].map(format).join(", ");
      write(
        lab.summary,
        `${tokens[query]} attends most to ${tokens[most]}, with the weight ` +
          `${format(row[most])}. Its context vector is [${context}].`
      );
      read();
    });
  },
};
