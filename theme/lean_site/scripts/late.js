// Scripts that the page does not need to be read: the browser fetches them early
// (assets.py writes a preload for each), and they run in their order when the page stands.
document.addEventListener("DOMContentLoaded", () => {
  let script = null;
  document.querySelectorAll('link[rel="preload"][as="script"]').forEach(({ href }) => {
    script = document.createElement("script");
    script.src = href;
    script.async = false;
    document.head.append(script);
  });
  if (!script) return;
  // One that does not come takes nothing away from those that came.
  script.onload = script.onerror = () => document.dispatchEvent(new Event("late-scripts"));
});
