// Scripts that nobody needs for reading. The browser fetches them early, since
// layout.html has a preload for each; they run in order once the page is parsed.
document.addEventListener("DOMContentLoaded", () => {
  let script = null;
  document.querySelectorAll('link[rel="preload"][as="script"]').forEach(({ href }) => {
    script = make("script", { src: href });
    script.async = false;
    document.head.append(script);
  });
  if (!script) return;
  // If a script fails to load, the others still run.
  script.onload = script.onerror = () => document.dispatchEvent(new Event("late-scripts"));
});

// What stands far down a page is fetched when a reader comes near it.
const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    const { lateScript, lateSheet } = target.dataset;
    document.head.append(make("link", { rel: "stylesheet", href: lateSheet }), make("script", { src: lateScript }));
  }
}, { rootMargin: "800px" });
document.querySelectorAll("[data-late-script]").forEach((place) => near.observe(place));
