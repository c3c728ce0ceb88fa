// Small scripts of every page. theme/lean_site/assets.py puts the constants of the
// theme's extensions above, in place of their inline scripts.

// Code and outputs that are cut can be scrolled by keyboard. Sizes change with the
// window, and when a fold opens.
const tabStops = new ResizeObserver((entries) => {
  for (const { target: code } of entries) {
    const cut = code.scrollWidth > code.clientWidth || code.scrollHeight > code.clientHeight;
    code.tabIndex = cut ? 0 : -1;
    code.toggleAttribute("data-cut", code.matches("pre") && code.scrollWidth > code.clientWidth);
  }
});
const boxes = document.querySelectorAll("pre, .cell_output > .output");
const watch = () => boxes.forEach((box) => {
  tabStops.unobserve(box);
  tabStops.observe(box);
});
watch();
document.fonts.ready.then(watch); // letters get wider and the box stays: no resize

// On paper, colors are light and answers are open.
let themeOnScreen = null, opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.hide:not([open])")].filter((fold) => fold.querySelector(".cell_output"));
  opened.forEach((fold) => { fold.open = true; });
  themeOnScreen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  opened.forEach((fold) => { fold.open = false; });
  if (themeOnScreen) document.documentElement.dataset.theme = themeOnScreen;
});

// A link into an answer opens it, also if a lab's state follows the name.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1).split("?")[0]));
  const answer = target?.closest("details.answer:not([open])");
  if (!answer) return;
  answer.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
