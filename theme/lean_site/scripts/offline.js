
// Reading without a network: pages that were read are kept, the whole book on demand
// (sw.js). From file:// the book is on the device already.
(() => {
  const worker = navigator.serviceWorker;
  if (!worker || !location.protocol.startsWith("http")) return;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const wasRead = !worker.controller; // then the worker did not see this page come

  const ask = (active, message, tell) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => tell(data);
    active.postMessage(message, [port2]);
  };

  const offer = (active) => {
    const foot = document.querySelector(".bd-footer-content__inner");
    if (!foot) return;
    const line = document.createElement("p");
    line.className = "keep-book";
    const button = document.createElement("button");
    button.type = "button";
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    line.append(button, " ", status);
    const show = ({ whole, bytes, done, of, failed }) => {
      if (done) {
        status.textContent = `${Math.round((100 * done) / of)} %`;
        return;
      }
      button.disabled = false;
      if (failed) {
        status.textContent = "That did not work. Is there a network?";
        return;
      }
      const size = `${(bytes / 1e6).toFixed(1)} MB`;
      button.textContent = `Keep the whole book for reading offline (${size})`;
      button.hidden = whole;
      status.textContent = whole ? "The whole book is kept on this device." : "";
      if (!line.isConnected) foot.append(line);
    };
    button.addEventListener("click", () => {
      button.disabled = true;
      ask(active, { keep: "book" }, show);
    });
    ask(active, {}, show);
  };

  const keepThisPage = (active) => {
    const parts = performance.getEntriesByType("resource").map(({ name }) => name);
    ask(active, { keep: [location.href, ...parts] }, () => {
      document.documentElement.dataset.kept = "";
    });
  };

  // On the page for what is not kept: what is.
  const list = document.getElementById("kept-pages");
  if (list) {
    document.querySelectorAll(".bd-sidebar-primary nav a[href]").forEach(async (link) => {
      if (!(await caches.match(link.href.split("#")[0]))) return;
      const item = document.createElement("li");
      const copy = document.createElement("a");
      copy.href = link.href;
      const title = link.querySelector("span:not([class])") ?? link;
      copy.textContent = title.textContent.trim();
      item.append(copy);
      list.append(item);
    });
  }

  // After all that the page itself needs.
  addEventListener("load", () => setTimeout(async () => {
    try {
      await worker.register(new URL("sw.js", root), { scope: root.pathname });
      const { active } = await worker.ready;
      if (wasRead) keepThisPage(active);
      offer(active);
    } catch {
      // No room, or not allowed: the book is read from the network, as before.
    }
  }, 1000));
})();
