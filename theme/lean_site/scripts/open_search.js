
// The search dialog. Its engine and index load when it first opens, as scripts, since
// pages can't fetch over file://.
(() => {
  const root = document.documentElement.dataset.content_root || "./";
  let dialog = null;
  let engine = null;
  let texts = null;

  const script = (name) => new Promise((load, error) => {
    const element = make("script", { src: `${root}_static/${name}`, load, error });
    element.async = false; // they run in the order in which they are asked for
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

  const build = () => {
    const field = make("input", {
      type: "search", name: "q", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      enterkeyhint: "go", placeholder: "Sections, cells, names, numbers", "aria-label": "Search the book",
    });
    const close = make("button", { type: "button", click: () => dialog.close() }, "Close");
    const answer = make("div");
    dialog = make("dialog", {
      class: "search-dialog",
      "aria-label": "Search the book",
      // A click beside the dialog closes it, and so does a hit on this page.
      click: ({ target }) => {
        if (target === dialog || target.closest("a")) dialog.close();
      },
      // A search field would use the first Escape to clear itself.
      keydown: (event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        dialog.close();
      },
    }, make("form", { role: "search", action: `${root}search.html` }, field, close), answer);
    document.body.append(dialog);
    return attach(field, answer);
  };

  const open = () => {
    if (!dialog) build();
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
    const answer = make("div");
    page.after(answer);
    const isEarly = isGuess || !field.value; // nobody has asked for anything yet
    attach(field, answer, isEarly);
    if (isEarly) field.addEventListener("input", () => attach(field, answer), { once: true });
    field.focus();
  }
})();
