// Compares the model in the page with PyTorch: test_tiny_gpt.py writes the cases to $CASES.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readText, readWeights, runModel } from "../../../coding_attention/labs/tiny_gpt.js";

const cases = JSON.parse(readFileSync(process.env.CASES, "utf8"));
const TOLERANCE = 1e-9;

const largest = (a, b) =>
  Array.isArray(b)
    ? (assert.equal(a.length, b.length), Math.max(...b.map((part, i) => largest(a[i], part))))
    : Math.abs(a - b);

cases.models.forEach(({ weights, shapes, sizes, runs }, m) => {
  const params = readWeights(weights, shapes);
  test(`model ${m} equals PyTorch in ${runs.length} runs`, (t) => {
    let gap = 0;
    for (const { tokens, silenced, patterns, scores } of runs) {
      const found = runModel(params, sizes, tokens, silenced);
      gap = Math.max(gap, largest(found.patterns, patterns), largest(found.scores, scores));
    }
    assert.ok(gap <= TOLERANCE, `${gap} apart`);
    t.diagnostic(`largest difference ${gap.toExponential(1)}`);
  });
});

test("text becomes words and letters, and says what it could not read", () => {
  const words = ["Your", "journey", "a", "b", "c"];
  const read = (text) => readText(text, words);
  assert.deepEqual(read("your JOURNEY"), { tokens: [0, 1], spelled: [], dropped: [] });
  assert.deepEqual(read("your cab b!"), { tokens: [0, 4, 2, 3, 3], spelled: ["cab", "b!"], dropped: ["!"] });
  assert.deepEqual(read(" é "), { tokens: [], spelled: [], dropped: ["é"] });
});
