// Where every entry goes when heads are split and joined: cells that move step by step.
import { dot, isContiguous, slice, splitSteps } from "./core.js";
import { HEADS, Lab, byShare, grid, make, range, write } from "./ui.js";
import { playButton } from "./draw.js";

const TRAITS = ["batch", "num_tokens", "d_out", "num_heads", "step", "straight"];
const WIDTHS = [2, 4, 6, 8, 12];
const HINT = "Point at a cell, or move to it with the arrow keys, and follow its entry.";
const STEPS = [
  ["start", "0. x", "x"],
  ["viewed", "1. view", "x.view(b, t, h, d_head)"],
  ["split", "2. transpose", ".transpose(1, 2)"],
  ["scores", "3. scores", "q @ k.transpose(2, 3), with q = k"],
  ["back", "4. transpose back", ".transpose(1, 2)"],
  ["joined", "5. join", ".contiguous().view(b, t, d_out)"],
];
const STRAIGHT = { viewed: "x.view(b, h, t, d_head)", split: "No transpose here:" };
const AXES = {
  start: ["batch", "token"],
  viewed: ["batch", "token", "head"],
  split: ["batch", "head", "token"],
  scores: ["batch", "head", "query"],
  back: ["batch", "token", "head"],
  joined: ["batch", "token"],
};

// Written out: the site leaves out styles whose class it finds nowhere.
const TOKENS = ["hs-token-0", "hs-token-1", "hs-token-2", "hs-token-3", "hs-token-4", "hs-token-5"];

// Every index of the axes before the last two.
const leads = (shape) =>
  shape.slice(0, -2).reduce(
    (found, size) => found.flatMap((lead) => range(size).map((i) => [...lead, i])),
    [[]]
  );
const list = (words) => words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
const unique = (items) => [...new Set(items)];

// Lets every cell start where its entry was. `cells` maps an entry to its cell.
const places = (cells, root) => {
  const home = root.getBoundingClientRect();
  return new Map([...cells].map(([x, cell]) => {
    const box = cell.getBoundingClientRect();
    return [x, [box.left - home.left, box.top - home.top]];
  }));
};
const glide = (cells, before, root) => {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const [x, [left, top]] of places(cells, root)) {
    const [a, b] = before.get(x) || [left, top];
    if (a === left && b === top) continue;
    const from = { transform: `translate(${a - left}px, ${b - top}px)` };
    cells.get(x).animate([from, { transform: "none" }], { duration: 700, easing: "ease-in-out" });
  }
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Head-split lab", TRAITS);
    lab.root.classList.add("al-split");
    lab.presets("Split by", [
      ["view, then transpose", { straight: false }],
      ["Bug: one straight view", { straight: true }],
    ], {});
    lab.choice("step", "Step", STEPS.map(([, name], i) => [i, name]));
    playButton(lab, "Play", (first) => {
      const next = lab.get("step") + 1;
      lab.set({ step: next < STEPS.length ? next : first ? 0 : STEPS.length - 1 });
      return next < STEPS.length - 1 || Boolean(first && next >= STEPS.length);
    }, 1400);
    lab.resetButton();
    lab.among("straight", [[true, "1"], [false, "0"]]);
    const divisors = () =>
      range(lab.get("d_out")).map((i) => i + 1)
        .filter((h) => lab.get("d_out") % h === 0)
        .map((h) => [h, String(h)]);
    lab.settings(() => {
      lab.choice("batch", "b", [[1, "1"], [2, "2"]]);
      lab.slider("num_tokens", "t", { min: 1, max: 6 });
      lab.choice("d_out", "d_out", WIDTHS.map((d) => [d, String(d)]), (d) =>
        // One head always fits.
        d % lab.get("num_heads") ? { num_heads: 1, d_out: d } : { d_out: d }
      );
      lab.choice("num_heads", "h", divisors);
    });
    lab.between("num_heads", 1, 12, true); // the address may give both at once
    const stage = lab.stage("");
    stage.element.classList.add("al-wide");

    let all = null;
    let cells = new Map();
    let followed = null; // an entry, or what reads a score
    let drawn = "";
    const tokenOf = (x) => Math.floor(x / lab.get("d_out")) % lab.get("num_tokens");
    const origin = (x) => {
      const d = lab.get("d_out");
      const sequence = lab.get("batch") > 1 ? ` of batch ${Math.floor(x / (d * lab.get("num_tokens")))}` : "";
      return `entry ${x} is feature ${x % d} of token ${tokenOf(x)}${sequence}`;
    };
    const read = () => {
      for (const [x, cell] of cells) cell.classList.toggle("al-followed", x === followed);
      if (typeof followed === "number" && cells.has(followed)) {
        const cell = cells.get(followed);
        return lab.say(`${cell.dataset.at}: ${origin(followed)}`);
      }
      return lab.say(typeof followed === "function" ? followed() : HINT);
    };
    const follow = (what) => {
      followed = what;
      read();
    };

    // One block of entries, a row for each index of the last axis but one.
    const entries = (axes, lead, values, heads) => {
      const row = axes[lead.length];
      const where = (i, j) => `[${[...lead, i, j].join(", ")}]`;
      const title = lead.map((i, k) => `${axes[k]} ${i}`).join(", ");
      const options = {
        corner: row,
        rows: values.map((_, i) => `${row} ${i}`),
        columns: values[0].map((_, j) => String(j)),
        inspect: (i, j) => follow(values[i][j]),
      };
      const part = grid({ ...options, label: `${title}, drawn`, shape: "heat" });
      part.update(values, { text: (x, i, j) => `${where(i, j)}: ${origin(x)}` });
      part.cells.forEach((line, i) => line.forEach((cell, j) => {
        const x = values[i][j];
        cell.className = `${TOKENS[tokenOf(x)]} ${HEADS[heads.get(x) % 4]}`;
        cell.dataset.at = where(i, j);
        cell.append(String(tokenOf(x)));
        cells.set(x, cell);
      }));
      lab.table(title, "", options).update(values, { text: String });
      return part.element;
    };
    const products = (lead, values, scores) => {
      const spell = (i, j) =>
        `scores[${[...lead, i, j].join(", ")}] = ` +
        `${values[i].map((x, k) => `${x}·${values[j][k]}`).join(" + ")} = ` +
        `${dot(values[i], values[j])}: row ${i} (token ${tokenOf(values[i][0])}) with row ${j} ` +
        `(token ${tokenOf(values[j][0])}) of head ${lead[1]}`;
      const title = `scores: batch ${lead[0]}, head ${lead[1]}`;
      const options = {
        corner: "q \\ k",
        rows: scores.map((_, i) => `query ${i}`),
        columns: scores.map((_, j) => `key ${j}`),
        inspect: (i, j) => follow(() => spell(i, j)),
      };
      const part = grid({ ...options, label: `${title}, drawn`, shape: "heat" });
      part.update(scores, { text: String, tone: byShare(scores) });
      part.table.classList.add("hs-scores");
      lab.table(title, "", options).update(scores, { text: String });
      return part.element;
    };
    const paren = (x) => `(${x.join(", ")})`;
    const draw = ([name, , code], gliding = true) => {
      lab.tables.replaceChildren();
      const straight = lab.get("straight");
      const now = all[name];
      const verb = straight && name === "split" ? "the view already has" : "gives";
      write(stage.heading, (straight && STRAIGHT[name]) || code);
      write(stage.note, `${verb} the shape ${paren(now.shape)}, stride ${paren(now.strides)}, ` +
        `${isContiguous(now) ? "contiguous" : "not contiguous"}`);
      const before = gliding ? places(cells, stage.element) : new Map();
      cells = new Map();
      const heads = new Map(leads(all.split.shape).flatMap((lead) =>
        slice(all.split, ...lead).flat().map((x) => [x, lead[1]])));
      const scores = name === "scores";
      const a = scores ? all.split : all[name];
      const axes = scores || (name === "viewed" && straight) ? AXES.split : AXES[name];
      const blocks = leads(a.shape).map((lead) => {
        const values = slice(a, ...lead);
        const part = scores
          ? products(lead, values, slice(all.scores, ...lead)) : entries(axes, lead, values, heads);
        // One sequence needs no name.
        const title = lead.map((i, k) => `${axes[k]} ${i}`).slice(lab.get("batch") > 1 ? 0 : 1);
        return make("div", { class: `hs-block ${axes[1] === "head" ? HEADS[lead[1] % 4] : ""}` },
          make("p", {}, title.join(", ") || "x"), part);
      });
      stage.show(make("div", { class: "hs-blocks" }, ...blocks));
      if (gliding) glide(cells, before, stage.element);
    };
    const highest = () => Math.max(...STEPS.map((step) => {
      draw(step, false);
      return lab.stages.offsetHeight;
    }));

    // Which tokens the rows of each head hold, of the first sequence.
    const rowsOf = (a, lead) => slice(a, 0, ...lead).map((row) => unique(row.map(tokenOf)));
    const mixed = () => range(lab.get("num_heads"))
      .map((head) => [head, rowsOf(all.split, [head]).flat()])
      .filter(([, tokens]) => tokens.some((token, i) => token !== i));
    const WORDS = [
      "Each row is one token, with the features of all heads side by side.",
      "Each token's row is cut into one part per head. No entry has moved in memory.",
      "Each head has its own block, with a row for every token.",
      "Within its block, each head multiplies every row by every row.",
      "Back to one block for each token, with a row for each head.",
      "The parts of each token are side by side again: every entry is back where it was.",
    ];
    const verdict = (wrong) => {
      const step = lab.get("step");
      if (!lab.get("straight") || step === 0) return WORDS[step];
      if (!wrong.length) {
        return `With ${lab.get("num_heads") === 1 ? "one head" : "one token"}, the straight view happens to be right.`;
      }
      if (step < 4) {
        const some = wrong.slice(0, 2).map(([head, tokens]) => `head ${head} holds tokens ${list(tokens)}`);
        return `Mixed up: ${some.join("; ")}.`;
      }
      if (step === 4) return "The transpose back brings the wrong rows together.";
      const rows = rowsOf(all.joined, []);
      const i = rows.findIndex((tokens, at) => tokens.some((token) => token !== at));
      const later = rows[i].some((token) => token > i) ? ": the future leaks" : "";
      return `Mixed up: the row of token ${i} now holds tokens ${list(rows[i])}${later}.`;
    };

    return lab.start(() => {
      const [b, t, d, h] = lab.all("batch", "num_tokens", "d_out", "num_heads");
      if (d % h) return lab.set({ num_heads: 1 });
      const straight = lab.get("straight");
      all = splitSteps(b, t, d, h, straight);
      lab.hold(highest);
      const key = [b, t, d, h, lab.get("step"), straight, lab.held].join();
      if (key !== drawn) {
        if (typeof followed !== "number" || followed >= b * t * d) followed = null;
        draw(STEPS[lab.get("step")]);
      }
      drawn = key;
      const wrong = mixed();
      write(lab.summary, verdict(wrong));
      const solved = straight && !wrong.length;
      lab.ask("Can you find sizes at which the straight view happens to be right?", solved,
        `Done: with ${h === 1 ? "one head, nothing has to be kept apart" : "one token, nothing can be mixed up"}.`);
      return read();
    });
  },
};
