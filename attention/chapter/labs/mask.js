// Which scores are hidden, with what, and when; and who notices a changed token.
import {
  attention, format, map, maskedAttention, short, spellDot, spellSoftmax, triangle,
} from "./core.js";
import { Lab, byWeight, features, grid, write } from "./ui.js";

const TRAITS = [
  "inputs", "tokens", "part", "diagonal", "fill", "place", "renormalized", "hidden_row",
  "nudged", "nudge", "W_query", "W_key", "W_value",
];
const FILLS = { "-inf": -Infinity, 0: 0, "-1e9": -1e9 };
const HINT = "Point at a number, or move to it with the arrow keys, to read how it comes about.";

const compute = (lab) => {
  const inputs = lab.get("inputs");
  const t = inputs.length;
  const projections = {
    query: lab.get("W_query"), key: lab.get("W_key"), value: lab.get("W_value"),
  };
  const row = lab.get("hidden_row");
  const hidden = map(
    triangle(t, lab.get("part"), lab.get("diagonal")),
    (inside, i) => inside || i === row
  );
  const how = {
    projections,
    hidden,
    fill: FILLS[lab.get("fill")],
    place: lab.get("place"),
    renormalized: lab.get("renormalized"),
  };
  const result = maskedAttention({ ...how, inputs });
  const nudged = lab.get("nudged");
  const changed = map(inputs, (x, i) => (i === nudged ? x + lab.get("nudge") : x));
  const after = maskedAttention({ ...how, inputs: changed });
  const moved = result.context.map((line, i) =>
    Math.max(...line.map((x, j) => Math.abs(after.context[i][j] - x)))
  );
  return { ...result, hidden, moved, values: attention({ inputs, projections }).values };
};

export default {
  render({ model, el }) {
    const lab = new Lab({ model, el }, "Mask lab", TRAITS);
    const tokens = lab.get("tokens");
    const t = tokens.length;
    const orNone = [[-1, "none"], ...tokens.map((token, i) => [i, token])];
    lab.choice("part", "Hide", [["triu", "triu: from the diagonal up"], ["tril", "tril: from the diagonal down"]]);
    lab.slider("diagonal", "Diagonal", { min: -t, max: t });
    lab.choice("fill", "Fill with", ["-inf", "0", "-1e9"].map((name) => [name, name]));
    lab.choice("place", "When", [["before", "before softmax"], ["after", "after softmax"]]);
    lab.toggle("renormalized", "Divide rows by their sum");
    lab.choice("hidden_row", "Hide all of row", orNone);
    lab.choice("nudged", "Change token", orNone);
    lab.slider("nudge", "by", { min: -2, max: 2, step: 0.1, show: (x) => x.toFixed(1) });
    lab.resetButton();

    let now = compute(lab);
    const spell = {
      hide: (i, j) => `${tokens[i]} → ${tokens[j]}: ${now.hidden[i][j] ? "hidden" : "seen"}`,
      scores: (i, j) =>
        `${tokens[i]} · ${tokens[j]}: ${format(now.scores[i][j])}` +
        (now.hidden[i][j] && lab.get("place") === "before" ? ", the fill" : ""),
      weights: (i, j) => {
        if (j === t) return `row ${tokens[i]} sums to ${format(now.sums[i])}`;
        const start = `${tokens[i]} → ${tokens[j]}: `;
        if (lab.get("place") === "after" || lab.get("renormalized")) {
          return `${start}${format(now.weights[i][j])} of a row that sums to ${format(now.sums[i])}`;
        }
        const root = Math.sqrt(now.values[0].length);
        return start + spellSoftmax(now.scores[i].map((x) => x / root), j);
      },
      context: (i, j) => {
        if (j === now.values[0].length) return `${tokens[i]} moves by ${format(now.moved[i])}`;
        return `${tokens[i]}, feature ${j + 1}: ` +
          spellDot(now.weights[i], now.values.map((line) => line[j]));
      },
    };
    spell.seen = spell.hide;
    let inspected = null;
    const read = () =>
      write(lab.readout, inspected ? spell[inspected[0]](inspected[1], inspected[2]) : HINT);

    const grids = {};
    const add = (name, title, note, columns, corner = "q \\ k") => {
      const stage = lab.stage(title, note);
      grids[name] = grid({
        label: title,
        corner,
        rows: tokens,
        columns,
        inspect: (i, j) => {
          inspected = [name, i, j];
          read();
        },
      });
      stage.show(grids[name].element);
    };
    add("hide", "True hides", "(attn_mask of nn.MultiheadAttention)", tokens);
    add("seen", "True lets through", "(attn_mask of scaled_dot_product_attention)", tokens);
    // Narrow cells, so that both stand side by side.
    for (const name of ["hide", "seen"]) grids[name].table.classList.add("al-compact");
    add("scores", "Scores ω", "", tokens);
    add("weights", "Weights α", "and the sum of each row", [...tokens, "sum"]);
    const width = lab.get("W_value")[0].length;
    add("context", "Context z", "and its largest move", [...features(width), "moves"], "token");

    return lab.start(() => {
      now = compute(lab);
      const word = (x) => (x ? "True" : "False");
      grids.hide.update(now.hidden, { text: word });
      grids.seen.update(map(now.hidden, (x) => !x), { text: word });
      grids.scores.update(now.scores);
      grids.weights.update(
        now.weights.map((line, i) => [...line, now.sums[i]]),
        { tone: (x, i, j) => (j < t ? byWeight(x) : 0) }
      );
      grids.context.update(now.context.map((line, i) => [...line, now.moved[i]]));
      for (const name of ["hide", "seen", "scores", "weights"]) {
        grids[name].flagCells("al-hidden", (i, j) => j < t && now.hidden[i][j]);
      }
      // What is hidden and has weight all the same.
      const leaks = (i, j) => j < t && now.hidden[i][j] && now.weights[i][j] !== 0;
      grids.weights.flagCells("al-alarm", leaks);
      const moves = (i) => !(now.moved[i] < 1e-12);
      grids.context.flagCells("al-alarm", (i, j) => j === width && lab.get("nudged") >= 0 && moves(i));

      const off = now.sums.filter((x) => !(Math.abs(x - 1) < 1e-9)).length;
      const sums = off ? `${off} of ${t} rows do not sum to 1.` : "All rows sum to 1.";
      const leak = tokens.some((_, i) => tokens.some((_, j) => leaks(i, j)));
      const weighty = leak ? " Hidden scores do not get the weight 0." : "";
      const nudged = lab.get("nudged");
      const moving = tokens.filter((_, i) => moves(i));
      const past = moving.filter((token) => tokens.indexOf(token) < nudged);
      const who = nudged < 0 ? "" :
        ` A change of ${tokens[nudged]} by ${short(lab.get("nudge"))} moves ` +
        `${moving.join(", ") || "no output"}: ` +
        (past.length ? `the future leaks into ${past.join(", ")}.` : "no earlier token.");
      write(lab.summary, sums + weighty + who);
      read();
    });
  },
};
