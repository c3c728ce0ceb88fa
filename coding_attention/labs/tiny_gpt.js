// A small model over its training: its heads, each of which a click switches off, and what
// the trained model expects next, computed here from weights of one byte each.
import { linear, path } from "./chart.js";
import { dot, format, softmax } from "./core.js";
import { axes, canvas, cursor, playButton } from "./draw.js";
import { Lab, argmax, clamp, make, pattern, range, svg, write } from "./ui.js";

// ---- the model ----

// Parameters by name: vectors, and matrices as arrays of rows. Each row lies there as its
// scale and as many steps of it.
export const readWeights = (text, shapes) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const data = new DataView(bytes.buffer);
  let place = 0;
  const row = (width) => {
    const scale = data.getFloat32(place, true);
    place += 4;
    return Array.from({ length: width }, () => scale * data.getInt8(place++));
  };
  return Object.fromEntries(
    shapes.map(([name, [rows, columns]]) =>
      [name, columns ? Array.from({ length: rows }, () => row(columns)) : row(rows)])
  );
};
// The error function by a series of positive terms, to the last digits.
const erf = (x) => {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x;
  let total = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(total); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    total += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
};
const gelu = (x) => (x * (1 + erf(x / Math.SQRT2))) / 2;
const plus = (u, v) => u.map((x, i) => x + v[i]);
const layerNorm = (row, weight, bias) => {
  const center = row.reduce((a, b) => a + b) / row.length;
  const spread = row.reduce((a, b) => a + (b - center) ** 2, 0) / row.length;
  return row.map((x, i) => ((x - center) / Math.sqrt(spread + 1e-5)) * weight[i] + bias[i]);
};
// (d_in,) times the transpose of a Linear's weight (d_out, d_in).
const affine = (row, weight, bias) => weight.map((line, i) => dot(line, row) + (bias ? bias[i] : 0));

// Tokens in; the weights of every head (blocks, h, t, t) and the scores (t, vocab) out.
// What a silenced head says is replaced by zeros.
export const runModel = (params, sizes, tokens, silenced = []) => {
  const { num_blocks: blocks, num_heads: heads, d_model: width } = sizes;
  const size = width / heads;
  let x = tokens.map((token, i) =>
    plus(params["token_embedding.weight"][token], params["position_embedding.weight"][i]));
  const patterns = [];
  for (let b = 0; b < blocks; b++) {
    const own = (name) => params[`blocks.${b}.${name}`];
    const norm = (row, part) => layerNorm(row, own(`norm_${part}.weight`), own(`norm_${part}.bias`));
    const read = x.map((row) => norm(row, "attention"));
    const [q, k, v] = ["query", "key", "value"].map((part) =>
      read.map((row) => affine(row, own(`attention.W_${part}.weight`))));
    const context = x.map(() => Array(width).fill(0));
    patterns.push(Array.from({ length: heads }, (_, h) => {
      const part = (row) => row.slice(h * size, (h + 1) * size);
      return tokens.map((_t, i) => {
        const scores = tokens.map((_s, j) =>
          j > i ? -Infinity : dot(part(q[i]), part(k[j])) / Math.sqrt(size));
        const weights = softmax(scores);
        if (!silenced.includes(b * heads + h)) {
          for (let c = h * size; c < (h + 1) * size; c++) {
            for (let j = 0; j <= i; j++) context[i][c] += weights[j] * v[j][c];
          }
        }
        return weights;
      });
    }));
    x = x.map((row, i) =>
      plus(row, affine(context[i], own("attention.out_proj.weight"), own("attention.out_proj.bias"))));
    x = x.map((row) => {
      const inner = affine(norm(row, "network"), own("network.0.weight"), own("network.0.bias"));
      return plus(row, affine(inner.map(gelu), own("network.2.weight"), own("network.2.bias")));
    });
  }
  const scores = x.map((row) =>
    affine(layerNorm(row, params["norm.weight"], params["norm.bias"]), params["out.weight"]));
  return { patterns, scores };
};

// What a reader types: its tokens, and the parts that are not words of the model. Those are
// read letter by letter; what is no letter either is left out.
export const readText = (text, words) => {
  const find = (name) => words.findIndex((word) => word.toLowerCase() === name.toLowerCase());
  const [spelled, dropped] = [[], []];
  const tokens = text.split(/\s+/).filter(Boolean).flatMap((part) => {
    const whole = find(part);
    if (whole >= 0) return [whole];
    const known = [...part].filter((letter) => find(letter) >= 0);
    if (known.length) spelled.push(part);
    dropped.push(...[...part].filter((letter) => find(letter) < 0));
    return known.map(find);
  });
  return { tokens, spelled, dropped };
};

// ---- on screen ----

const TRAITS = ["tokens", "silenced", "at", "step", "words", "sizes", "shapes", "weights", "history"];
const HINT = "Point at a cell or a bar, or use the arrow keys, to read its number.";
const SHOWN = 5;
const ROOM = 12; // more names than this have no room beside a square

const nameHead = (n, sizes) =>
  `block ${Math.floor(n / sizes.num_heads) + 1}, head ${(n % sizes.num_heads) + 1}`;

// One head: its switch, and its weights as a square of cells with one row framed.
const makeHead = (name, toggle, inspect) => {
  const button = make("button", { type: "button", class: "al-button tg-switch", click: toggle }, name);
  const picture = pattern(inspect);
  const most = make("p", { class: "al-told" }, "");
  const [rows, columns] = ["tg-rows", "tg-columns"].map((kind) =>
    make("div", { class: kind, "aria-hidden": "true" }));
  const element = make("div", { class: "tg-head" }, button, columns, rows, picture.element, most);
  const update = (weights, names, query, off, fixed) => {
    const target = argmax(weights[query]);
    picture.update(weights, query, target);
    const label = (i) => make("span", { class: i === query ? "tg-asks" : "" },
      names.length <= ROOM || [query, target].includes(i) ? names[i] : "");
    for (const one of [rows, columns]) one.replaceChildren(...names.map((_, i) => label(i)));
    const text = `${names[query]} → ${names[target]} ${weights[query][target].toFixed(2)}`;
    write(most, text);
    button.disabled = fixed;
    button.setAttribute("aria-pressed", String(!off));
    write(button, fixed ? name : `${name}: ${off ? "off" : "on"}`);
    picture.element.setAttribute("aria-label", `${name}, ${off ? "off" : "on"}: most weight ${text}`);
    element.classList.toggle("tg-off", off);
  };
  return { element, update };
};

// The likeliest next words; a click adds one. A mark shows what all heads would say.
const makeBars = (add, inspect) => {
  const rows = range(SHOWN).map((i) => {
    const [name, bar, mark] = [make("span", { class: "tg-name" }), make("span", { class: "tg-bar" }), make("span", { class: "tg-mark" })];
    const number = make("span", { class: "tg-number" });
    const button = make("button", { type: "button", class: "tg-next", click: () => add(i),
      focus: () => inspect(i), pointerover: () => inspect(i) },
      name, make("span", { class: "tg-track" }, bar, mark), number);
    return { button, name, bar, mark, number };
  });
  const update = (likeliest, words, now, before, marked) => likeliest.forEach((token, i) => {
    const { button, name, bar, mark, number } = rows[i];
    name.textContent = words[token];
    bar.style.width = `${(100 * now[token]).toFixed(1)}%`;
    mark.hidden = !marked;
    mark.style.left = `${(100 * before[token]).toFixed(1)}%`;
    number.textContent = now[token].toFixed(2);
    button.title = `Add ${words[token]}`;
  });
  return { element: make("div", { class: "tg-bars" }, ...rows.map((row) => row.button)), update };
};

// The loss over the training, with a line that is dragged from step to step.
const makeChart = (lab, { steps, losses, curve }) => {
  const root = canvas(236, 116, "Loss over the training");
  const x = linear([0, steps.at(-1)], [30, 222]);
  const y = linear([0, Math.max(...curve.map(([, loss]) => loss))], [80, 18]);
  axes(root)({ x, y, xLabel: "training step", yLabel: "loss" });
  root.append(svg("path", { class: "al-curve al-loss", d: path(curve, ([s]) => x(s), ([, l]) => y(l)) }));
  root.append(...steps.map((s, k) => svg("circle", { class: "al-bin", cx: x(s), cy: y(losses[k]), r: 3.5 })));
  const nearest = (px) => steps.reduce((best, s, k) =>
    (Math.abs(x(s) - px) < Math.abs(x(steps[best]) - px) ? k : best), 0);
  const mark = cursor(root, "Training step", [[18, 80]], {
    to: (px) => lab.set({ step: nearest(px) }),
    by: (ways) => lab.set({ step: clamp(lab.get("step") + ways, 0, steps.length - 1) }),
  });
  return {
    root,
    update: () => {
      const step = steps[lab.get("step")];
      mark(x(step), `step ${step}`, step, [steps[0], steps.at(-1)]);
    },
  };
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Tiny GPT lab", TRAITS);
    lab.root.classList.add("al-gpt");
    const [words, sizes, history] = lab.all("words", "sizes", "history");
    const params = readWeights(lab.get("weights"), lab.get("shapes"));
    const count = sizes.num_blocks * sizes.num_heads;
    const most = sizes.context_length;
    const last = history.steps.length - 1;
    const spell = (tokens) =>
      tokens.map((token, i) => {
        const before = tokens[i - 1];
        const close = i && words[token].length === 1 && words[before].length === 1;
        return `${i && !close ? " " : ""}${words[token]}`;
      }).join("");
    let now = null;
    let query = 0;
    let likeliest = [];
    let typed = null; // what was typed last, as readText gives it

    const put = (tokens) => tokens.length && lab.set({ tokens: tokens.slice(-most), at: -1 });
    const field = make("input", {
      type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", class: "tg-text",
      input: () => {
        typed = readText(field.value, words);
        put(typed.tokens);
        lab.seen = null;
        lab.read();
      },
    });
    lab.add(make("label", { class: "al-control tg-say" }, make("span", {}, "Text"), field));
    const writing = lab.button("Let it write", () => add(0));
    if (last) {
      playButton(lab, "Play", (first) => {
        const step = lab.get("step");
        if (step === last && !first) return false;
        return lab.set({ step: step === last ? 0 : step + 1 });
      }, 800);
    }
    lab.resetButton();
    lab.settings(() => lab.slider("at", "Word that looks", {
      min: 0, max: 1,
      read: (at) => (at < 0 ? names().length - 1 : at),
      show: (at) => names()[at < 0 ? names().length - 1 : at],
    }));
    const slider = lab.extra.querySelector("input[type=range]");
    lab.param("tokens", (text) => {
      const { tokens } = readText(text.replaceAll("_", " "), words);
      return tokens.length ? tokens.slice(0, most) : undefined;
    }, (tokens) => spell(tokens).replaceAll(" ", "_"));
    lab.param("silenced", (text) => {
      const off = text.split(",").map(Number);
      return off.every((n) => range(count).includes(n)) ? [...new Set(off)].sort() : undefined;
    }, (off) => off.join());
    lab.param("step", (text) => [...history.steps.keys()].find((k) => String(history.steps[k]) === text),
      (step) => String(history.steps[step]));
    lab.between("at", -1, most - 1, true);
    const add = (i) => put([...lab.get("tokens").slice(0, query + 1), likeliest[i]]);

    // Before the last step, the patterns are those that training left of one sentence.
    const early = () => lab.get("step") < last;
    const names = () => (early() ? history.tokens : lab.get("tokens")).map((token) => words[token]);
    const heads = range(count).map((n) =>
      makeHead(nameHead(n, sizes), () => lab.flip("silenced", n), (i, j) => lab.inspect("weight", n)(i, j)));
    const bars = makeBars((i) => add(i), (i) => lab.inspect("next")(i));
    const tellTyped = () => {
      const quote = (parts) => [...new Set(parts)].map((part) => `“${part}”`).join(", ");
      const { spelled = [], dropped = [] } = typed ?? {};
      const parts = [
        spelled.length ? `Not among its words, so read letter by letter: ${quote(spelled)}.` : "",
        dropped.length ? `Left out, since it has no such letters: ${quote(dropped)}.` : "",
      ].filter(Boolean);
      return parts.join(" ") || HINT;
    };
    lab.tells(tellTyped, (what, ...where) => {
      if (what === "weight") {
        const [n, i, j] = where;
        const shown = names();
        if (i >= shown.length || j >= shown.length) return HINT;
        if (j > i) return `${shown[j]} comes after ${shown[i]}: hidden`;
        return `${nameHead(n, sizes)}: ${shown[i]} (${i + 1}) looks at ${shown[j]} (${j + 1}) ` +
          `with weight ${format(now.patterns[n][i][j])}`;
      }
      if (early()) return HINT;
      const token = likeliest[where[0]];
      const scores = now.scores[query];
      const total = scores.reduce((sum, score) => sum + Math.exp(score), 0);
      return `p(${words[token]}) = exp(${format(scores[token])}) / ${format(total)} = ` +
        `${format(now.chances[token])}; the sum is over all ${words.length} words`;
    });
    // In the sentence's second half, the weight on the word that came next in its first.
    const half = history.tokens.length / 2;
    const copies = (weights) => range(half).reduce((sum, i) => sum + weights[half + i][i + 1], 0) / half;
    const formed = history.patterns.findIndex((patterns) =>
      patterns.slice(-sizes.num_heads).some((weights) => copies(weights) > 0.5));

    const chart = last ? makeChart(lab, history) : null;
    const legend = make("span", { class: "al-note" }, make("span", { class: "tg-key" }), "with all heads on");
    const later = make("p", { class: "tg-later" },
      "Drag the line to the end: this page has only the weights of the last step, and they give the next word.");
    const title = (text, note) => make("p", {}, make("span", { class: "al-stage-title" }, text), " ", note);
    lab.stages.append(make("div", { class: "tg-both" },
      make("div", { class: "tg-left" },
        ...(chart ? [chart.root] : []),
        title("What comes next", legend), make("div", { class: "tg-stack" }, bars.element, later)),
      make("div", { class: "tg-heads" }, ...heads.map(({ element }) => element))));

    // The trained model: what it says now, and what it would say with all heads.
    const expect = (tokens, silenced) => {
      now.chances = softmax(now.scores[query]);
      const whole = silenced.length ? runModel(params, sizes, tokens) : now;
      const before = softmax(whole.scores[query]);
      const order = (chances) => chances.map((_, i) => i).sort((a, b) => chances[b] - chances[a]);
      const meant = order(before)[0];
      // What all heads would have said stays in sight.
      likeliest = [...new Set([meant, ...order(now.chances)])].slice(0, SHOWN)
        .sort((a, b) => now.chances[b] - now.chances[a]);
      bars.update(likeliest, words, now.chances, before, silenced.length > 0);
      const [best, off] = [likeliest[0], silenced.map((n) => nameHead(n, sizes))];
      lab.ask(`How few heads can you switch off until it no longer expects “${words[meant]}”?`,
        off.length > 0 && best !== meant,
        `Done: without ${off.join(" and ")}, it expects “${words[best]}” and no longer “${words[meant]}”.`);
      const lost = off.length ? ` With all heads, it would give ${words[meant]} ${before[meant].toFixed(2)}.` : "";
      write(lab.summary, `After “${names()[query]}” the model expects “${words[best]}”, with probability ` +
        `${now.chances[best].toFixed(2)}.${lost}`);
    };

    return lab.start(() => {
      const [tokens, silenced, step, at] = lab.all("tokens", "silenced", "step", "at");
      const shown = names();
      query = at < 0 || at >= shown.length ? shown.length - 1 : at;
      slider.max = shown.length - 1;
      slider.value = query;
      now = early() ? { patterns: history.patterns[step] } : runModel(params, sizes, tokens, silenced);
      if (!early()) now.patterns = now.patterns.flat();
      if (field !== document.activeElement) field.value = spell(early() ? history.tokens : tokens);
      [field, writing].forEach((one) => (one.disabled = early()));
      heads.forEach(({ update }, n) =>
        update(now.patterns[n], shown, query, !early() && silenced.includes(n), early()));
      chart?.update();
      bars.element.style.visibility = early() ? "hidden" : ""; // nothing moves
      later.style.visibility = early() ? "" : "hidden";
      legend.style.visibility = !early() && silenced.length ? "" : "hidden";
      if (!early()) return expect(tokens, silenced);
      write(lab.summary, `After ${history.steps[step]} training steps, the loss is ${format(history.losses[step])}.`);
      return lab.ask(
        "At which step does a head of block 2 first look at the word that came next?",
        step === formed,
        `Done: at step ${history.steps[step]}. The loss is on its way from ${format(history.losses[0])} to ` +
          `${format(history.losses[last])}.`);
    });
  },
};
