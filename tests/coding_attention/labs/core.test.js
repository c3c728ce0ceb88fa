// Compares core.js with what PyTorch computed: test_core.py writes the cases to $CASES.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as core from "../../../coding_attention/labs/core.js";

// JSON has no word for these three.
const SPECIAL = { inf: Infinity, "-inf": -Infinity, nan: NaN };
const revive = (_, x) => (typeof x === "string" && x in SPECIAL ? SPECIAL[x] : x);
const cases = JSON.parse(readFileSync(process.env.CASES, "utf8"), revive);
const TOLERANCE = 1e-6;
let largest = 0;

const compare = (found, expected, where) => {
  if (expected !== null && typeof expected === "object") {
    for (const key of Object.keys(expected)) {
      assert.ok(found !== undefined && key in found, `${where} has no ${key}`);
      compare(found[key], expected[key], `${where}.${key}`);
    }
    if (Array.isArray(expected)) {
      assert.equal(found.length, expected.length, `${where}: length`);
    }
    return;
  }
  if (typeof expected !== "number" || !Number.isFinite(expected)) {
    assert.ok(Object.is(found, expected), `${where}: ${found}, PyTorch has ${expected}`);
    return;
  }
  const gap = Math.abs(found - expected);
  assert.ok(
    gap <= TOLERANCE * Math.abs(expected) + 1e-12,
    `${where}: ${found}, PyTorch has ${expected}`
  );
  // A sum that cancels to almost nothing has no digits left to compare.
  if (gap > 1e-12) largest = Math.max(largest, gap / Math.abs(expected));
};

for (const name of new Set(cases.map((one) => one.call))) {
  const own = cases.filter((one) => one.call === name);
  test(`${name} equals PyTorch in ${own.length} cases`, () => {
    own.forEach(({ args, expected }, i) => compare(core[name](...args), expected, `${name} ${i}`));
  });
}

test("how far both are apart", (t) => {
  t.diagnostic(`cases ${cases.length}, largest relative difference ${largest.toExponential(1)}`);
});
