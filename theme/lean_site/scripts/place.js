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
    const { href } = new URL(`${page}${id ? `#${encodeURIComponent(id)}` : ""}`, root);
    const words = make("span", {}, heading ? `${where}: ${heading}` : where);
    // In the bar above the page, where it moves nothing.
    document.querySelector(".header-article-items__start")
      ?.append(make("a", { class: "continue-reading", href }, "Continue reading ", words));
  };

  if (isFirst) {
    const place = JSON.parse(useStore(KEY));
    if (place) offer(place);
    return;
  }
  if (!/^book\//.test(path)) return;
  const headings = [...article.querySelectorAll("section[id] > :is(h2, h3)")];
  const remember = () => {
    if (document.visibilityState !== "hidden") return;
    const above = headings.filter((one) => one.getBoundingClientRect().top < innerHeight / 2).pop();
    useStore(KEY, JSON.stringify({
      page: path,
      title: name(article.querySelector("h1")),
      id: above?.parentElement.id || "",
      heading: above ? name(above) : "",
    }));
  };
  // This event also comes when the reader leaves for another page.
  document.addEventListener("visibilitychange", remember);
})();
