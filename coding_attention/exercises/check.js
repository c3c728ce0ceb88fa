// Checks answers by the rules of answers.json, as table.py does, with the same words.
// The arithmetic is that of the labs.
import { maskFill, softmax } from "../labs/core.js";

// ---- reading what was entered ----

const TOKEN = /\*\*|[-+*/()√]|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|log(?:2|10)(?=\()|[a-z]+/gi;
const FUNCTIONS = {
  sqrt: Math.sqrt, "√": Math.sqrt, log: Math.log, ln: Math.log,
  log2: Math.log2, log10: Math.log10, exp: Math.exp,
};
const CONSTANTS = { inf: Infinity, infinity: Infinity, pi: Math.PI };

// A number as one would write it in Python: signs, + - * /, powers, parentheses, roots,
// logarithms, exponentials. What is none of these is NaN. As in Python, a sign before a
// power or a function comes last: -sqrt(4) and -2**2 are negative.
export const readNumber = (text) => {
  const plain = text.toLowerCase().replace(/\s+|\b(?:math|torch|np)\./g, "");
  const tokens = plain.match(TOKEN) ?? [];
  if (tokens.join("") !== plain) return NaN;
  let next = 0;
  const take = (...known) => (known.includes(tokens[next]) ? tokens[next++] : "");
  const chain = (part, operations) => () => {
    let value = part();
    for (let sign; (sign = take(...Object.keys(operations))); ) {
      value = operations[sign](value, part());
    }
    return value;
  };
  const atom = () => {
    const token = tokens[next++] ?? "";
    if (token === "(") {
      const value = sum();
      return take(")") ? value : NaN;
    }
    if (Object.hasOwn(FUNCTIONS, token)) return FUNCTIONS[token](atom());
    if (Object.hasOwn(CONSTANTS, token)) return CONSTANTS[token];
    return /^[\d.]/.test(token) ? Number(token) : NaN;
  };
  const signed = () => {
    const sign = take("-", "+");
    if (sign) return sign === "-" ? -signed() : signed();
    const base = atom();
    return take("**") ? base ** signed() : base;
  };
  const product = chain(signed, { "*": (a, b) => a * b, "/": (a, b) => a / b });
  const sum = chain(product, { "+": (a, b) => a + b, "-": (a, b) => a - b });
  const value = sum();
  return next === tokens.length ? value : NaN;
};

const readCount = (text) => readNumber(text.replace(/[,_]/g, ""));

const readShape = (text) => {
  const plain = text.trim().replace(/^torch\.size/i, "");
  if (!/^[([]*\s*\d+(\s*[,x×\s]\s*\d+)*\s*,?\s*[)\]]*$/i.test(plain)) return null;
  return plain.match(/\d+/g).map(Number);
};

const isEmpty = (entry) =>
  Array.isArray(entry)
    ? entry.flat().every((part) => part === false || isEmpty(part))
    : typeof entry === "string" && !entry.trim();

class Unreadable extends Error {}

const asked = (table, entry) => {
  const got = String(entry).trim();
  const but = got ? `got “${got}”` : "a part of it is empty";
  return new Unreadable(`Expected ${table.wanted}, but ${but}.`);
};

const finite = (table, entry, value) => {
  if (Number.isNaN(value)) throw asked(table, entry);
  if (!Number.isFinite(value)) {
    throw new Unreadable(`Expected ${table.wanted}, but ${entry.trim()} is not finite.`);
  }
  return value;
};

const readers = {
  number: (table, field, entry) => finite(table, entry, readNumber(entry)),
  count: (table, field, entry) => finite(table, entry, readCount(entry)),
  shape(table, field, entry) {
    const value = readShape(entry);
    if (!value) throw asked(table, entry);
    return value;
  },
  numbers: (table, field, entry) =>
    entry.map((part) => {
      const value = readNumber(part);
      if (Number.isNaN(value)) throw asked(table, part);
      // Where the rules ask what follows from the numbers, that says more.
      return Object.keys(table.derived).length ? value : finite(table, part, value);
    }),
  flags: (table, field, entry) => entry,
  // What a row of padding sees doesn't matter, unless it sees nothing.
  mask: (table, field, entry) =>
    entry.map((row, i) =>
      table.free?.includes(i) && !row.every(Boolean) ? row.map(() => false) : row
    ),
  matrix: (table, field, entry) =>
    entry.map((row) => row.map((part) => finite(table, part, readNumber(part)))),
  choice(table, field, entry) {
    const value = entry.trim();
    if (!field.options.some(([known]) => known === value)) throw asked(table, entry);
    return value;
  },
  order(table, field, entry) {
    const letters = entry.trim().toLowerCase().replace(/[\s,]/g, "");
    const known = field.options.map(([letter]) => letter).sort().join("");
    if ([...letters].sort().join("") !== known) throw asked(table, entry);
    return letters;
  },
};

// ---- what follows from an answer, where rules ask for it ----

// What the functions in the files of the exercises may use.
const kit = { maskFill, softmax, Unreadable };

// Where a grid first differs from the right one.
const deriveGrid = (table, { grid }) => {
  const [known] = table.rules[0].when.grid;
  const one = (x) => (typeof x === "boolean" ? (x ? "hide" : "see") : x.toFixed(4));
  const [rows, columns] = table.fields[0].options;
  for (let i = 0; i < known.length; i++) {
    for (let j = 0; j < known[i].length; j++) {
      if (!sameEntry(grid[i][j], known[i][j])) {
        const place = { row: rows[i], column: columns[j] };
        return { ...place, given: one(grid[i][j]), known: one(known[i][j]) };
      }
    }
  }
  return { row: "", column: "", given: "", known: "" };
};

// ---- the first rule that matches ----

// Two decimals: the one rule for all numbers.
const close = (a, b) => Math.abs(a - b) <= 5.001e-3;
const sameEntry = (a, b) => (typeof a === "boolean" ? a === b : close(a, b));

const matches = (kind, value, known) => {
  if (kind === "number") return close(value, known);
  if (kind === "numbers") return value.every((x, i) => close(x, known[i]));
  if (kind === "mask" || kind === "matrix") {
    return value.every((row, i) => row.every((x, j) => sameEntry(x, known[i][j])));
  }
  return JSON.stringify(value) === JSON.stringify(known);
};

const shown = (kind, value) => {
  if (kind === "count") {
    return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  }
  if (kind === "number") return String(Number(value.toPrecision(6)));
  if (kind === "numbers") return value.map((x) => x.toFixed(3)).join(", ");
  if (kind === "shape") return `(${value.join(", ")}${value.length === 1 ? "," : ""})`;
  return String(value);
};

// Gives {outcome, say, text}. `entered` has one entry for each field: a text, or rows of
// texts or of true and false.
export const verdict = (name, table, entered) => {
  const label = `Exercise ${name}:`;
  if (entered.every(isEmpty) && !table.fields.some(({ kind }) => kind === "mask")) {
    return { outcome: "nothing yet", say: "", text: `${label} nothing to check yet.` };
  }
  const not = (say) => ({
    outcome: "not right",
    say,
    text: `${label} not right yet. ${say} To read: ${table.read}.`,
  });
  const values = {};
  try {
    table.fields.forEach((field, i) => {
      values[field.name] = readers[field.kind](table, field, entered[i]);
    });
    if (table.derive) Object.assign(values, table.derive(values, kit));
    if (values.grid) Object.assign(values, deriveGrid(table, values));
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return not(error.message);
  }
  const kinds = { ...table.derived };
  table.fields.forEach((field) => (kinds[field.name] = field.kind));
  const rule = table.rules.find(({ when }) =>
    Object.entries(when).every(([part, known]) =>
      known.some((one) => matches(kinds[part], values[part], one))
    )
  );
  const say = rule.say.replace(/\{(\w+)\}/g, (all, part) =>
    part in values ? shown(kinds[part], values[part]) : all
  );
  if (!rule.right) return not(say);
  return { outcome: "right", say, text: `${label} right. ${say}` };
};
