// What the site needs by script, beside the theme. The constants above this line stand
// for inline scripts of the theme's extensions; theme/lean_site/assets.py adds them.

// The search page starts with the cursor in its field.
if (document.querySelector(".bd-search-container")) {
  document.querySelector("form.bd-search input").focus();
}

// The theme lets code that is too wide be reached by keyboard, but not code that was
// folded when the page was loaded.
document.addEventListener(
  "toggle",
  (event) => {
    for (const code of event.target.querySelectorAll("pre")) {
      const cut = code.scrollWidth > code.clientWidth || code.scrollHeight > code.clientHeight;
      code.tabIndex = cut ? 0 : -1;
    }
  },
  true,
);

// Paper is white.
let themeOnScreen = null;
addEventListener("beforeprint", () => {
  themeOnScreen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  if (themeOnScreen) document.documentElement.dataset.theme = themeOnScreen;
});
