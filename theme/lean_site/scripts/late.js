// Scripts that the page does not need to be read: the browser fetches them early
// (assets.py writes a preload for each), and they run in their order when the page stands.
document.addEventListener("DOMContentLoaded", () => {
  const scripts = [...document.querySelectorAll('link[rel="preload"][as="script"]')];
  scripts.forEach(({ href }, index) => {
    const script = document.createElement("script");
    script.src = href;
    script.async = false;
    if (index === scripts.length - 1) {
      // One that does not come takes nothing away from those that came.
      script.onload = script.onerror = () => document.dispatchEvent(new Event("late-scripts"));
    }
    document.head.append(script);
  });
});
