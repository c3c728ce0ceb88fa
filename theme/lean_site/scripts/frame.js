// The frame around a page: side bars, color theme, contents, menus, back to top. It
// replaces the theme's scripts and Bootstrap's (36 kB gzipped).
(() => {
  const root = document.documentElement;

  // The color theme: the system's, or the reader's choice.
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (mode) => {
    const theme = mode === "auto" ? (prefersDark.matches ? "dark" : "light") : mode;
    Object.assign(root.dataset, { mode, theme });
    document.querySelectorAll(".dropdown-menu").forEach((menu) => {
      menu.classList.toggle("dropdown-menu-dark", theme === "dark");
    });
    document.querySelectorAll(".theme-switch-button").forEach((button) => {
      button.title = `Color theme: ${mode === "auto" ? "as the system" : mode}`;
      button.setAttribute("aria-label", button.title);
    });
  };
  setTheme(root.dataset.mode || "auto");
  prefersDark.addEventListener("change", () => setTheme(root.dataset.mode));
  document.querySelectorAll(".theme-switch-button").forEach((button) => {
    button.addEventListener("click", () => {
      // The first step away from "auto" visibly changes the page.
      const modes = prefersDark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
      const next = modes[(modes.indexOf(root.dataset.mode) + 1) % 3];
      useStore("mode", next);
      setTheme(next);
    });
  });

  // The side bars fold away on a wide screen, and cover the page on a narrow one.
  for (const which of ["primary", "secondary"]) {
    const button = document.querySelector(`.${which}-toggle`);
    const bar = document.querySelector(`.bd-sidebar-${which}`);
    if (!button || !bar) continue;
    const box = document.getElementById(`pst-${which}-sidebar-checkbox`);
    const isOpen = () => box.checked;
    // On a wide screen the bar is open at first, except on the first page.
    const least = document.querySelector(".opening") ? 1e5 : which === "primary" ? 992 : 1200;
    const isWide = matchMedia(`(min-width: ${least}px)`);
    const tell = () => {
      button.setAttribute("aria-expanded", isWide.matches ? !isOpen() : isOpen());
    };
    // A hidden bar can't take the focus, so wait until it is drawn. On a wide screen,
    // a checked box means folded away.
    const enter = () => {
      const first = bar.querySelector("a, button");
      if (!first || !isOpen() || isWide.matches) return;
      first.focus();
      if (document.activeElement !== first) requestAnimationFrame(enter);
    };
    const set = (open) => {
      if (open === isOpen()) return;
      box.checked = open;
      if (open) enter();
      else button.focus();
      tell();
    };
    tell();
    isWide.addEventListener("change", tell);
    button.addEventListener("click", (event) => {
      event.preventDefault();
      set(!isOpen());
    });
    bar.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !isOpen()) return;
      event.preventDefault();
      set(false);
    });
    box.addEventListener("change", () => {
      if (!box.checked) button.focus();
      tell();
    });
  }

  // The list of pages keeps its scroll position from page to page. On the first visit,
  // it scrolls only if this page would be out of sight.
  const list = document.querySelector(".bd-sidebar-primary");
  const here = list?.querySelector(".bd-docs-nav .current.active");
  if (here) {
    const scrolled = (top) => useStore("sidebar-scroll-top", top, "sessionStorage");
    const below = here.getBoundingClientRect().top - list.getBoundingClientRect().top;
    if (scrolled() !== null) list.scrollTop = scrolled();
    else if (below > list.clientHeight - 48) list.scrollTop = below - list.clientHeight / 4;
    addEventListener("pagehide", () => scrolled(list.scrollTop));
  }

  // The page's contents mark the section being read.
  const links = [...document.querySelectorAll("nav.page-toc a[href^='#']")].map((link) => ({
    link,
    section: document.getElementById(decodeURIComponent(link.hash.slice(1))),
  })).filter(({ section }) => section);
  let current = null;
  const follow = () => {
    const passed = links.filter(({ section }) => (
      section.getBoundingClientRect().top < innerHeight * 0.4));
    const atEnd = innerHeight + scrollY >= root.scrollHeight - 2;
    const now = (atEnd ? links : passed).at(-1)?.link ?? null;
    if (now === current) return;
    for (const [link, on] of [[current, false], [now, true]]) {
      link?.classList.toggle("active", on);
      link?.toggleAttribute("aria-current", on);
      if (on) link?.setAttribute("aria-current", "location");
    }
    current = now;
    // Scroll only the box of the contents, never the page.
    const box = now?.closest(".bd-sidebar-secondary");
    if (!box) return;
    const line = now.getBoundingClientRect();
    const frame = box.getBoundingClientRect();
    if (line.bottom > frame.bottom) box.scrollTop += line.bottom - frame.bottom + 40;
    if (line.top < frame.top) box.scrollTop -= frame.top - line.top + 40;
  };

  // Offer the way to the top to readers who scroll up.
  const up = document.getElementById("pst-back-to-top");
  up?.addEventListener("click", () => scrollTo(0, 0));
  let before = 0;
  const moved = () => {
    follow();
    document.body.classList.toggle("scrolled", scrollY > 0);
    if (up) up.style.display = scrollY < before && scrollY > innerHeight / 2 ? "block" : "none";
    before = scrollY;
  };
  addEventListener("scroll", moved, { passive: true }); // once for each frame
  requestAnimationFrame(moved);

  // Menus open on a click, and close on Escape, another click, or when left.
  document.querySelectorAll("[data-bs-toggle='dropdown']").forEach((button) => {
    const menu = button.parentElement.querySelector(".dropdown-menu");
    const show = (open) => {
      menu.classList.toggle("show", open);
      button.setAttribute("aria-expanded", open);
    };
    button.addEventListener("click", () => show(!menu.classList.contains("show")));
    button.parentElement.addEventListener("keydown", ({ key }) => {
      const items = [...menu.querySelectorAll("a, button")];
      const step = { ArrowDown: 1, ArrowUp: -1 }[key];
      if (key === "Escape") button.focus();
      if (key === "Escape" || step) show(key !== "Escape");
      if (step) items.at((items.indexOf(document.activeElement) + step) % items.length).focus();
    });
    document.addEventListener("click", ({ target }) => {
      if (!button.parentElement.contains(target)) show(false);
    });
    button.parentElement.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget && !button.parentElement.contains(relatedTarget)) show(false);
    });
  });

  if (/^(Mac|iPhone)/.test(navigator.platform)) {
    document.querySelectorAll(".search-button__kbd-shortcut kbd:first-child").forEach((key) => {
      key.textContent = "⌘";
    });
  }
})();
