// The first layers of all-MiniLM-L6-v2 in plain JavaScript: the attention weights of a
// typed sentence. experiments/real/small.py makes what it reads, and runs the same in
// PyTorch. A matrix is one Float32Array, row after row; t is the number of tokens.

const WIDTH = 384;
const HEADS = 12;
const HEAD_WIDTH = WIDTH / HEADS;
const WHOLE = 3; // layers that are there whole; of the next one, only queries and keys
const BITS = 5;
const GROUP = 64; // numbers of a row that share a scale
const LOWEST = -(2 ** (BITS - 1));
export const MOST_TOKENS = 64; // positions that are stored

// ---- the file ----

// FNV-1a, of 32 bits: tells the right file from an old one or a broken one.
export const checksum = (bytes) => {
  let found = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) found = Math.imul(found ^ bytes[i], 0x01000193);
  return found >>> 0;
};

const fromHalf = (bits) => {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : (sign * 2 ** -14 * fraction) / 1024;
};

// Read rows of a tensor. Its steps come first, eight to five bytes, and then the scales.
const readRows = ({ view, tensors }, name, from = 0, to) => {
  const { start, bits, rows, columns } = tensors.get(name);
  const [first, count] = [from * columns, ((to ?? rows) - from) * columns];
  const out = new Float32Array(count);
  if (bits === 16) {
    for (let i = 0; i < count; i++) out[i] = fromHalf(view.getUint16(start + 2 * (first + i), true));
    return out;
  }
  const scales = start + (rows * columns * BITS) / 8;
  let scale = 0;
  for (let i = 0; i < count; i += 8) {
    const k = first + i;
    const at = start + (k / 8) * BITS;
    if (k % GROUP === 0) scale = fromHalf(view.getUint16(scales + (2 * k) / GROUP, true));
    const high = view.getUint32(at); // steps 0 to 5, and two bits of the next
    const low = view.getUint16(at + 3); // from bit 24
    for (let n = 0; n < 6; n++) out[i + n] = (((high >>> (27 - BITS * n)) & 31) + LOWEST) * scale;
    out[i + 6] = (((low >>> 5) & 31) + LOWEST) * scale;
    out[i + 7] = ((low & 31) + LOWEST) * scale;
  }
  return out;
};

// Make a model of what weights.js holds.
export const readModel = ({ tensors, pieces, data }) => {
  const letters = atob(data);
  const bytes = new Uint8Array(letters.length); // .from() with a function takes a second
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  const table = new Map();
  let start = 0;
  for (const [name, bits, rows, columns] of tensors) {
    table.set(name, { start, bits, rows, columns });
    start += (rows * columns * bits) / 8 + (bits === 16 ? 0 : (2 * rows * columns) / GROUP);
  }
  const model = { bytes, view: new DataView(bytes.buffer), tensors: table, kept: new Map() };
  model.ids = new Map(pieces.split(" ").map((piece, i) => [piece, i]));
  return model;
};

const tensor = (model, name) => {
  if (!model.kept.has(name)) model.kept.set(name, readRows(model, name));
  return model.kept.get(name);
};

// ---- words and their pieces ----

export const splitWords = (text) =>
  text.normalize("NFC").match(/[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*|\S/gu) ?? [];

// The pieces of a word, the longest first, as BERT splits; null where one is unknown.
export const splitPieces = (word, ids) => {
  const plain = word.toLowerCase().normalize("NFD").replace(/\p{Mn}/gu, "");
  const pieces = [];
  for (const part of plain.match(/[\p{L}\p{N}]+|\S/gu) ?? []) {
    for (let start = 0, end; start < part.length; start = end) {
      const mark = start ? "##" : "";
      end = part.length;
      while (end > start && !ids.has(mark + part.slice(start, end))) end--;
      if (end === start) return null;
      pieces.push(mark + part.slice(start, end));
    }
  }
  return pieces;
};

// ---- arithmetic ----

// x (t, a) times w (b, a) transposed, plus a bias (b): four rows of w at a time, since
// each number of x is then read once for four products.
const linear = (model, name, x) => {
  const [w, bias] = [tensor(model, `${name}.weight`), tensor(model, `${name}.bias`)];
  const b = bias.length;
  const a = w.length / b;
  const t = x.length / a;
  const y = new Float32Array(t * b);
  for (let out = 0; out < b; out += 4) {
    for (let row = 0; row < t; row++) {
      let [s0, s1, s2, s3] = [bias[out], bias[out + 1], bias[out + 2], bias[out + 3]];
      for (let i = 0, p = row * a, q = out * a; i < a; i++, p++, q++) {
        const number = x[p];
        s0 += number * w[q];
        s1 += number * w[q + a];
        s2 += number * w[q + 2 * a];
        s3 += number * w[q + 3 * a];
      }
      const k = row * b + out;
      y[k] = s0;
      y[k + 1] = s1;
      y[k + 2] = s2;
      y[k + 3] = s3;
    }
  }
  return y;
};

const add = (x, y) => x.map((number, i) => number + y[i]);

const layerNorm = (model, name, x) => {
  const [weight, bias] = [tensor(model, `${name}.weight`), tensor(model, `${name}.bias`)];
  const out = new Float32Array(x.length);
  for (let row = 0; row < x.length; row += WIDTH) {
    let [mean, variance] = [0, 0];
    for (let i = row; i < row + WIDTH; i++) mean += x[i] / WIDTH;
    for (let i = row; i < row + WIDTH; i++) variance += (x[i] - mean) ** 2 / WIDTH;
    const scale = 1 / Math.sqrt(variance + 1e-12);
    for (let i = 0; i < WIDTH; i++) out[row + i] = (x[row + i] - mean) * scale * weight[i] + bias[i];
  }
  return out;
};

// x · Φ(x), with erf by Abramowitz and Stegun's formula 7.1.26: off by at most 1.5e-7.
const COEFFICIENTS = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
const gelu = (x) => {
  const z = Math.abs(x) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * z);
  const tail = COEFFICIENTS.reduce((sum, c) => sum * t + c, 0) * t * Math.exp(-z * z);
  return (x / 2) * (1 + Math.sign(x) * (1 - tail));
};

const softmax = (row) => {
  let [most, sum] = [-Infinity, 0];
  for (const score of row) most = Math.max(most, score);
  for (let j = 0; j < row.length; j++) sum += row[j] = Math.exp(row[j] - most);
  for (let j = 0; j < row.length; j++) row[j] /= sum;
};

// All heads' weights (h, t, t) of a layer's states x (t, d).
const attentionWeights = (model, name, x) => {
  const [q, k] = ["query", "key"].map((part) => linear(model, `${name}.${part}`, x));
  const t = x.length / WIDTH;
  const weights = new Float32Array(HEADS * t * t);
  for (let h = 0; h < HEADS; h++) {
    for (let i = 0; i < t; i++) {
      const row = weights.subarray((h * t + i) * t, (h * t + i + 1) * t);
      for (let j = 0; j < t; j++) {
        let score = 0;
        for (let c = h * HEAD_WIDTH; c < (h + 1) * HEAD_WIDTH; c++) score += q[i * WIDTH + c] * k[j * WIDTH + c];
        row[j] = score / Math.sqrt(HEAD_WIDTH);
      }
      softmax(row);
    }
  }
  return weights;
};

// Each head's weights times its values, side by side: (t, d).
const mix = (weights, v) => {
  const t = v.length / WIDTH;
  const z = new Float32Array(v.length);
  for (let h = 0; h < HEADS; h++) {
    for (let i = 0; i < t; i++) {
      for (let j = 0; j < t; j++) {
        const weight = weights[(h * t + i) * t + j];
        for (let c = h * HEAD_WIDTH; c < (h + 1) * HEAD_WIDTH; c++) z[i * WIDTH + c] += weight * v[j * WIDTH + c];
      }
    }
  }
  return z;
};

const embed = (model, pieces) => {
  const x = new Float32Array(pieces.length * WIDTH);
  const [place, kind] = ["position", "token_type"].map((name) =>
    tensor(model, `embeddings.${name}_embeddings.weight`));
  pieces.forEach((piece, row) => {
    const id = model.ids.get(piece);
    const word = readRows(model, "embeddings.word_embeddings.weight", id, id + 1);
    for (let i = 0; i < WIDTH; i++) x[row * WIDTH + i] = word[i] + place[row * WIDTH + i] + kind[i];
  });
  return layerNorm(model, "embeddings.LayerNorm", x);
};

const runBlock = (model, name, x, weights) => {
  const v = linear(model, `${name}.attention.self.value`, x);
  const z = linear(model, `${name}.attention.output.dense`, mix(weights, v));
  const middle = layerNorm(model, `${name}.attention.output.LayerNorm`, add(x, z));
  const wide = linear(model, `${name}.intermediate.dense`, middle).map(gelu);
  const out = linear(model, `${name}.output.dense`, wide);
  return layerNorm(model, `${name}.output.LayerNorm`, add(middle, out));
};

const runLayers = (model, pieces) => {
  let x = embed(model, pieces);
  const seen = [];
  for (let layer = 0; layer <= WHOLE; layer++) {
    const name = `encoder.layer.${layer}`;
    const weights = attentionWeights(model, `${name}.attention.self`, x);
    seen.push(weights);
    if (layer < WHOLE) x = runBlock(model, name, x, weights);
  }
  return seen;
};

// ---- a sentence ----

// Where a word was split, the rows of its pieces are averaged, the columns summed.
const joinPieces = (weights, head, member, count) => {
  const t = member.length;
  const sizes = Array(count).fill(0);
  member.forEach((word) => sizes[word]++);
  const rows = sizes.map(() => Array(count).fill(0));
  for (let i = 0; i < t; i++) {
    for (let j = 0; j < t; j++) {
      rows[member[i]][member[j]] += weights[(head * t + i) * t + j] / sizes[member[i]];
    }
  }
  return rows;
};

// Run the pieces of words. Gives a function from a head, such as "3.1", to its weights
// between the words: rows are queries.
export const look = (model, pieces) => {
  const member = pieces.flatMap((ofWord, i) => ofWord.map(() => i));
  const seen = runLayers(model, pieces.flat());
  return (name) => {
    const [layer, head] = name.split(".").map(Number);
    return joinPieces(seen[layer], head, member, pieces.length);
  };
};
