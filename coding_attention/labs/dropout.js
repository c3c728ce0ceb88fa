// Weights that are dropped, and the mean over many draws that comes back to them.
import {
  countKept, drawKept, dropout, filled, format, largestDifference, meanDropout, rowSums, short,
} from "./core.js";
import { Lab, byWeight, clamp, put, range, square, svg, write } from "./ui.js";
import { linear, logarithmic, path } from "./chart.js";
import { axes, canvas, cursor, legend, playButton } from "./draw.js";

const TRAITS = ["weights", "tokens", "p", "seed", "draws", "training", "bug", "query", "key"];
const MOST = 1000;
const NEAR = 0.1;
const HINT = "Drag the line, or click a cell to follow its mean.";
const percent = (x) => `${Math.round(100 * x)} %`;

// The mean of each weight over 1, 2, 3 … draws, as a share of the weight.
const chart = (lab) => {
  const root = canvas(320, 150, "Mean of each weight over the draws, as a share of the weight");
  const x = logarithmic([1, MOST], [34, 306]);
  const y = linear([0, 2], [116, 18]);
  axes(root)({
    x, y, xLabel: "draws", yLabel: "mean / weight", xTicks: [1, 10, 100, MOST],
    yTicks: [0, 1, 2],
  });
  const rule = svg("path", { class: "al-rule" });
  const others = svg("path", { class: "al-curve al-faint" });
  const picked = svg("path", { class: "al-curve" });
  root.append(others, rule, picked);
  const within = (n) => clamp(Math.round(n), 1, MOST);
  const mark = cursor(root, "Draws in the mean", [[18, 116]], {
    to: (px) => lab.set({ draws: within(x.invert(px)) }),
    by: (steps) => {
      const n = lab.get("draws");
      lab.set({ draws: within(n + steps * Math.max(1, Math.round(n / 20))) });
    },
  });
  const all = [...new Set(range(91).map((k) => Math.round(10 ** (k / 30))))];
  return {
    root,
    // `share(n, i, j)` is the mean after n draws over the weight; `goal` where all go.
    update(cells, share, goal) {
      const draws = lab.get("draws");
      const shown = [...all.filter((n) => n < draws), draws];
      const mean = ([i, j]) => path(shown, x, (n) => y(Math.min(share(n, i, j), 2)));
      const chosen = ([i, j]) => i === lab.get("query") && j === lab.get("key");
      put(others, { d: cells.filter((cell) => !chosen(cell)).map(mean).join("") });
      put(picked, { d: cells.filter(chosen).map(mean).join("") });
      put(rule, { d: [1, goal].map((at) => `M34,${y(at)}H306`).join("") });
      mark(x(draws), `${draws} draws`, draws, [1, MOST]);
    },
  };
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Dropout lab", TRAITS);
    const tokens = lab.get("tokens");
    const t = tokens.length;
    lab.presets("Right, or a bug:", [
      ["Divide by 1 - p", { bug: "none", training: true }],
      ["Forget to divide", { bug: "undivided", training: true }],
      ["Left on in eval()", { bug: "left on", training: false }],
    ], {});
    lab.among("bug", ["none", "undivided", "left on"].map((name) => [name, name]));
    lab.between("draws", 1, MOST, true);
    const more = (count) => {
      const n = lab.get("draws");
      lab.set({ draws: n === MOST ? count : Math.min(n + count, MOST) });
    };
    lab.button("Draw once", () => more(1));
    lab.button("Draw 100", () => more(100));
    playButton(lab, "Play", (first) => {
      const n = lab.get("draws");
      if (n === MOST && !first) return false;
      return lab.set({ draws: n === MOST ? 1 : Math.min(n + Math.ceil(n / 12), MOST) });
    }, 120);
    lab.resetButton();
    lab.settings(() => {
      lab.toggle("training", "train(), not eval()");
      lab.slider("p", "p", { min: 0, max: 0.9, step: 0.05, show: (p) => p.toFixed(2) });
      lab.newDraws();
    });
    lab.root.classList.add("al-joined");
    for (const trait of ["query", "key"]) lab.among(trait, tokens.map((name, i) => [i, name]));

    // Whether anything is dropped, and by what share the kept weights are divided.
    const how = () => {
      const bug = lab.get("bug");
      const drops = lab.get("training") || bug === "left on";
      return { bug, drops, divide: drops && bug !== "undivided" ? lab.get("p") : 0 };
    };
    const first = () => MOST * (lab.get("seed") - 1) + 1;
    let now = null;
    const spell = {
      weights: (i, j) => format(lab.get("weights")[i][j]),
      dropped: (i, j) => {
        const weight = lab.get("weights")[i][j];
        if (!how().drops) return `${format(weight)}, unchanged in eval()`;
        if (!now.kept[i][j]) return "dropped, so 0.0000";
        return now.divide
          ? `${short(weight)} / (1 - ${short(now.divide)}) = ${format(now.dropped[i][j])}`
          : `kept as it is, ${format(weight)}`;
      },
      mean: (i, j) => {
        const [n, weight] = [lab.get("draws"), lab.get("weights")[i][j]];
        if (!how().drops) return `${format(weight)} in every draw`;
        const divided = now.divide ? ` / (1 - ${short(now.divide)})` : "";
        return `kept in ${now.counts[i][j]} of ${n} draws: ${now.counts[i][j]} / ${n} · ` +
          `${short(weight)}${divided} = ${format(now.mean[i][j])}; the weight is ${format(weight)}`;
      },
    };
    lab.tells(HINT, (name, i, j) => (j === t
      ? `row ${tokens[i]} sums to ${format(rowSums(now[name])[i])}`
      : `${tokens[i]} → ${tokens[j]}: ${spell[name](i, j)}`));
    const pick = (i, j) => lab.get("weights")[i][j] > 0 && lab.set({ query: i, key: j });
    const cell = { ...square(tokens), pick };
    const titles = { weights: "Weights α", dropped: "The last draw", mean: "Mean over the draws" };
    const notes = { weights: "as they were", dropped: "× dropped", mean: "" };
    const [cells, grids] = [{}, {}];
    for (const name of ["dropped", "mean", "weights"]) {
      cells[name] = lab.drawn("heat", titles[name], notes[name], { ...cell, inspect: lab.inspect(name) });
    }
    for (const name of ["mean", "weights"]) lab.aside(cells[name].stage);
    const curves = chart(lab);
    lab.stage("Each mean as a share of its weight").show(
      curves.root, legend(["bar", "the framed weight"], ["token", "all others"]));
    for (const [name, title] of Object.entries(titles)) {
      grids[name] = lab.table(title, name === "dropped" ? "striped: dropped" : "", {
        ...cell, columns: [...tokens, "sum"], inspect: lab.inspect(name),
      });
    }

    let [known, counts] = ["", []];
    const compute = () => {
      const weights = lab.get("weights");
      const [p, n] = [lab.get("p"), lab.get("draws")];
      const { drops, divide, bug } = how();
      if (!drops) {
        const kept = filled(t, t, () => true);
        return { weights, kept, dropped: weights, before: weights, mean: weights, divide, bug, share: () => 1 };
      }
      const key = [first(), p].join();
      if (key !== known) counts = countKept(t, t, p, first(), MOST);
      known = key;
      const drawn = (k) => drawKept(t, t, p, first() + k - 1);
      const kept = drawn(n);
      return {
        weights, kept, divide, bug,
        counts: counts[n - 1],
        dropped: dropout(weights, kept, divide),
        before: dropout(weights, drawn(n > 1 ? n - 1 : 2), divide),
        mean: meanDropout(weights, counts[n - 1], n, divide),
        share: (k, i, j) => counts[k - 1][i][j] / k / (1 - divide),
      };
    };
    const verdict = (low, high) => {
      const [p, n] = [lab.get("p"), lab.get("draws")];
      const off = `After ${n} draws, they are between ${percent(low)} and ${percent(high)}`;
      if (now.bug === "left on" && !lab.get("training")) {
        return "Dropout is left on in eval(): the same sentence gets different weights on each pass. " +
          `This pass and the last differ by up to ${format(largestDifference(now.dropped, now.before))}.`;
      }
      if (!lab.get("training")) return "In eval() nothing is dropped and nothing is divided.";
      if (now.bug === "undivided") {
        return `Nothing is divided: the means approach ${short(1 - p)} times their weights. ${off}.`;
      }
      return `Kept weights are divided by 1 - p = ${short(1 - p)}, so the means approach the weights. ${off}.`;
    };

    return lab.start(() => {
      now = compute();
      const [n, weights] = [lab.get("draws"), now.weights];
      const seen = weights.flatMap((row, i) => row.flatMap((w, j) => (w > 0 ? [[i, j]] : [])));
      const shares = seen.map(([i, j]) => now.share(n, i, j));
      const [low, high] = [Math.min(...shares), Math.max(...shares)];
      curves.update(seen, now.share, now.bug === "undivided" && how().drops ? 1 - lab.get("p") : 1);
      const out = (i, j) => j < t && !now.kept[i][j] && weights[i][j] > 0;
      for (const name of Object.keys(titles)) {
        cells[name].update(now[name], { tone: byWeight });
        cells[name].flagCells("al-seen", (i, j) => i === lab.get("query") && j === lab.get("key"));
        grids[name].update(now[name].map((row, i) => [...row, rowSums(now[name])[i]]),
          { tone: (x, i, j) => (j < t ? byWeight(x) : 0) });
      }
      cells.dropped.flagCells("al-out", out);
      grids.dropped.flagCells("al-hidden", out);
      write(lab.summary, verdict(low, high));
      const fair = now.bug === "none" && lab.get("training") && lab.get("p") >= 0.5;
      const solved = fair && low >= 1 - NEAR && high <= 1 + NEAR;
      lab.ask(
        `Can you bring every mean to within ${percent(NEAR)} of its weight, with p at 0.5 or more?`, solved,
        `Done: with ${n} draws, every mean is that close. Twice as close takes about four times as many.`);
    });
  },
};
