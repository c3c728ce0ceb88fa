// The one inline script of a page: what must be settled before the first paint. The
// page's policy allows it by its hash.
const root = document.documentElement;
let mode = "auto";
try { mode = localStorage.getItem("mode") || mode; } catch { /* storage is off */ }
root.dataset.mode = mode;
root.dataset.theme = mode !== "auto" ? mode
  : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
// Browsers read the text's face, which is data in the style sheet, only after the first
// paint, and then the lines move. Added here, it is ready in time. Style sheets can't be
// read over file://, so there the font loads late.
try {
  for (const sheet of document.styleSheets) for (const rule of sheet.cssRules) {
    if (!(rule instanceof CSSFontFaceRule)) continue;
    const data = /base64,([^")]+)/.exec(rule.style.getPropertyValue("src"));
    if (data) document.fonts.add(new FontFace("attention-text",
      Uint8Array.from(atob(data[1]), (c) => c.charCodeAt(0)), { weight: rule.style.fontWeight }));
  }
} catch { /* from file:// */ }
// The face of formulas may come late (looks.css). On a fast connection, preloading brings
// it in time; on a slow one, the text would wait up to a second for it. The connection
// is fast if the page's first bytes came within 200 ms. Browsers refuse to preload over
// file://.
const asked = performance.getEntriesByType("navigation")[0]?.requestStart;
if (root.dataset.faces && location.protocol !== "file:" && performance.now() - asked < 200) {
  const face = document.createElement("link");
  Object.assign(face, { rel: "preload", as: "font", type: "font/woff2", crossOrigin: "" });
  face.href = `${root.dataset.content_root}_static/fonts/${root.dataset.faces}.woff2`;
  document.head.append(face);
}
