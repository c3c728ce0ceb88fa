// Remember the reader's place in local storage, and offer it on the first page.
// Nothing is sent, and no cookie is set.
(() => {
  const KEY = "coding-attention-place";
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const path = location.href.split(/[?#]/)[0].replace(root.href, "");
  const article = document.querySelector("article.bd-article");
  const isFirst = document.querySelector(".navbar-brand")?.href.split("#")[0]
    === location.href.split(/[?#]/)[0];
  const name = (heading) => [...heading.childNodes]
    .filter((part) => !part.classList?.contains("headerlink"))
    .map((part) => part.textContent).join("").trim();

  const offer = ({ page, title: where, id, heading }) => {
    const link = document.createElement("a");
    link.className = "continue-reading";
    link.href = new URL(`${page}${id ? `#${encodeURIComponent(id)}` : ""}`, root).href;
    const words = document.createElement("span");
    words.textContent = heading ? `${where}: ${heading}` : where;
    link.append("Continue reading ", words);
    // In the bar above the page, where it moves nothing.
    document.querySelector(".header-article-items__start")?.append(link);
  };

  if (isFirst) {
    try {
      const place = JSON.parse(localStorage.getItem(KEY));
      if (place?.page && place.title) offer(place);
    } catch {
      // Storage is off: then nothing is remembered.
    }
    return;
  }
  if (!/^book\//.test(path)) return;
  const headings = [...article.querySelectorAll("section[id] > :is(h2, h3)")];
  const remember = () => {
    if (document.visibilityState !== "hidden") return;
    const above = headings.filter((one) => one.getBoundingClientRect().top < innerHeight / 2).pop();
    try {
      localStorage.setItem(KEY, JSON.stringify({
        page: path,
        title: name(article.querySelector("h1")),
        id: above?.parentElement.id || "",
        heading: above ? name(above) : "",
      }));
    } catch {
      // As above.
    }
  };
  // This event also comes when the reader leaves for another page.
  document.addEventListener("visibilitychange", remember);
})();
