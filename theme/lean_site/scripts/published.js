
// A click on a published number opens the line that says who printed it.
document.addEventListener("click", ({ target }) => {
  const number = target.closest?.(".published-number");
  if (!number || !getSelection().isCollapsed) return;
  const line = number.closest(".cell").querySelector(":scope > .published");
  line.open = true;
  for (const entry of line.querySelectorAll("li")) {
    entry.classList.toggle("asked", entry.dataset.value === number.dataset.value);
  }
  line.querySelector("summary").focus({ preventScroll: true });
  line.scrollIntoView({ block: "nearest" });
});
