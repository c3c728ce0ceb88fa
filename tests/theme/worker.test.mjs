// Runs the service worker without a browser: its network is a function, its caches maps.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const SCRIPT = new URL("../../theme/lean_site/scripts/sw.js", import.meta.url);
const SCOPE = "https://x.example/book/";
const FILES = ["index.html", "notation.html", "offline.html"];
const address = (path) => SCOPE + path;
const all = (type, ok) => async () => ({ ok, type, clone: () => type });

// Gives a function that dispatches an event and waits for what the worker makes of it.
const started = (version, stored, fetch = all("basic", true)) => {
  const open = async (name) => {
    if (!stored.has(name)) stored.set(name, new Map());
    const kept = stored.get(name);
    return {
      keys: async () => [...kept.keys()].map((url) => ({ url })),
      match: async (url) => kept.get(url),
      put: async (url, answer) => kept.set(url, answer),
    };
  };
  const caches = {
    open, keys: async () => [...stored.keys()], delete: async (name) => stored.delete(name),
  };
  const build = { version, core: ["offline.html"], files: FILES, bytes: 1 };
  const listeners = {};
  new Function("registration", "caches", "fetch", "addEventListener", "BUILD",
    readFileSync(SCRIPT, "utf8"))({ scope: SCOPE }, caches, fetch,
    (name, listener) => { listeners[name] = listener; }, build);
  return async (name, event = {}) => {
    let result;
    const wait = (promise) => { result = promise; };
    listeners[name]({ ...event, waitUntil: wait, respondWith: wait });
    await result?.catch(() => {});
    await new Promise(setImmediate); // what is kept beside the answer
    return result;
  };
};
const kept = (stored) => [...stored.values()].map((one) => [...one.keys()].sort());
const asked = async (worker, keep) => {
  const said = [];
  await worker("message", { data: { keep }, ports: [{ postMessage: (m) => said.push(m) }] });
  return said;
};

test("a whole book stays whole in the next build, and a page that was read stays", async () => {
  const stored = new Map([["another site", new Map()]]);
  const first = started("1", stored);
  await first("install");
  assert.deepEqual(kept(stored), [[], [address("offline.html")]]);
  assert.equal((await asked(first))[0].whole, false);
  await asked(first, [address("gone.html?x#y"), address("x.pdf"), "https://y.example/"]);
  const said = await asked(first, "book");
  assert.deepEqual(said.slice(0, -1), FILES.map((_, i) => ({ done: i + 1, of: FILES.length })));
  assert.equal(said.at(-1).whole, true);
  const second = started("2", stored);
  await second("install");
  const [, before, after] = kept(stored);
  assert.deepEqual(after, before);
  assert.equal(before.length, FILES.length + 2); // with the page and the mark
  assert.equal((await asked(second))[0].whole, true);
  await second("activate");
  assert.deepEqual(kept(stored), [[], after]);
});

test("only good answers of our own are kept", async () => {
  for (const [type, ok] of [["basic", true], ["basic", false], ["cors", true]]) {
    const stored = new Map();
    const request = { url: address("index.html?x"), method: "GET", mode: "navigate" };
    const answer = await started("1", stored, all(type, ok))("fetch", { request });
    assert.equal(answer.ok, ok);
    const good = ok && type === "basic";
    assert.deepEqual(kept(stored).flat(), good ? [address("index.html")] : []);
  }
});

test("without a network what is kept answers", async () => {
  const stored = new Map();
  await asked(started("1", stored), [address("index.html")]);
  const broken = started("1", stored, async () => { throw new Error("no network"); });
  const get = (path, mode, method = "GET") =>
    broken("fetch", { request: { url: address(path), method, mode } });
  assert.equal((await get("index.html", "navigate")).type, "basic");
  const moved = await get("notation.html", "navigate");
  assert.equal(moved.headers.get("location"), address("offline.html"));
  await assert.rejects(get("x.svg", "no-cors"), /no network/);
  assert.equal(await get("index.html", "navigate", "POST"), undefined);
  assert.equal(await get("x.ipynb", "cors"), undefined);
});
