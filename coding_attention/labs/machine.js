// The picture of the book: what one head computes, a row for each word, a column for each stage
// from x to z, with the head's own numbers; and the player that goes through the stages.
import { matmul, softmax, sum } from "./core.js";
import { byWeight, grid, make, put, range, svg, write } from "./ui.js";

const WIDTH = 32; // numbers in a query, a key or a value
const INPUT = 384; // in an x, of which as many as in a query are drawn
const HEADS_OF_LAYER = INPUT / WIDTH;
const ROOT = Math.sqrt(WIDTH);
export const STAGES = ["x", "q, k, v", "score", "scale", "mask", "weight", "mix", "z"];
const LAST = STAGES.length;
const PLAY = "▶ Play";
const READING = 45; // milliseconds for a letter
// Each column's name, its stage and, where it holds vectors, their color and what they are.
const COLUMNS = [
  ["x", 1, "al-token", "word"], ["q", 2, "al-query", "query"], ["k", 2, "al-k", "key"], ["v", 2, "al-v", "value"],
  ["score", 3], ["scale", 4], ["mask", 5], ["weight", 6], ["mix", 7, "al-v", ""], ["", 8], ["z", 8, "al-v", "result"],
];
const NUMBERS = COLUMNS.filter(([name, , color]) => name && !color).map(([name]) => name);
// The column that each column comes from.
const SOURCE = { q: "x", k: "x", v: "x", scale: "score", weight: "scale", mix: "v" };

const unpack = ({ scale, steps }) => {
  const all = Int8Array.from(atob(steps), (letter) => letter.charCodeAt(0));
  return range(all.length / WIDTH).map((i) => Array.from(all.slice(i * WIDTH, (i + 1) * WIDTH), (x) => x * scale));
};
// Half a row is as high as this share of the largest number: few are that large.
const highest = (rows) => 0.6 * Math.max(...rows.flat().map(Math.abs), 1e-9);

// A vector as bars: up from the middle for positive numbers, down for negative ones.
const strip = (color, label) => {
  const bars = svg("path");
  const element = svg("svg", { class: `mc-strip ${color}`, viewBox: `0 -1 ${WIDTH} 2`,
    preserveAspectRatio: "none", role: "img", "aria-label": label },
  svg("path", { class: "mc-zero", d: `M0 0H${WIDTH}` }), bars);
  const update = (vector, most) => {
    put(bars, { d: vector.map((x, i) => `M${i + 0.5} 0V${(-x / most).toFixed(3)}`).join("") });
    element.toggleAttribute("hidden", !vector.length);
  };
  return { element, update };
};

// The weights of the scores of one query, stored in thousandths.
export const weigh = (scores) => softmax(scores.map((score) => score / 1000 / ROOT));

// All numbers of the picture for the word that asks.
export const compute = (inner, asked, weights) => {
  const [x, q, k, v] = [inner.x, inner.q, inner.k, inner.v].map(unpack);
  const scores = inner.scores[asked].map((score) => score / 1000);
  return {
    x, q, k, v, scores, scaled: scores.map((score) => score / ROOT),
    mix: v.map((row, i) => row.map((value) => value * weights[i])),
    z: matmul([weights], v)[0],
  };
};

// What happens at each stage, with the numbers of the word that asks and of two others.
export const describe = ({ texts, asked, weights, scores, scaled, most, other, mean }) => {
  const [word, first, second] = [asked, most, other].map((i) => `“${texts[i]}”`);
  const both = (list, digits) => `${list[most].toFixed(digits)} for ${first}, ${list[other].toFixed(digits)} for ${second}`;
  const later = texts.length - 1 - asked;
  return [
    `Each word comes in as a vector x of ${INPUT} numbers; ${WIDTH} of them are drawn, up if positive and down if negative. [CLS] and [SEP] mark the ends of the sentence.`,
    `This head's three matrices, learned in training, turn each x into three vectors of ${WIDTH} numbers: a query q, what the word looks for; a key k, what it can be found by; and a value v, what it hands over. Their colors stay the same throughout this book.`,
    `The query of ${word} meets the key of every word: multiply number by number, and add up. The better the two match, the higher the score: ${both(scores, 1)}.`,
    `Each score is divided by √${WIDTH}, the root of a key's width, so that long vectors don't leave all of the weight (stage 6) to one word: ${scores[most].toFixed(1)} / ${ROOT.toFixed(2)} = ${scaled[most].toFixed(2)}.`,
    `This model has no mask: it reads the whole sentence. GPT would hide the hatched ${later === 1 ? "word" : "words"} after ${word} (${later} here).`,
    mean ? `A plain mean takes no notice of the scores: every weight is 1 / ${texts.length} = ${weights[0].toFixed(2)}.`
      : `Softmax turns the scaled scores into attention weights, which are positive and add up to 1: the exponential of each, divided by their sum. That's ${both(weights, 2)}.`,
    mean ? `Each value is multiplied by its word's weight, ${weights[0].toFixed(2)} for all.`
      : `Each value is multiplied by its word's weight: ${both(weights, 2)}. A small weight leaves little of a value.`,
    mean ? `The rows add up to z, which is now the same for every word: the mean of all values.`
      : `The rows of stage 7 add up to z, the new vector of ${word}: ${weights[most].toFixed(2)} of the value of ${first}, plus a little of the others. The layer has ${HEADS_OF_LAYER - 1} more heads, each with matrices of its own. Their z's are put side by side.`,
  ];
};

// How one number of the picture comes about.
const spell = ({ texts, asked, weights, scores, scaled, mean }, i, column) => {
  if (column === "weight" && mean) return `A plain mean: 1 / ${texts.length} = ${weights[i].toFixed(2)}`;
  const [score, divided] = [scores[i].toFixed(1), scaled[i].toFixed(2)];
  const powers = scaled.map(Math.exp);
  const all = sum(powers);
  const kind = {
    score: `${texts[asked]} · ${texts[i]}: the ${WIDTH} products of query and key add up to ${score}`,
    scale: `${texts[asked]} → ${texts[i]}: ${score} / ${ROOT.toFixed(2)} = ${divided}`,
    mask: `${texts[i]} isn't hidden: this model has no mask`,
    weight: `${texts[asked]} → ${texts[i]}: exp(${scaled[i].toFixed(4)}) = ${powers[i].toFixed(1)}; all ${texts.length} ` +
      `add up to ${all.toFixed(1)}; ${powers[i].toFixed(1)} / ${all.toFixed(1)} = ${weights[i].toFixed(2)}`,
  };
  return kind[column] ?? `${texts[i]}: ${weights[i].toFixed(2)} of its value goes into z`;
};

// Lets a copy of what a cell shows travel to another cell.
const send = (board, from, to, delay) => {
  const [start, end, home] = [from, to, board].map((e) => e.getBoundingClientRect());
  const copy = make("span", { class: "mc-flying", "aria-hidden": "true" },
    from.firstElementChild?.cloneNode(true) ?? from.textContent);
  Object.assign(copy.style, { left: `${start.x - home.x}px`, top: `${start.y - home.y}px`,
    width: `${start.width}px`, height: `${start.height}px` });
  copy.style.setProperty("--mc", getComputedStyle(from).getPropertyValue("--mc"));
  board.append(copy);
  const way = `translate(${end.x - start.x}px, ${end.y - start.y}px)`;
  copy.animate([{ opacity: 0 }, { opacity: 1, offset: 0.1 }, { transform: way, opacity: 1, offset: 0.9 },
    { transform: way, opacity: 0 }], { duration: 1100, delay, fill: "both", easing: "ease-in-out" })
    .finished.then(() => copy.remove(), () => copy.remove());
};

export const drawMachine = (lab) => {
  const lines = svg("svg", { class: "mc-lines", "aria-hidden": "true" });
  const element = make("div", { class: "mc-board" });
  const told = make("p", { class: "al-line" });
  let [built, parts, state, at] = ["", null, null, null];
  const build = (texts, head) => {
    const rows = grid({
      label: "One head, from x to z", corner: "word", rows: texts, columns: NUMBERS,
      inspect: (i, j) => write(told, spell(state, i, NUMBERS[j])),
    });
    const [names, ...all] = rows.table.rows;
    const heads = Object.fromEntries(COLUMNS.map(([name, stage, color, long]) => [name, make(name ? "th" : "td",
      { ...(name && { scope: "col" }), class: color ? `mc-${color}` : name ? `mc-number mc-${name}` : "mc-gap" },
      name && make("span", { class: "mc-stage" }, `${stage} `), long ? make("span", { class: "mc-long" }, `${long} `) : "", name)]));
    names.replaceChildren(names.firstChild, ...Object.values(heads));
    const cells = all.map((line, i) => Object.fromEntries(COLUMNS.map(([name, , color]) =>
      [name, rows.cells[i][NUMBERS.indexOf(name)] ?? make("td", { class: color ? `mc-drawn mc-${color}` : "mc-drawn" })])));
    const strips = cells.map((row, i) => Object.fromEntries(COLUMNS.filter(([, , color]) => color)
      .map(([name, , color]) => [name, strip(color, `${name} of ${texts[i]}`)])));
    all.forEach((line, i) => {
      line.append(...Object.values(cells[i]));
      for (const [name, { element: drawn }] of Object.entries(strips[i])) cells[i][name].append(drawn);
    });
    const own = Number(head.split(".")[1]);
    const slots = range(HEADS_OF_LAYER).map((h) => make("span", { class: h === own ? "mc-head mc-own" : "mc-head" }));
    const joined = make("div", { class: "mc-joined" },
      make("span", {}, `z of all ${HEADS_OF_LAYER} heads`), make("div", { class: "mc-heads" }, ...slots));
    element.replaceChildren(lines, rows.element, joined, told);
    return { rows, heads, cells, strips, joined, slot: slots[own], lines: all };
  };

  // Curves as thick as the weights, from each row of the mix to z.
  const draw = () => {
    lines.replaceChildren();
    if (!state) return;
    const home = element.getBoundingClientRect();
    put(lines, { viewBox: `0 0 ${home.width} ${home.height}` });
    if (lab.get("stage") < LAST) return;
    const end = parts.cells[state.asked].z.getBoundingClientRect();
    const [right, low] = [end.left - home.x, end.top + end.height / 2 - home.y];
    lines.append(...parts.cells.flatMap((row, i) => {
      const box = row.mix.getBoundingClientRect();
      const [left, high] = [box.right - home.x, box.top + box.height / 2 - home.y];
      const middle = (left + right) / 2;
      return state.weights[i] < 0.02 ? [] : [svg("path", { class: "lk-line", style: `--weight:${state.weights[i].toFixed(3)}`,
        d: `M${left} ${high}C${middle} ${high} ${middle} ${low} ${right} ${low}` })];
    }));
  };
  new ResizeObserver(draw).observe(element);

  // What this stage computes travels there from the stage before.
  const move = (stage) => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const { cells } = parts;
    cells.forEach((row, i) => {
      const go = (from, to) => send(element, from, to, 40 * i);
      if (stage === 3) go(cells[state.asked].q, row.k);
      if (stage === LAST) go(row.mix, cells[state.asked].z);
      for (const [name, of] of COLUMNS) if (of === stage && SOURCE[name]) go(row[SOURCE[name]], row[name]);
    });
  };

  // Draws each stage as past, present, to come, or absent in this model.
  const mark = (stage) => {
    const missing = (of) => of === 5 || (state.mean && [3, 4].includes(of));
    for (const [name, of] of COLUMNS) {
      for (const cell of [parts.heads[name], ...parts.cells.map((row) => row[name])]) {
        cell.classList.toggle("mc-now", of === stage && name !== "");
        cell.classList.toggle("mc-later", of > stage);
        cell.classList.toggle("mc-absent", missing(of));
      }
    }
    parts.joined.classList.toggle("mc-later", stage < LAST);
    parts.lines.forEach((line, i) => line.classList.toggle("mc-asks", i === state.asked));
    parts.rows.flagCells("mc-would", (i, j) => NUMBERS[j] === "mask" && i > state.asked);
  };

  const update = (next, head, stage) => {
    const key = [head, ...next.texts].join(" ");
    state = next;
    if (key !== built) parts = build(next.texts, head);
    built = key;
    const { x, q, k, v, mix, z, scores, scaled, weights, asked } = next;
    const drawn = { x, q, k, v, mix, z: x.map((_, i) => (i === asked ? z : [])) };
    for (const [name, rows] of Object.entries(drawn)) {
      const most = highest(["mix", "z"].includes(name) ? v : rows);
      rows.forEach((row, i) => parts.strips[i][name].update(row, most));
    }
    parts.slot.replaceChildren(parts.strips[asked].z.element.cloneNode(true));
    parts.rows.update(weights.map((weight, i) => [scores[i], scaled[i], null, weight]), {
      text: (number, i, j) => (number === null ? "" : number.toFixed(j ? 2 : 1)),
      tone: (number, i, j) => (NUMBERS[j] === "weight" ? byWeight(number) : 0),
    });
    write(told, "Point at a number to see how it is computed.");
    mark(stage);
    draw();
    if (at !== null && stage === at + 1) move(stage);
    at = stage;
  };
  return { element, update };
};

// Plays one stage after another, each for as long as its sentence takes to read.
export const addPlayer = (lab) => {
  let [playing, timer, expected] = [false, null, 0];
  const next = () => (lab.get("stage") % LAST) + 1;
  const show = (stage) => {
    expected = stage;
    lab.set({ stage });
  };
  const run = (on) => {
    playing = on;
    write(button, on ? "Ⅱ Pause" : PLAY);
  };
  const button = lab.button(PLAY, () => {
    run(!playing);
    if (playing) show(next());
    else clearTimeout(timer);
  });
  button.classList.add("mc-play");
  lab.button("Next", () => lab.set({ stage: next() }));
  lab.slider("stage", "Stage", { min: 1, max: LAST, show: (stage) => `${stage} ${STAGES[stage - 1]}` });
  // To be called after each drawing. Whoever moves on by hand has taken over.
  return () => {
    clearTimeout(timer);
    if (!playing) return;
    const stage = lab.get("stage");
    if (stage !== expected || stage === LAST) return run(false);
    timer = setTimeout(() => button.isConnected && show(stage + 1), READING * lab.summary.textContent.length);
  };
};
