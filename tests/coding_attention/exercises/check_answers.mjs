// Reads lines from standard input: first the script of tables that the site loads, then
// [[name, entries], …], as JSON. Prints for each of these a line: the verdicts of check.js.
import { createInterface } from "node:readline";
import { verdict } from "../../../coding_attention/exercises/check.js";

let known;
for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  if (known) {
    console.log(JSON.stringify(given.map(([name, entries]) => verdict(name, known[name], entries))));
  } else known = new Function(`${given}; return tables;`)();
}
