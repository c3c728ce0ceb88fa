// Whether the proofs are shown: the box below the title, or what was chosen on another
// page. Kept on this device alone.
(() => {
  const root = document.documentElement;
  const box = document.getElementById("show-proofs");
  if (!box) return;
  const unfold = () => document.querySelectorAll("details.run").forEach((run) => { run.open = true; });
  box.checked = "proofs" in root.dataset;
  if (box.checked) unfold();
  box.addEventListener("change", () => {
    root.toggleAttribute("data-proofs", box.checked);
    if (box.checked) unfold();
    try {
      if (box.checked) localStorage.setItem("proofs", "shown");
      else localStorage.removeItem("proofs");
    } catch {
      // Storage is off: then it holds for this page.
    }
  });

  // A click on a published number opens the line that says who printed it.
  document.addEventListener("click", ({ target }) => {
    const number = box.checked && target.closest?.(".published-number");
    if (!number || !getSelection().isCollapsed) return;
    const line = number.closest(".cell").querySelector(":scope > .published");
    line.open = true;
    for (const entry of line.querySelectorAll("li")) {
      entry.classList.toggle("asked", entry.dataset.value === number.dataset.value);
    }
    line.querySelector("summary").focus();
    line.scrollIntoView({ block: "nearest" });
  });
})();
