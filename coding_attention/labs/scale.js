// How the width of keys spreads the scores, and what a divisor does to softmax.
import { drawScores, format, map, scaleMeasures, short, spellSoftmax } from "./core.js";
import { Lab, byWeight, clamp, put, range, svg, write } from "./ui.js";
import { linear, logarithmic, path } from "./chart.js";
import { axes, canvas, cursor, legend } from "./draw.js";

const TRAITS = ["d_k", "divisor", "other", "seed"];
const WIDEST = 1024;
const KEYS = 8;
const WIDTHS = [1, 4, 16, 64, 256, 1024];
// Where the slider stops: powers of two and half-way between them.
const STOPS = [1, ...range(9).flatMap((k) => [2 * 2 ** k, 3 * 2 ** k]), WIDEST];
const HINT = "Drag the line over d_k. Point at a bar to read its sum.";
const COLUMNS = ["d_k", "divisor", "expected", "spread", "largest α", "entropy", "slope"];
const MEANING = [
  "the width of a key",
  "what the scores are divided by",
  "the standard deviation in theory: √d_k / divisor",
  "the standard deviation of 128 scores: 16 queries with 8 keys each",
  "the largest of 8 weights, averaged over 16 queries",
  "the entropy of 8 weights, averaged over 16 queries; log 8 = 2.0794 if all are equal",
  "the size of softmax's derivative, averaged over 16 queries; near 0, the weights hardly move",
];

const verdict = (largest, entropy) => {
  if (largest > 0.85) return "Softmax is saturated.";
  if (entropy > 2) return "All keys look alike.";
  return "";
};

// The curve that softmax lays through the scores of one query, above the histogram of all.
const curveAndHistogram = () => {
  const root = canvas(210, 210, "Softmax of one query, above a histogram of all scores");
  const [above, below] = [axes(root), axes(root)];
  const curve = svg("path", { class: "al-curve" });
  const points = range(KEYS).map(() => svg("circle", { class: "al-point", r: 5 }));
  const bins = range(24).map(() => svg("rect", { class: "al-bin" }));
  root.append(...bins, curve, ...points);
  return {
    root,
    update(now, all) {
      const most = Math.max(...all.map(Math.abs));
      const unit = 10 ** Math.floor(Math.log10(most));
      const edge = [3, 10].map((x) => x * unit).find((x) => x >= most);
      const x = linear([-edge, edge], [30, 202]);
      const y = linear([0, 1], [88, 18]);
      above({ x, y, yLabel: "α of the first query", yTicks: [0, 0.5, 1] });
      const top = Math.max(...now.scores);
      const weight = now.weights[now.scores.indexOf(top)];
      const through = (score) => weight * Math.exp(score - top);
      const places = range(241).map((k) => -edge + (k * edge) / 120)
        .filter((score) => through(score) <= 1);
      curve.setAttribute("d", path(places, x, (s) => y(through(s))));
      points.forEach((point, i) => put(point, { cx: x(now.scores[i]), cy: y(now.weights[i]) }));
      const counts = bins.map(() => 0);
      for (const s of all) counts[Math.min(23, Math.floor(((s + edge) / (2 * edge)) * 24))] += 1;
      const high = linear([0, Math.max(...counts)], [178, 122]);
      below({ x, y: high, xLabel: "score / divisor", yLabel: "how many of 128 scores" });
      bins.forEach((bin, k) => put(bin, {
        x: x(-edge + (k * edge) / 12) + 0.5, width: 172 / 24 - 1,
        y: high(counts[k]), height: 178 - high(counts[k]),
      }));
    },
  };
};

// The largest weight and the slope of softmax over the width of a key.
const saturation = (lab) => {
  const root = canvas(210, 150, "Largest weight and slope of softmax by d_k");
  const x = logarithmic([1, WIDEST], [30, 196]);
  const y = linear([0, 1], [116, 18]);
  axes(root)({ x, y, xLabel: "d_k", xTicks: WIDTHS, yTicks: [0, 0.5, 1] });
  const [largest, slope] = ["al-curve", "al-curve al-second"].map((kind) => svg("path", { class: kind }));
  root.append(largest, slope);
  const nearest = (px) => {
    const width = x.invert(px);
    return STOPS.reduce((a, b) => (Math.abs(Math.log(b / width)) < Math.abs(Math.log(a / width)) ? b : a));
  };
  const place = () => STOPS.findIndex((stop) => stop >= lab.get("d_k"));
  const mark = cursor(root, "d_k, the width of a key", [[18, 116]], {
    to: (px) => lab.set({ d_k: nearest(px) }),
    by: (steps) => lab.set({ d_k: STOPS[clamp(place() + steps, 0, STOPS.length - 1)] }),
  });
  return {
    root,
    update(rows) {
      largest.setAttribute("d", path(rows, ([d]) => x(d), ([, row]) => y(row.largest)));
      slope.setAttribute("d", path(rows, ([d]) => x(d), ([, row]) => y(row.gradient)));
      const d_k = lab.get("d_k");
      mark(x(d_k), `d_k ${d_k}`, d_k, [1, WIDEST]);
    },
  };
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Scale lab", TRAITS);
    lab.slider("d_k", "d_k", {
      min: 0,
      max: STOPS.length - 1,
      read: (width) => STOPS.findIndex((stop) => stop >= width),
      change: (at) => ({ d_k: STOPS[at] }),
    });
    lab.choice("divisor", "Divide by", [
      ["none", "nothing"], ["root", "√d_k"], ["full", "d_k"], ["other", "√ of another d"],
    ]);
    lab.resetButton();
    lab.settings(() => {
      lab.number("d_k", "exactly", { min: 1, max: WIDEST });
      lab.number("other", "another d", { min: 1, max: WIDEST });
      lab.newDraws();
    });
    lab.root.classList.add("al-scale");

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
    lab.tells(HINT, (name, i, j) => {
      if (name === "measures") return `${COLUMNS[j]} ${format(lines[i][j])}: ${MEANING[j]}`;
      if (i) return `key ${j + 1}: ${spellSoftmax(now.scores, j)}`;
      const divisor = divideBy(lab.get("d_k"));
      return `key ${j + 1}: ω / divisor = ${short(now.scores[j] * divisor)} / ${short(divisor)} ` +
        `= ${format(now.scores[j])}`;
    });
    const keys = range(KEYS).map((i) => `key ${i + 1}`);
    const over = saturation(lab);
    const wide = lab.stage("Saturation over d_k");
    wide.show(over.root, legend(["bar", "largest weight"], ["second", "slope of softmax (dashed)"]));
    const curves = curveAndHistogram();
    lab.stage("Scores and their softmax").show(curves.root);
    const bars = lab.drawn("bars", "Weights α of the first query", "", {
      corner: "key", rows: keys, columns: ["α"], inspect: (i) => lab.inspect("one")(1, i),
    });
    write(bars.stage.heading, "Weights α");
    const one = lab.table("One of 16 queries and its 8 keys", "of width d_k", {
      corner: "row", rows: ["scores / divisor", "weights α"], columns: keys, inspect: lab.inspect("one"),
    });
    const measures = lab.table("By width", "", {
      corner: "row", rows: ["now", ...WIDTHS.map((width) => `d_k ${width}`)], columns: COLUMNS,
      inspect: lab.inspect("measures"),
    });

    let known = "";
    let rows = [];
    return lab.start(() => {
      if (seed !== lab.get("seed")) {
        seed = lab.get("seed");
        drawn = drawScores({ seed, queries: 16, keys: KEYS, width: WIDEST });
      }
      const key = [seed, lab.get("divisor"), lab.get("other")].join();
      if (key !== known) rows = STOPS.map((width) => [width, measure(width)]);
      known = key;
      const d_k = lab.get("d_k");
      now = measure(d_k);
      lines = [now.line, ...WIDTHS.map((width) => rows.find(([d]) => d === width)[1].line)];
      over.update(rows);
      curves.update(now, map(drawn, (totals) => totals[d_k - 1] / divideBy(d_k)).flat());
      bars.update(now.weights.map((w) => [w]), { tone: byWeight });
      one.update([now.scores, now.weights], { tone: (x, i) => (i ? byWeight(x) : 0) });
      measures.update(lines, {
        text: (x, i, j) => (j === 0 ? String(x) : format(x)),
        tone: (x, i, j) => (j === 4 ? byWeight(x) : 0),
      });
      measures.choose(0);
      const { spread, largest, entropy, gradient } = now;
      write(
        lab.summary,
        `With d_k = ${d_k}, scores spread by ${format(spread)}. On average, the largest of 8 weights is ` +
          `${format(largest)}, and the slope of softmax ${format(gradient)}. ` +
          verdict(largest, entropy)
      );
      const solved = d_k >= 64 && largest < 0.6;
      lab.ask(
        "Can you keep the largest weight below 0.6 on average, with d_k at 64 or more?",
        solved, `Done: keys of width ${d_k}, and no key gets nearly all the weight.`);
    });
  },
};
