
// The search dialog. Its engine and index load when it first opens, as scripts, since
// pages can't fetch over file://.
(() => {
  const root = document.documentElement.dataset.content_root || "./";
  let dialog = null;
  let engine = null;
  let texts = null;

  const script = (name) => new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = `${root}_static/${name}`;
    element.async = false; // they run in the order in which they are asked for
    element.onload = resolve;
    element.onerror = reject;
    document.head.append(element);
  });

  // Let a field show hits while someone types. Until then, the titles alone will do.
  const attach = (field, answer, titlesAlone = false) => {
    answer.className = "search-answer";
    engine ??= Promise.all(["search-titles.js", "search.js"].map(script));
    const load = () => Promise.all([engine, titlesAlone || (texts ??= script("search-texts.js"))]);
    return load().then(
      () => globalThis.bookSearch(field, answer, root),
      () => {
        engine = texts = null;
        answer.textContent = "The search could not be loaded. Are you offline?";
      },
    );
  };

  const make = () => {
    dialog = document.createElement("dialog");
    dialog.className = "search-dialog";
    dialog.setAttribute("aria-label", "Search the book");
    const form = document.createElement("form");
    form.setAttribute("role", "search");
    form.action = `${root}search.html`;
    const field = document.createElement("input");
    Object.assign(field, {
      type: "search", name: "q", autocomplete: "off", spellcheck: false, enterKeyHint: "go",
      placeholder: "Sections, cells, names, numbers",
    });
    field.setAttribute("aria-label", "Search the book");
    field.setAttribute("autocapitalize", "off");
    const close = document.createElement("button");
    Object.assign(close, { type: "button", textContent: "Close" });
    close.addEventListener("click", () => dialog.close());
    const answer = document.createElement("div");
    form.append(field, close);
    dialog.append(form, answer);
    // A click beside the dialog closes it, and so does a hit on this page.
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("a")) dialog.close();
    });
    // A search field would use the first Escape to clear itself.
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      dialog.close();
    });
    document.body.append(dialog);
    return attach(field, answer);
  };

  const open = () => {
    if (!dialog) make();
    dialog.showModal();
    dialog.querySelector("input").focus();
    dialog.querySelector("input").select();
  };

  document.querySelectorAll(".open-search").forEach((button) => {
    button.addEventListener("click", open);
  });
  const fields = /^(input|textarea|select)$/i;
  addEventListener("keydown", (event) => {
    const held = ["ctrlKey", "metaKey", "altKey", "shiftKey"].filter((key) => event[key]);
    const keys = `${held} ${event.key}`;
    const slash = /^(shiftKey)? \/$/; // some keyboards have it behind Shift
    const asked = /^(ctrlKey|metaKey) k$/i;
    if (!asked.test(keys) && (!slash.test(keys) || fields.test(event.target.tagName))) return;
    event.preventDefault();
    if (dialog?.open) dialog.close();
    else open();
  });

  // The search page: search.html?q=...
  const page = document.getElementById("book-search");
  if (page) {
    const field = page.querySelector("input");
    // On the page for wrong addresses, search for the words of the address.
    const last = decodeURIComponent(location.pathname.split("/").pop()).replace(/\.html?$/, "");
    const isGuess = "fromAddress" in field.dataset;
    field.value = isGuess ? last.replace(/[\W_\d]+/g, " ").trim()
      : new URLSearchParams(location.search).get("q") || "";
    const answer = document.createElement("div");
    page.after(answer);
    const isEarly = isGuess || !field.value; // nobody has asked for anything yet
    attach(field, answer, isEarly);
    if (isEarly) field.addEventListener("input", () => attach(field, answer), { once: true });
    field.focus();
  }
})();
