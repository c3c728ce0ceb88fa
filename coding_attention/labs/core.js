// The arithmetic of all labs, in double precision. A matrix is an array of rows.
// Where PyTorch gives -Infinity or NaN, so does this: the labs show what goes wrong.

// ---- matrices ----

export const map = (a, f) => a.map((row, i) => row.map((x, j) => f(x, i, j)));
export const filled = (rows, cols, f) =>
  Array.from({ length: rows }, (_, i) => Array.from({ length: cols }, (_, j) => f(i, j)));
export const transpose = (a) => filled(a[0].length, a.length, (i, j) => a[j][i]);
export const dot = (u, v) => {
  let sum = 0;
  for (let i = 0; i < u.length; i++) sum += u[i] * v[i];
  return sum;
};
// (n, m) @ (m, p) -> (n, p)
export const matmul = (a, b) => {
  const columns = transpose(b);
  return a.map((row) => columns.map((column) => dot(row, column)));
};
export const sum = (row) => row.reduce((total, x) => total + x, 0);
export const rowSums = (a) => a.map(sum);
// The largest |a - b|. NaN counts as equal to NaN, and infinite if only one is NaN.
export const largestDifference = (a, b) => {
  let largest = 0;
  a.forEach((row, i) =>
    row.forEach((x, j) => {
      const y = b[i][j];
      if (Object.is(x, y) || x === y) return;
      const gap = Math.abs(x - y);
      largest = Math.max(largest, Number.isNaN(gap) ? Infinity : gap);
    })
  );
  return largest;
};

// ---- attention ----

// Subtracting the largest score keeps exp from overflowing. A row of nothing but
// -Infinity gives NaN, as in PyTorch: 0 / 0 has no value.
export const softmax = (row) => {
  const largest = row.reduce((m, x) => (Number.isNaN(x) ? NaN : x > m ? x : m), -Infinity);
  const powers = row.map((x) => Math.exp(x - largest));
  const total = sum(powers);
  return powers.map((x) => x / total);
};

export const softmaxRows = (a) => a.map(softmax);

// True where a score is hidden: on and above (triu) or below (tril) a diagonal.
export const triangle = (t, part, diagonal) =>
  filled(t, t, (i, j) => (part === "triu" ? j - i >= diagonal : j - i <= diagonal));

export const maskFill = (a, hidden, fill) => map(a, (x, i, j) => (hidden[i][j] ? fill : x));

// Divides each row by its sum; a row that sums to 0 becomes NaN.
export const renormalize = (a) =>
  a.map((row) => {
    const total = sum(row);
    return row.map((x) => x / total);
  });

// The whole of single-head attention. Without `projections`, queries, keys and values
// are the inputs. `divisor` divides the scores; `hidden` marks scores that are dropped.
export const attention = ({ inputs, projections = null, divisor = 1, hidden = null }) => {
  const project = (W) => (W ? matmul(inputs, W) : inputs); // (t, d_in) -> (t, d_k)
  const queries = project(projections && projections.query);
  const keys = project(projections && projections.key);
  const values = project(projections && projections.value);
  const raw = matmul(queries, transpose(keys)); // (t, d_k) @ (d_k, t) -> (t, t)
  const divided = divisor === 1 ? raw : map(raw, (x) => x / divisor);
  const scores = hidden ? maskFill(divided, hidden, -Infinity) : divided;
  const weights = softmaxRows(scores);
  const context = matmul(weights, values); // (t, t) @ (t, d_k) -> (t, d_k)
  return { queries, keys, values, raw, scores, weights, context };
};

// The steps of the mask lab: fill before or after softmax, then renormalize or not.
export const maskedAttention = ({ inputs, projections, hidden, fill, place, renormalized }) => {
  const all = attention({ inputs, projections });
  const root = Math.sqrt(all.keys[0].length);
  const before = place === "before";
  const scores = before ? maskFill(all.raw, hidden, fill) : all.raw;
  let weights = softmaxRows(map(scores, (x) => x / root));
  if (!before) weights = maskFill(weights, hidden, fill);
  if (renormalized) weights = renormalize(weights);
  return { scores, weights, sums: rowSums(weights), context: matmul(weights, all.values) };
};

// ---- scale ----

export const mean = (row) => sum(row) / row.length;
// The sample standard deviation, as torch.std gives it (n - 1 below the line).
export const std = (row) => {
  const center = mean(row);
  return Math.sqrt(sum(row.map((x) => (x - center) ** 2)) / (row.length - 1));
};
// In nats; 0 · log 0 counts as 0.
export const entropy = (weights) => -sum(weights.map((w) => (w > 0 ? w * Math.log(w) : 0)));
// The size (Frobenius norm) of the softmax's derivative, diag(w) - w wᵀ.
export const gradientSize = (weights) =>
  Math.sqrt(
    sum(weights.flatMap((a, i) => weights.map((b, j) => ((i === j ? a : 0) - a * b) ** 2)))
  );

// ---- draws ----

// Mulberry32: a small generator with the same stream in every browser.
export const uniform = (seed) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
};
// Standard normal numbers, two at a time, by the method of Box and Muller.
export const normals = (seed, count) => {
  const draw = uniform(seed);
  const numbers = new Float64Array(count + (count % 2));
  for (let k = 0; k < count; k += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - draw()));
    const angle = 2 * Math.PI * draw();
    numbers[k] = radius * Math.cos(angle);
    numbers[k + 1] = radius * Math.sin(angle);
  }
  return numbers;
};
// Scores of random queries, each with keys of its own, for every width at once: entry
// [query][key][d - 1] uses the first d numbers of both vectors.
export const drawScores = ({ seed, queries, keys, width }) => {
  const numbers = normals(seed, queries * (1 + keys) * width);
  const running = (first, second) => {
    const totals = new Float64Array(width);
    let total = 0;
    for (let d = 0; d < width; d++) {
      total += numbers[first * width + d] * numbers[second * width + d];
      totals[d] = total;
    }
    return totals;
  };
  return filled(queries, keys, (i, j) => running(i * (1 + keys), i * (1 + keys) + 1 + j));
};
// What one width and divisor make of those draws: the spread of all scores, the rows of
// the first query, and means over the queries.
export const scaleMeasures = (drawn, width, divisor) => {
  const scores = map(drawn, (totals) => totals[width - 1] / divisor);
  const weights = softmaxRows(scores);
  return {
    spread: std(scores.flat()),
    scores: scores[0],
    weights: weights[0],
    largest: mean(weights.map((row) => Math.max(...row))),
    entropy: mean(weights.map(entropy)),
    gradient: mean(weights.map(gradientSize)),
  };
};

// ---- dropout ----

export const drawKept = (rows, cols, p, seed) => {
  const draw = uniform(seed);
  return filled(rows, cols, () => draw() >= p);
};
// How often each entry stayed: after one draw, after two, and so on.
export const countKept = (rows, cols, p, seed, draws) => {
  let counts = filled(rows, cols, () => 0);
  return Array.from({ length: draws }, (_, n) => {
    const kept = drawKept(rows, cols, p, seed + n);
    return (counts = map(counts, (x, i, j) => x + kept[i][j]));
  });
};
// Kept weights grow by 1 / (1 - p), so that the mean over many draws stays. `p` is 0 where
// nothing is divided.
export const dropout = (weights, kept, p) =>
  map(weights, (w, i, j) => (kept[i][j] ? w / (1 - p) : 0));
export const meanDropout = (weights, counts, draws, p) =>
  map(weights, (w, i, j) => ((counts[i][j] / draws) * w) / (1 - p));

// ---- heads ----

// A strided array, as PyTorch keeps it: flat data, a shape, and a step for each axis.
export const tensor = (data, shape) => {
  const strides = shape.map((_, k) => shape.slice(k + 1).reduce((a, b) => a * b, 1));
  return { data, shape, strides };
};
export const isContiguous = ({ shape, strides }) =>
  tensor([], shape).strides.every((step, k) => shape[k] === 1 || step === strides[k]);
export const at = (a, ...index) => a.data[index.reduce((o, i, k) => o + i * a.strides[k], 0)];
export const swapAxes = (a, first, second) => {
  const swap = (list) => {
    const copy = [...list];
    [copy[first], copy[second]] = [copy[second], copy[first]];
    return copy;
  };
  return { data: a.data, shape: swap(a.shape), strides: swap(a.strides) };
};
export const entries = (a) => {
  const walk = (index) =>
    index.length === a.shape.length
      ? [at(a, ...index)]
      : Array.from({ length: a.shape[index.length] }, (_, i) => walk([...index, i])).flat();
  return walk([]);
};
export const contiguous = (a) => tensor(entries(a), a.shape);
// Needs contiguous entries, as PyTorch's view does here.
export const view = (a, shape) => tensor(a.data, shape);
export const slice = (a, ...lead) =>
  filled(a.shape[a.shape.length - 2], a.shape[a.shape.length - 1], (i, j) =>
    at(a, ...lead, i, j)
  );

// Every step of splitting (b, t, d_out) into heads and joining them again. `straight` is
// the bug: one view to (b, h, t, d_head), and no transpose on the way to the heads.
export const splitSteps = (batch, tokens, width, heads, straight = false) => {
  const head = width / heads;
  const count = batch * tokens * width;
  const start = tensor(Array.from({ length: count }, (_, i) => i), [batch, tokens, width]);
  const viewed = view(start, [batch, ...(straight ? [heads, tokens] : [tokens, heads]), head]);
  const split = straight ? viewed : swapAxes(viewed, 1, 2); // (b, h, t, d_head)
  const blocks = filled(batch, heads, (b, h) => slice(split, b, h));
  const flat = blocks.flat().flatMap((x) => matmul(x, transpose(x)).flat());
  const scores = tensor(flat, [batch, heads, tokens, tokens]);
  const back = swapAxes(split, 1, 2); // (b, h, t, d_head) -> (b, t, h, d_head)
  const joined = view(contiguous(back), [batch, tokens, width]);
  return { start, viewed, split, scores, back, joined };
};

// x (t, d_in) times the transpose of a Linear's weight (d_out, d_in).
export const linear = (x, weight) => matmul(x, transpose(weight));
export const causal = (t) => triangle(t, "triu", 1);

// One causal head from Linear weights {query, key, value}, each (d_head, d_in).
export const causalHead = (inputs, head) =>
  attention({
    inputs,
    projections: {
      query: transpose(head.query),
      key: transpose(head.key),
      value: transpose(head.value),
    },
    divisor: Math.sqrt(head.key.length),
    hidden: causal(inputs.length),
  });
// MultiHeadAttentionWrapper: each head by itself, side by side at the end.
export const wrapper = (inputs, heads) => {
  const parts = heads.map((head) => causalHead(inputs, head).context);
  return inputs.map((_, i) => parts.flatMap((part) => part[i]));
};
// MultiHeadAttention without out_proj: one wide projection, split by view and transpose.
export const splitAttention = (inputs, weights, heads) => {
  const t = inputs.length;
  const width = weights.query.length;
  const head = width / heads;
  const divide = (W) =>
    swapAxes(tensor(linear(inputs, W).flat(), [t, heads, head]), 0, 1); // (h, t, d_head)
  const [q, k, v] = [divide(weights.query), divide(weights.key), divide(weights.value)];
  const context = Array.from({ length: heads }, (_, h) => {
    const scores = matmul(slice(q, h), transpose(slice(k, h)));
    const divided = map(scores, (x) => x / Math.sqrt(head));
    return matmul(softmaxRows(maskFill(divided, causal(t), -Infinity)), slice(v, h));
  });
  const joined = swapAxes(tensor(context.flat(2), [heads, t, head]), 0, 1); // (t, h, d_head)
  return slice(view(contiguous(joined), [t, width]));
};
// Rows of one head below those of the next: how the split class holds the weights.
export const stackHeads = (heads) => ({
  query: heads.flatMap((head) => head.query),
  key: heads.flatMap((head) => head.key),
  value: heads.flatMap((head) => head.value),
});
// What each head adds to a row of out_proj's output, through the columns of the weight that
// meet its part of the context; and the sum of those that are on, with the bias.
export const headSums = (context, weight, bias, heads, off = []) => {
  const head = context.length / heads;
  const part = (row, h) => row.slice(h * head, (h + 1) * head);
  const added = Array.from({ length: heads }, (_, h) =>
    weight.map((row) => dot(part(row, h), part(context, h)))
  );
  const kept = added.filter((_, h) => !off.includes(h));
  return { added, output: bias.map((b, k) => b + sum(kept.map((one) => one[k]))) };
};

// ---- numbers in words ----

// Four decimals; an exact half goes to the even digit, as in PyTorch. Only odd multiples
// of 1/32 are halves there, and toFixed rounds those up.
const fixed = (x) => {
  if (Math.abs(x * 32) % 2 !== 1) return x.toFixed(4);
  const below = Math.floor(Math.abs(x) * 10000);
  return ((Math.sign(x) * (below + (below % 2))) / 10000).toFixed(4);
};
// As PyTorch prints a float.
export const format = (x) => {
  if (Number.isNaN(x)) return "nan";
  if (x === Infinity) return "inf";
  if (x === -Infinity) return "-inf";
  if (x !== 0 && Math.abs(x) >= 1e6) return x.toExponential(4).replace(/e([+-])(\d)$/, "e$10$2");
  return fixed(x);
};
// The same without zeros that say nothing: 0.5500 is 0.55.
export const short = (x) => {
  const text = format(x);
  return /^-?\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, "") : text;
};
export const spellDot = (u, v) =>
  u.map((x, i) => `${short(x)}·${short(v[i])}`).join(" + ") + ` = ${format(dot(u, v))}`;
export const spellSoftmax = (scores, j) => {
  const shown = scores.filter((x) => x !== -Infinity);
  const below = shown.map((x) => `exp(${short(x)})`).join(" + ") || "0";
  return `exp(${short(scores[j])}) / (${below}) = ${format(softmax(scores)[j])}`;
};
