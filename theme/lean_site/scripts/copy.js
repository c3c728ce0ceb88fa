// A copy button for each box of code, but not for outputs.
(() => {
  const ICONS = {
    copy: '<rect x="8" y="8" width="12" height="12" rx="2"/>'
      + '<path d="M16 8V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h2"/>',
    done: '<path d="M5 12l5 5L20 7"/>',
  };
  const icon = (name) => '<svg viewBox="0 0 24 24" width="20" height="20" fill="none" '
    + `stroke="currentColor" stroke-width="1.5" aria-hidden="true">${ICONS[name]}</svg>`;

  const say = (button, word, name) => {
    button.innerHTML = icon(name);
    button.title = word;
    button.setAttribute("aria-label", word);
  };

  document.querySelectorAll("div.highlight > pre").forEach((code) => {
    if (code.closest(".cell_output")) return;
    const button = make("button", { type: "button", class: "copybtn" });
    const cell = code.closest(".cell[id]")?.id;
    const word = cell ? `Copy the cell ${cell}` : "Copy";
    say(button, word, "copy");
    button.addEventListener("click", async () => {
      const done = await copyText(code.innerText.replace(/\n$/, ""));
      say(button, done ? "Copied" : "The browser does not allow it", done ? "done" : "copy");
      button.classList.toggle("success", done);
      setTimeout(() => {
        say(button, word, "copy");
        button.classList.remove("success");
      }, 2000);
    });
    code.after(button);
  });
})();
