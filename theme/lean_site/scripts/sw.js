// The book once kept its pages for offline reading. This last version of the worker
// deletes them and unregisters itself; no page registers it any more.
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil((async () => {
  const ours = `coding-attention ${registration.scope} `;
  for (const name of await caches.keys()) {
    if (name.startsWith(ours)) await caches.delete(name);
  }
  await registration.unregister();
})()));
