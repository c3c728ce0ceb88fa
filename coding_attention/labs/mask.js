// Which scores are hidden, with what, and when; and who notices a changed token.
import {
  attention, format, largestDifference, map, maskedAttention, spellDot, spellSoftmax, triangle,
} from "./core.js";
import { Lab, byWeight, features, square, write } from "./ui.js";

const TRAITS = [
  "inputs", "tokens", "part", "diagonal", "fill", "place", "renormalized", "hidden_row",
  "nudged", "nudge", "W_query", "W_key", "W_value",
];
const FILLS = { "-inf": -Infinity, 0: 0, "-1e9": -1e9 };
const HINT = "Point at a square, or move to it with the arrow keys, to see how it is computed.";

const compute = (lab) => {
  const inputs = lab.get("inputs");
  const t = inputs.length;
  const projections = lab.projections();
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
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Mask lab", TRAITS);
    const tokens = lab.get("tokens");
    const t = tokens.length;
    const orNone = [[-1, "none"], ...tokens.map((token, i) => [i, token])];
    const right = {
      part: "triu", diagonal: 1, fill: "-inf", place: "before", renormalized: false, hidden_row: -1,
    };
    lab.presets("Right, or a bug:", [
      ["-inf before softmax", right],
      ["Fill with 0", { ...right, fill: "0" }],
      ["Wrong polarity", { ...right, part: "tril", diagonal: 0 }],
      ["Zeros after softmax", { ...right, fill: "0", place: "after" }],
      ["Hide all of a row", { ...right, hidden_row: Math.floor(t / 2) }],
    ]);
    lab.choice("nudged", "Change token", orNone);
    lab.toggle("renormalized", "Divide rows by their sum");
    lab.resetButton();
    lab.settings(() => {
      lab.slider("nudge", "by", { min: -2, max: 2, step: 0.1, show: (x) => x.toFixed(1) });
      lab.choice("part", "Hide", [["triu", "triu: from the diagonal up"], ["tril", "tril: from the diagonal down"]]);
      lab.slider("diagonal", "Diagonal", { min: -t, max: t });
      lab.choice("fill", "Fill with", ["-inf", "0", "-1e9"].map((name) => [name, name]));
      lab.choice("place", "When", [["before", "before softmax"], ["after", "after softmax"]]);
      lab.choice("hidden_row", "Hide all of row", orNone);
    });

    let now = compute(lab);
    const wanted = now.weights;
    const width = lab.get("W_value")[0].length;
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
        if (j === width) return `the output of ${tokens[i]} moves by ${format(now.moved[i])}`;
        return `${tokens[i]}, feature ${j + 1}: ` +
          spellDot(now.weights[i], now.values.map((line) => line[j]));
      },
    };
    spell.seen = spell.hide;
    lab.tells(HINT, (name, i, j) => spell[name](i, j));
    const heat = lab.drawn("heat", "Weights α", "striped: hidden", { ...square(tokens), inspect: lab.inspect("weights") });
    const bars = lab.drawn("bars", "Outputs that move", "", {
      corner: "token", rows: tokens, columns: ["moves", "sum"],
      inspect: (i, j) => (j ? lab.inspect("weights")(i, t) : lab.inspect("context")(i, width)),
    });
    bars.table.classList.add("al-named");
    write(bars.stage.heading, "Outputs");
    // One drawing: a row of bars goes on with the row of squares.
    lab.root.classList.add("al-joined");
    const grids = {};
    const add = (name, title, note, columns, corner = "q \\ k") => {
      grids[name] = lab.table(title, note, { corner, rows: tokens, columns, inspect: lab.inspect(name) });
    };
    add("hide", "True hides", "(attn_mask of nn.MultiheadAttention)", tokens);
    add("seen", "True lets through", "(attn_mask of scaled_dot_product_attention)", tokens);
    // Narrow cells, so that both stand side by side.
    for (const name of ["hide", "seen"]) grids[name].table.classList.add("al-compact");
    add("scores", "Scores ω", "", tokens);
    add("weights", "Weights α", "and the sum of each row", [...tokens, "sum"]);
    add("context", "Context z", "and its largest move", [...features(width), "moves"], "token");

    return lab.start(() => {
      now = compute(lab);
      const word = (x) => (x ? "True" : "False");
      heat.update(now.weights, { tone: byWeight });
      grids.hide.update(now.hidden, { text: word });
      grids.seen.update(map(now.hidden, (x) => !x), { text: word });
      grids.scores.update(now.scores);
      grids.weights.update(
        now.weights.map((line, i) => [...line, now.sums[i]]),
        { tone: (x, i, j) => (j < t ? byWeight(x) : 0) }
      );
      grids.context.update(now.context.map((line, i) => [...line, now.moved[i]]));
      for (const part of [heat, ...["hide", "seen", "scores", "weights"].map((name) => grids[name])]) {
        part.flagCells("al-hidden", (i, j) => j < t && now.hidden[i][j]);
      }
      // What is hidden and has weight all the same.
      const leaks = (i, j) => j < t && now.hidden[i][j] && now.weights[i][j] !== 0;
      heat.flagCells("al-alarm", leaks);
      grids.weights.flagCells("al-alarm", leaks);
      const nudged = lab.get("nudged");
      const moves = (i) => !(now.moved[i] < 1e-12);
      const most = Math.max(...now.moved.filter(Number.isFinite), 1e-12);
      bars.update(now.moved.map((x, i) => [x, now.sums[i]]), {
        tone: (x, i, j) => (j ? byWeight(x) : x === x ? x / most : 1),
      });
      // In color: an output before the changed token, which may not know of it, or nan.
      bars.flagCells("al-alarm", (i, j) => !j && nudged >= 0 && moves(i) && (i < nudged || now.moved[i] !== now.moved[i]));
      grids.context.flagCells("al-alarm", (i, j) => j === width && nudged >= 0 && moves(i));

      const off = now.sums.filter((x) => !(Math.abs(x - 1) < 1e-9)).length;
      const total = off ? `${off} of ${t} rows do not sum to 1.` : "All rows sum to 1.";
      const leak = tokens.some((_, i) => tokens.some((_, j) => leaks(i, j)));
      const empty = tokens.filter((_, i) => Number.isNaN(now.sums[i]));
      const past = tokens.filter((_, i) => i < nudged && moves(i) && !Number.isNaN(now.sums[i]));
      const nan = empty.length ? ` The output of ${empty.join(", ")} is nan: nothing is left to divide by.` : "";
      const weighty = leak ? " Hidden scores get weight." : "";
      const who = past.length ? ` The future leaks: ${tokens[nudged]} moves ${past.join(", ")}.`
        : nudged < 0 ? "" : ` ${tokens[nudged]} moves no earlier token.`;
      write(lab.summary, total + (nan || (past.length ? "" : weighty) + who));
      const solved = lab.get("place") === "after" && largestDifference(now.weights, wanted) < 1e-9;
      lab.ask("Can you get the weights you started with, using a mask after softmax?", solved,
        "Done: with zeros after softmax and each row divided by its sum, the weights are those you started with.");
    });
  },
};
