// A trained model in the page: its heads, each of which a click switches off, and what it
// expects next. All of it is computed here, from weights of one byte each.
import { dot, format, softmax } from "./core.js";
import { Lab, argmax, make, pattern, range, write } from "./ui.js";

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

// What a reader types, as tokens: known words, and else the letters that are known.
export const tokenize = (text, words) => {
  const find = (name) => words.findIndex((word) => word.toLowerCase() === name.toLowerCase());
  return text.split(/\s+/).filter(Boolean).flatMap((part) => {
    const whole = find(part);
    return whole >= 0 ? [whole] : [...part].map(find).filter((token) => token >= 0);
  });
};

// ---- on screen ----

const TRAITS = ["tokens", "silenced", "at", "words", "sizes", "shapes", "weights"];
const HINT =
  "Each square is a head, each row a query. Click a head's name to switch it off. Point at a cell or a bar, or use the arrow keys, to read its number.";
const SHOWN = 6;

// One head: its switch, and its weights as a square of cells with one row framed.
const makeHead = (name, toggle, inspect) => {
  const button = make("button", { type: "button", class: "al-button tg-switch", click: toggle }, name);
  const picture = pattern(inspect);
  const told = make("p", { class: "al-told" }, "");
  const update = (weights, names, query, off) => {
    const most = argmax(weights[query]);
    picture.update(weights, query, most);
    picture.frame(query, 0, query);
    const words = `${names[query]} → ${names[most]} ${weights[query][most].toFixed(2)}`;
    write(told, words);
    button.setAttribute("aria-pressed", String(!off));
    write(button, `${name}: ${off ? "off" : "on"}`);
    picture.element.setAttribute("aria-label", `${name}, ${off ? "off" : "on"}: most weight ${words}`);
    element.classList.toggle("tg-off", off);
  };
  const element = make("div", { class: "tg-head" }, button, picture.element, told);
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

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "A trained model", TRAITS);
    lab.root.classList.add("al-gpt");
    const [words, sizes] = lab.all("words", "sizes");
    const params = readWeights(lab.get("weights"), lab.get("shapes"));
    const most = sizes.context_length;
    const spell = (tokens) =>
      tokens.map((token, i) => {
        const last = tokens[i - 1];
        const close = i && words[token].length === 1 && words[last].length === 1;
        return `${i && !close ? " " : ""}${words[token]}`;
      }).join("");
    let now = null;
    let query = 0;
    let likeliest = [];

    const put = (tokens) => tokens.length && lab.set({ tokens: tokens.slice(-most), at: -1 });
    const field = make("input", {
      type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", class: "tg-text",
      input: () => put(tokenize(field.value, words)),
    });
    lab.add(make("label", { class: "al-control tg-say" }, make("span", {}, "Text"), field));
    lab.slider("at", "Word that looks", {
      min: 0, max: 1,
      read: (at) => (at < 0 ? lab.get("tokens").length - 1 : at),
      show: (at) => {
        const tokens = lab.get("tokens");
        return words[tokens[at < 0 ? tokens.length - 1 : at]];
      },
    });
    const slider = lab.controls.querySelector("input[type=range]");
    lab.button("Take back", () => put(lab.get("tokens").slice(0, -1)));
    lab.param("tokens", (text) => {
      const tokens = tokenize(text.replaceAll("_", " "), words);
      return tokens.length ? tokens.slice(0, most) : undefined;
    }, (tokens) => spell(tokens).replaceAll(" ", "_"));
    lab.param("silenced", (text) => {
      const off = text.split(",").map(Number);
      const good = off.every((n) => Number.isInteger(n) && n >= 0 && n < sizes.num_blocks * sizes.num_heads);
      return good ? [...new Set(off)].sort() : undefined;
    }, (off) => off.join());
    lab.between("at", -1, most - 1, true);
    const add = (i) => put([...lab.get("tokens").slice(0, query + 1), likeliest[i]]);
    lab.button("Let it write", () => add(0));
    lab.resetButton();

    const names = () => lab.get("tokens").map((token) => words[token]);
    const heads = range(sizes.num_blocks * sizes.num_heads).map((n) => {
      const [b, h] = [Math.floor(n / sizes.num_heads), n % sizes.num_heads];
      const toggle = () => lab.flip("silenced", n);
      const inspect = (i, j) => {
        const shown = names();
        write(lab.readout, j > i
          ? `${shown[j]} comes after ${shown[i]}: hidden`
          : `block ${b + 1}, head ${h + 1}: ${shown[i]} (${i + 1}) looks at ${shown[j]} (${j + 1}) with weight ${format(now.patterns[b][h][i][j])}`);
      };
      return { ...makeHead(`block ${b + 1}, head ${h + 1}`, toggle, inspect), b, h, n };
    });
    const bars = makeBars(add, (i) => {
      const scores = now.scores[query];
      const total = scores.reduce((sum, score) => sum + Math.exp(score), 0);
      const token = likeliest[i];
      write(lab.readout, `p(${words[token]}) = exp(${format(scores[token])}) / ${format(total)} = ` +
        `${format(now.chances[token])}; the sum is over all ${words.length} words`);
    });
    const legend = make("p", { class: "tg-legend" }, make("span", { class: "tg-key" }), " with all heads on");
    lab.stages.append(
      make("div", { class: "tg-both" },
        make("div", {}, make("p", { class: "al-stage-title" }, "What comes next"), bars.element, legend),
        make("div", { class: "al-heads" }, ...heads.map((head) => head.element)))
    );
    write(lab.readout, HINT);

    return lab.start(() => {
      const [tokens, silenced] = lab.all("tokens", "silenced");
      slider.max = tokens.length - 1;
      const at = lab.get("at");
      query = at < 0 || at >= tokens.length ? tokens.length - 1 : at;
      slider.value = query;
      now = runModel(params, sizes, tokens, silenced);
      now.chances = softmax(now.scores[query]);
      const whole = silenced.length ? runModel(params, sizes, tokens) : now;
      const before = softmax(whole.scores[query]);
      const order = (chances) => chances.map((_, i) => i).sort((a, b) => chances[b] - chances[a]);
      // What all heads would have said stays in sight.
      likeliest = [...new Set([order(before)[0], ...order(now.chances)])].slice(0, SHOWN)
        .sort((a, b) => now.chances[b] - now.chances[a]);
      if (field !== document.activeElement) field.value = spell(tokens);
      const shown = names();
      heads.forEach(({ update, b, h, n }) => update(now.patterns[b][h], shown, query, silenced.includes(n)));
      bars.update(likeliest, words, now.chances, before, silenced.length > 0);
      legend.style.visibility = silenced.length ? "" : "hidden"; // nothing below it moves
      const [best, meant] = [likeliest[0], order(before)[0]];
      const lost = silenced.length
        ? ` With all heads, it would give ${words[meant]} ${before[meant].toFixed(2)}.` : "";
      const gone = best !== meant && silenced.length;
      const off = silenced.map((n) => heads[n]).map(({ b, h }) => `block ${b + 1}, head ${h + 1}`);
      lab.ask(`Switch off heads until the model no longer expects “${words[meant]}”. How few do you need?`, Boolean(gone),
        `Done: without ${off.join(" and ")}, it expects “${words[best]}” and no longer “${words[meant]}”.`);
      write(lab.summary, `After “${shown[query]}” the model expects “${words[best]}”, with probability ${now.chances[best].toFixed(2)}.${lost}`);
    });
  },
};
