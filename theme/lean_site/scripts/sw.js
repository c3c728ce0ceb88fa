// Keeps pages that were read, and on demand the whole book, for reading without a
// network. With one, every answer comes from it: nobody reads an old page, or one whose
// parts are of two builds. A new build is a new version of this file, which the browser
// notices by itself: what was kept is then fetched again, and what was old goes.
// The line above this one (theme/lean_site/offline.py) names version and files.

const PREFIX = `coding-attention ${registration.scope} `;
const NAME = PREFIX + BUILD.version;
const WHOLE = new URL("whole-book-is-kept", registration.scope).href;
const address = (path) => new URL(path, registration.scope).href;
// The same file whatever stands behind the question mark.
const key = (url) => { const { origin, pathname } = new URL(url); return origin + pathname; };
const ours = (url) => url.startsWith(registration.scope) && !/\.(pdf|ipynb)$/.test(key(url));

const fetchInto = async (cache, urls, tell = () => {}) => {
  const waiting = [...new Set(urls)];
  let done = 0;
  const one = async () => {
    for (let url = waiting.pop(); url; url = waiting.pop()) {
      const answer = await fetch(url, { cache: "no-cache" });
      if (answer.ok) await cache.put(url, answer);
      done += 1;
      tell(done);
    }
  };
  await Promise.all([one(), one(), one(), one()]);
};

const oldCaches = async () => {
  const names = await caches.keys();
  return names.filter((name) => name.startsWith(PREFIX) && name !== NAME);
};

const install = async () => {
  const wanted = BUILD.core.map(address);
  let whole = false;
  for (const name of await oldCaches()) {
    const old = await caches.open(name);
    const kept = (await old.keys()).map((request) => request.url);
    whole = whole || kept.includes(WHOLE);
    wanted.push(...kept.filter((url) => url !== WHOLE));
  }
  const cache = await caches.open(NAME);
  await fetchInto(cache, whole ? [...wanted, ...BUILD.files.map(address)] : wanted);
  if (whole) await cache.put(WHOLE, new Response("yes"));
  // It takes over when no page of the book is open any more, as workers do by themselves.
};

const clean = async () => {
  for (const name of await oldCaches()) await caches.delete(name);
};

const answer = async (request) => {
  try {
    // A page is asked for again even where the browser holds a copy that it takes for
    // fresh: that one may be older than what is kept here.
    const page = request.mode === "navigate";
    const fresh = await (page ? fetch(request, { cache: "no-cache" }) : fetch(request));
    if (fresh.ok && fresh.type === "basic") {
      const copy = fresh.clone();
      caches.open(NAME).then((cache) => cache.put(key(request.url), copy)).catch(() => {});
    }
    return fresh;
  } catch (error) {
    const cache = await caches.open(NAME);
    const kept = await cache.match(key(request.url));
    if (kept) return kept;
    if (request.mode === "navigate") return Response.redirect(address("offline.html"));
    throw error;
  }
};

addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(clean()));
addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && ours(event.request.url)) {
    event.respondWith(answer(event.request));
  }
});
addEventListener("message", (event) => {
  const { keep } = event.data;
  const port = event.ports[0];
  const work = async () => {
    const cache = await caches.open(NAME);
    if (keep === "book") {
      const tell = (done) => port.postMessage({ done, of: BUILD.files.length });
      await fetchInto(cache, BUILD.files.map(address), tell);
      await cache.put(WHOLE, new Response("yes"));
    } else if (keep) {
      await fetchInto(cache, keep.filter(ours).map(key));
    }
    const whole = Boolean(await cache.match(WHOLE));
    port.postMessage({ whole, bytes: BUILD.bytes });
  };
  event.waitUntil(work().catch((error) => port.postMessage({ failed: String(error) })));
});
