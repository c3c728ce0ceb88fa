// Scripts that nobody needs for reading. The browser fetches them early, since
// layout.html has a preload for each; they run in order once the page is parsed.
document.addEventListener("DOMContentLoaded", () => {
  let script = null;
  document.querySelectorAll('link[rel="preload"][as="script"]').forEach(({ href }) => {
    script = document.createElement("script");
    script.src = href;
    script.async = false;
    document.head.append(script);
  });
  if (!script) return;
  // If a script fails to load, the others still run.
  script.onload = script.onerror = () => document.dispatchEvent(new Event("late-scripts"));
});
