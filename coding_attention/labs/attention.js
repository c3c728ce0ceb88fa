// Vectors that readers move, the weights that follow, and the mean that these make.
import {
  attention, causal, format, map, short, spellDot, spellSoftmax, transpose,
} from "./core.js";
import { Lab, argmax, byShare, byWeight, features, make, range, square, write } from "./ui.js";
import { legend, plane, reachOf } from "./draw.js";

const TRAITS = [
  "inputs", "tokens", "query", "averaged", "trainable", "scaled", "causal",
  "W_query", "W_key", "W_value",
];
const HINT = "Drag a token, or move it with the arrow keys. Point at a bar to read its sum.";

const compute = (lab) => {
  const inputs = lab.get("inputs");
  const trainable = lab.get("trainable");
  const projections = trainable ? lab.projections() : null;
  const width = trainable ? projections.key[0].length : inputs[0].length;
  return {
    ...attention({
      inputs,
      projections,
      // Scores that count for nothing leave the plain mean.
      divisor: lab.get("averaged") ? Infinity : lab.get("scaled") ? Math.sqrt(width) : 1,
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
    if (lab.get("causal") && j > i) return `${tokens[j]} comes after ${tokens[i]}: hidden`;
    return `${tokens[i]} · ${tokens[j]}: ω = ${spellDot(now.queries[i], now.keys[j])}`;
  }
  if (name === "weights") {
    if (now.scores[i][j] === -Infinity) {
      return `${tokens[j]} comes after ${tokens[i]}: hidden, so its weight is 0`;
    }
    if (lab.get("averaged")) {
      return `${tokens[i]} → ${tokens[j]}: a plain mean, whatever ω is, so 1 / ` +
        `${now.weights[i].filter((w) => w > 0).length} = ${format(now.weights[i][j])}`;
    }
    const raw = now.raw[i][j];
    const divided = lab.get("scaled")
      ? `ω / √d_k = ${short(raw)} / √${now.width} = ${format(now.scores[i][j])}; `
      : "";
    return `${tokens[i]} → ${tokens[j]}: ${divided}${spellSoftmax(now.scores[i], j)}`;
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

const pairs = (count) =>
  range(count).flatMap((a) => range(count - a - 1).map((k) => [a, a + k + 1]));
// The two numbers of each row that a plane shows; a row of one number has 0 as its second.
const along = (rows, [a, b]) => rows.map((row) => [row[a], b < row.length ? row[b] : 0]);

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Attention lab", TRAITS);
    const tokens = lab.get("tokens");
    lab.choice("query", "Query", tokens.map((token, i) => [i, token]));
    lab.resetButton();
    lab.toggle("averaged", "Plain mean");
    lab.toggle("trainable", "Trainable projections");
    lab.toggle("scaled", "Divide scores by √d_k");
    lab.toggle("causal", "Causal mask");
    lab.param(
      "inputs",
      (text) => {
        const rows = text.split(";").map((row) => row.split(",").map(Number));
        const first = lab.first.inputs;
        const fits = rows.length === first.length && rows.every((row) =>
          row.length === first[0].length && row.every((x) => Number.isFinite(x) && Math.abs(x) <= 1e6));
        return fits ? rows : undefined;
      },
      (rows) => rows.map((row) => row.map(short).join(",")).join(";")
    );

    let now = compute(lab);
    lab.tells(HINT, (...cell) => spell(lab, now, ...cell));

    // The two features that the plane of the tokens shows.
    const axesOf = pairs(now.inputs[0].length).slice(0, 120);
    let shown = axesOf[0] || [0, 1];
    const setPoint = (i, point) =>
      lab.set({
        inputs: map(lab.get("inputs"), (x, a, b) =>
          a === i && shown.includes(b) ? point[shown.indexOf(b)] : x),
      });
    lab.root.classList.add("al-attention");
    const space = lab.stage("Tokens x", "drag them");
    const spaces = {
      inputs: plane({
        label: "Tokens x", names: tokens, kind: "token", side: 200, reach: reachOf(now.inputs),
        move: setPoint, seen: (i) => lab.inspect("weights")(lab.get("query"), i),
      }),
    };
    const axis = make("select", {
      "aria-label": "Features of the plane",
      change: () => {
        shown = axesOf[axis.selectedIndex];
        lab.redraw();
      },
    }, ...axesOf.map(([a, b]) => make("option", {}, `features ${a + 1} and ${b + 1}`)));
    space.show(spaces.inputs.element);
    if (axesOf.length > 1) lab.settings(() => lab.add(axis));
    const called = ([a, b]) => `${a + 1}-${b + 1}`;
    lab.own.features = {
      text: () => (axis.selectedIndex > 0 ? called(shown) : ""),
      take: (text) => {
        axis.selectedIndex = Math.max(0, axesOf.findIndex((pair) => called(pair) === text));
        shown = axesOf[axis.selectedIndex] || shown;
      },
    };
    const bars = lab.drawn("bars", "Weights α of the query", "", {
      corner: "token", rows: tokens, columns: ["α"],
      inspect: (i) => lab.inspect("weights")(lab.get("query"), i),
      pick: (i) => lab.set({ query: i }),
    });
    write(bars.stage.heading, "Weights α");
    bars.stage.element.append(legend(["query", "query"], ["z", "z"]));
    const full = attention({ inputs: now.inputs, projections: lab.projections() });
    const stages = { keys: lab.stage("Keys k, and q"), values: lab.stage("Values v, and z") };
    spaces.keys = plane({
      label: "Keys k", names: tokens, kind: "k", side: 168,
      reach: reachOf(full.keys, full.queries), seen: (i) => lab.inspect("scores")(lab.get("query"), i),
    });
    spaces.values = plane({
      label: "Values v", names: tokens, kind: "v", side: 168,
      reach: reachOf(full.values), seen: (i) => lab.inspect("weights")(lab.get("query"), i),
    });
    for (const name of ["keys", "values"]) stages[name].show(spaces[name].element);
    const heat = lab.drawn("heat", "Weights α of all queries", "", {
      ...square(tokens), inspect: lab.inspect("weights"), pick: (i) => lab.set({ query: i }),
    });

    const titles = {
      inputs: ["Inputs x", "(edit any value)"],
      queries: ["Queries q = x W_query", ""],
      keys: ["Keys k = x W_key", ""],
      values: ["Values v = x W_value", ""],
      scores: ["1. Scores ω", "= q · k"],
      weights: ["2. Weights α", ""],
      context: ["3. Context z = Σ α · v", ""],
    };
    const grids = {};
    const build = () => {
      lab.tables.replaceChildren();
      for (const [name, [title, note]] of Object.entries(titles)) {
        grids[name] = lab.table(title, note, {
          ...(["scores", "weights"].includes(name) ? square(tokens)
            : { corner: "token", rows: tokens, columns: features(now[name][0].length) }),
          inspect: lab.inspect(name),
          pick: name === "inputs" ? null : (i) => lab.set({ query: i }),
          edit: name !== "inputs" ? null : (i, j, number) =>
            lab.set({ inputs: map(lab.get("inputs"), (x, a, b) => (a === i && b === j ? number : x)) }),
        });
      }
    };
    let size = "";

    // The question that the first state asks: away from the token that got the most.
    const first = now.weights[lab.get("query")];
    const others = first.map((w, i) => (i === lab.get("query") ? -1 : w));
    const [asked, away] = [lab.get("query"), argmax(others)];
    const task = () => {
      if (tokens.length < 3) return;
      const row = now.weights[asked];
      const solved = row.every((w, j) => j === away || w > row[away]);
      lab.ask(
        `Can you make ${tokens[asked]} look away from ${tokens[away]}, so that ` +
          `${tokens[away]} gets the least weight of all?`,
        solved, `Done: ${tokens[away]} now gets the least weight of all from ${tokens[asked]}.`);
    };

    const draw = () => {
      now = compute(lab);
      const query = lab.get("query");
      const [row, trainable] = [now.weights[query], lab.get("trainable")];
      const shape = [trainable, now.width, now.context[0].length].join();
      if (shape !== size) {
        lab.seen = null; // its cell may be gone
        build();
      }
      size = shape;
      const names = shown.map((k) => (k < now.inputs[0].length ? `x ${k + 1}` : ""));
      spaces.inputs.update({
        at: along(now.inputs, shown), axisNames: names, chosen: query, weights: row,
        z: trainable ? null : along([now.context[query]], shown)[0],
      });
      // Keys and values, or the weights of all queries: one room for both.
      for (const stage of Object.values(stages)) stage.element.hidden = !trainable;
      const room = trainable ? lab.tables : lab.stages;
      const { element } = heat.stage; // if it moves, it loses the focus
      if (element.parentNode !== room) room.insertBefore(element, trainable ? room.firstChild : null);
      for (const name of ["queries", "keys", "values"]) {
        grids[name].stage.element.hidden = !trainable;
      }
      if (trainable) {
        spaces.keys.update({
          at: along(now.keys, [0, 1]), query: along([now.queries[query]], [0, 1])[0],
          axisNames: ["k 1", "k 2"],
        });
        spaces.values.update({
          at: along(now.values, [0, 1]), z: along([now.context[query]], [0, 1])[0],
          weights: row, axisNames: ["v 1", "v 2"],
        });
      }
      bars.update(row.map((x) => [x]), { tone: byWeight });
      bars.choose(query);
      heat.update(now.weights, { tone: byWeight });
      heat.choose(query);
      write(grids.weights.stage.note,
        lab.get("averaged") ? "a plain mean"
          : lab.get("scaled") ? `= softmax(ω / √${now.width})` : "= softmax(ω)");
      for (const [name, part] of Object.entries(grids)) {
        if (!trainable && ["queries", "keys", "values"].includes(name)) continue;
        const values = name === "scores"
          ? map(now.raw, (x, i, j) => (lab.get("causal") && j > i ? -Infinity : x))
          : now[name];
        const tone = { weights: byWeight, scores: byShare(values, 0.45) }[name] || null;
        part.update(values, { tone });
        part.choose(query);
      }
      const most = argmax(row);
      write(
        lab.summary,
        `${tokens[query]} attends most to ${tokens[most]} (${format(row[most])}). ` +
          `Its context is [${now.context[query].map(format).join(", ")}].`
      );
      task();
    };
    return lab.start(draw);
  },
};
