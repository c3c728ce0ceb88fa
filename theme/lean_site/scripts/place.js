
// Where one was last time: remembered on this device alone, in its local storage, and
// offered on the first page. Nothing is sent, and no cookie is set.
(() => {
  const KEY = "coding-attention-place";
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const path = location.href.split(/[?#]/)[0].replace(root.href, "");
  const article = document.querySelector("article.bd-article");
  const title = article?.querySelector("h1");
  const isFirst = document.querySelector(".navbar-brand")?.href.split("#")[0]
    === location.href.split(/[?#]/)[0];
  const name = (heading) => [...heading.childNodes]
    .filter((part) => !part.classList?.contains("headerlink"))
    .map((part) => part.textContent).join("").trim();
  const read = () => {
    try {
      return JSON.parse(localStorage.getItem(KEY));
    } catch {
      return null;
    }
  };

  const offer = ({ page, title: where, id, heading }) => {
    const link = document.createElement("a");
    link.className = "continue-reading";
    link.href = new URL(`${page}${id ? `#${encodeURIComponent(id)}` : ""}`, root).href;
    const words = document.createElement("span");
    words.textContent = heading ? `${where}: ${heading}` : where;
    link.append("Continue reading ", words);
    // A page may give it a place; else it stands in the bar above, where nothing shifts.
    const place = document.querySelector("[data-continue-reading]")
      || document.querySelector(".header-article-items__start");
    place?.append(link);
  };

  if (isFirst) {
    const place = read();
    if (place?.page && place.title) offer(place);
    return;
  }
  if (!title || !/^book\//.test(path)) return;
  const headings = [...article.querySelectorAll("section[id] > :is(h2, h3)")];
  const remember = () => {
    if (document.visibilityState !== "hidden") return;
    const above = headings.filter((one) => one.getBoundingClientRect().top < innerHeight / 2).pop();
    const place = {
      page: path,
      title: name(title),
      id: above?.parentElement.id || "",
      heading: above ? name(above) : "",
    };
    try {
      localStorage.setItem(KEY, JSON.stringify(place));
    } catch {
      // Storage is off: then nothing is remembered.
    }
  };
  // Also called when a page is left for another.
  document.addEventListener("visibilitychange", remember);
})();
