
// Where one was last time, and what one has read to its end: remembered on this device
// alone, in its local storage. The place is offered on the first page, what was read has
// a mark in the list of pages. Nothing is sent, and no cookie is set.
(() => {
  const KEY = "coding-attention-place";
  const READ = "coding-attention-read";
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const path = location.href.split(/[?#]/)[0].replace(root.href, "");
  const article = document.querySelector("article.bd-article");
  const isFirst = document.querySelector(".navbar-brand")?.href.split("#")[0]
    === location.href.split(/[?#]/)[0];
  const name = (heading) => [...heading.childNodes]
    .filter((part) => !part.classList?.contains("headerlink"))
    .map((part) => part.textContent).join("").trim();
  const stored = (key) => {
    try {
      return JSON.parse(localStorage.getItem(key));
    } catch {
      return null;
    }
  };
  const keep = (key, value) => {
    try {
      localStorage.setItem(key, JSON.stringify(value));
    } catch {
      // Storage is off: then nothing is remembered.
    }
  };

  const finished = new Set(stored(READ) ?? []);
  const links = [...document.querySelectorAll(".bd-docs-nav li > a")];
  const mark = () => links.forEach((link) => {
    const page = link.href.split(/[?#]/)[0].replace(root.href, "");
    link.parentElement.classList.toggle("is-read", finished.has(page));
  });
  mark();
  const end = article?.parentElement.querySelector(".prev-next-area");
  if (end) { // as the pages of the book have, and no others
    new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting || finished.has(path)) return;
      finished.add(path);
      keep(READ, [...finished]);
      mark();
    }).observe(end);
  }

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
    const place = stored(KEY);
    if (place?.page && place.title) offer(place);
    return;
  }
  if (!/^book\//.test(path)) return;
  const headings = [...article.querySelectorAll("section[id] > :is(h2, h3)")];
  const remember = () => {
    if (document.visibilityState !== "hidden") return;
    const above = headings.filter((one) => one.getBoundingClientRect().top < innerHeight / 2).pop();
    keep(KEY, {
      page: path,
      title: name(article.querySelector("h1")),
      id: above?.parentElement.id || "",
      heading: above ? name(above) : "",
    });
  };
  // Also called when a page is left for another.
  document.addEventListener("visibilitychange", remember);
})();
