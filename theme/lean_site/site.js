// What the site needs by script, beside the theme. The constants above this line stand
// for inline scripts of the theme's extensions; theme/lean_site/assets.py adds them.

// The search page starts with the cursor in its field.
if (document.querySelector(".bd-search-container")) {
  document.querySelector("form.bd-search input").focus();
}

// Code that is too wide or too long can be reached by keyboard: whenever its size
// changes, which is also when it was folded and is opened.
const tabStops = new ResizeObserver((entries) => {
  for (const { target: code } of entries) {
    const cut = code.scrollWidth > code.clientWidth || code.scrollHeight > code.clientHeight;
    code.tabIndex = cut ? 0 : -1;
    code.toggleAttribute("data-cut", code.scrollWidth > code.clientWidth);
  }
});
document.querySelectorAll("pre").forEach((code) => tabStops.observe(code));

// Paper is white.
let themeOnScreen = null;
addEventListener("beforeprint", () => {
  themeOnScreen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  if (themeOnScreen) document.documentElement.dataset.theme = themeOnScreen;
});
