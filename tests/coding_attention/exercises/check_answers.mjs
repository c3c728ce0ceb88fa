// Reads [[name, entries], …] from standard input; prints the verdicts of check.js.
import { readFileSync } from "node:fs";
import { verdict } from "../../../coding_attention/exercises/check.js";

const tables = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const cases = JSON.parse(readFileSync(0, "utf-8"));
console.log(
  JSON.stringify(cases.map(([name, entries]) => verdict(name, tables[name], entries)))
);
