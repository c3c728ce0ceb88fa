// The book once kept its pages for reading offline. This last version of that worker
// takes away what was kept, and itself; no page asks for it any more.
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil((async () => {
  const ours = `coding-attention ${registration.scope} `;
  for (const name of await caches.keys()) {
    if (name.startsWith(ours)) await caches.delete(name);
  }
  await registration.unregister();
})()));
