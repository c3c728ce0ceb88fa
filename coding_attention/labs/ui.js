// What the labs share on screen: controls, grids of numbers, and lines that are announced.
import { format } from "./core.js";
import { copyPicture } from "./share.js";

const dress = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children);
  return element;
};
export const make = (tag, attributes = {}, ...children) =>
  dress(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  dress(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
export const put = (element, attributes) => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
};

// Writes only what changed: a redraw of large grids has to fit into one frame.
export const write = (element, text) => {
  const node = element.firstChild;
  if (!node) element.textContent = text;
  else if (node.data !== text) node.data = text;
};
const name = (element, text) => {
  if (element.getAttribute("aria-label") !== text) element.setAttribute("aria-label", text);
};
const flag = (element, name, on) => {
  if (element.classList.contains(name) !== on) element.classList.toggle(name, on);
};

// ---- grids ----

export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

// Where an arrow key, Home or End leads from cell (i, j); null for other keys.
export const step = (event, i, j, rows, columns) => {
  const all = event.ctrlKey || event.metaKey;
  const moves = {
    ArrowUp: [i - 1, j],
    ArrowDown: [i + 1, j],
    ArrowLeft: [i, j - 1],
    ArrowRight: [i, j + 1],
    Home: [all ? 0 : i, 0],
    End: [all ? rows - 1 : i, columns - 1],
  };
  const move = moves[event.key];
  return move ? [clamp(move[0], 0, rows - 1), clamp(move[1], 0, columns - 1)] : null;
};

// Where an arrow key points: [right, up]; undefined for other keys.
export const way = (event) =>
  ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] })[event.key];

export const HEADS = ["al-head-0", "al-head-1", "al-head-2", "al-head-3"];
const SHAPES = { "": null, heat: "al-heat", bars: "al-bars", signed: "al-bars al-signed" };

// A table of numbers with one tab stop; arrow keys move between its cells.
// `edit(i, j, number)` makes the cells text fields; `inspect(i, j)` hears of hover and
// focus; `pick(i, j)` hears of a click, Enter or the space bar.
// The shape "heat", "bars" or "signed" draws the numbers as squares or as bars, from the left
// or from the middle, that are named by them.
export const grid = ({ label, corner, rows, columns, edit, inspect, pick, shape = "" }) => {
  const cells = rows.map((row) =>
    columns.map((column) => {
      const cell = make("td", edit ? { class: "al-field" } : { tabindex: "-1" });
      if (edit) {
        const name = `${label}, ${row}, ${column}`;
        const field = { type: "text", inputmode: "decimal", tabindex: "-1" };
        cell.append(make("input", { ...field, autocomplete: "off", "aria-label": name }));
      }
      return cell;
    })
  );
  const target = (cell) => (edit ? cell.firstChild : cell);
  const heads = columns.map((name) => make("th", { scope: "col" }, name));
  const lines = rows.map((name, i) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...cells[i])
  );
  const table = make(
    "table",
    { role: "grid", "aria-label": label, class: SHAPES[shape] },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, corner), ...heads)),
    make("tbody", {}, ...lines)
  );

  const tones = rows.map(() => []);
  let stop = target(cells[0][0]);
  stop.tabIndex = 0;
  const place = (node) => {
    const cell = node.closest("td");
    if (!cell) return null;
    const i = lines.indexOf(cell.parentNode);
    return [i, cells[i].indexOf(cell)];
  };
  table.addEventListener("focusin", (event) => {
    const where = place(event.target);
    if (!where) return;
    stop.tabIndex = -1;
    stop = event.target;
    stop.tabIndex = 0;
    if (edit) stop.select();
    if (inspect) inspect(...where);
  });
  table.addEventListener("pointerover", (event) => {
    const where = place(event.target);
    if (where && inspect) inspect(...where);
  });
  table.addEventListener("click", (event) => {
    const line = event.target.closest("tbody tr");
    if (!line || !pick) return;
    pick(...(place(event.target) || [lines.indexOf(line), 0]));
  });
  table.addEventListener("keydown", (event) => {
    const where = place(event.target);
    if (!where) return;
    const field = edit ? event.target : null;
    const inside = field && field.selectionStart === field.selectionEnd;
    // Within a text that is being edited, these keys belong to the text.
    if (inside && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    const next = step(event, ...where, rows.length, columns.length);
    if (next) {
      event.preventDefault();
      target(cells[next[0]][next[1]]).focus();
    } else if (pick && !edit && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      pick(...where);
    } else if (edit && event.key === "Enter") {
      event.preventDefault();
      field.select();
    }
  });
  if (edit) {
    table.addEventListener("input", (event) => {
      const text = event.target.value.trim();
      const number = Number(text);
      const good = text !== "" && Number.isFinite(number) && Math.abs(number) <= 1e6;
      event.target.setAttribute("aria-invalid", String(!good));
      if (good) edit(...place(event.target), number);
    });
    // A text that is no number goes back to the last number.
    table.addEventListener("focusout", (event) => {
      const field = event.target;
      if (!place(field)) return;
      field.removeAttribute("aria-invalid");
      field.value = field.dataset.shown;
    });
  }

  return {
    element: make("div", { class: "al-scroll" }, table),
    table,
    cells,
    // `tone(x, i, j)` from 0 to 1 colors a cell; `text(x, i, j)` replaces the number.
    update(values, { tone = null, text = format } = {}) {
      cells.forEach((line, i) =>
        line.forEach((cell, j) => {
          const x = values[i][j];
          const shown = text(x, i, j);
          if (edit) {
            const field = cell.firstChild;
            field.dataset.shown = shown;
            if (field !== document.activeElement && field.value !== shown) field.value = shown;
          } else if (shape) name(cell, shown);
          else write(cell, shown);
          if (!tone) return;
          const share = `${(100 * (tone(x, i, j) || 0)).toFixed(1)}%`;
          if (tones[i][j] === share) return;
          tones[i][j] = share;
          cell.style.setProperty("--tone", share);
        })
      );
    },
    // Marks one row as chosen (-1 for none) and others as taking part in a sum.
    choose: (row) => lines.forEach((line, i) => flag(line, "al-chosen", i === row)),
    link: (...taking) => lines.forEach((line, i) => flag(line, "al-linked", taking.includes(i))),
    flagCells: (name, test) =>
      cells.forEach((line, i) => line.forEach((cell, j) => flag(cell, name, test(i, j)))),
  };
};

// ---- patterns ----

// One head's weights as a square of cells. Pointing at a cell, or moving to it with the arrow
// keys, is heard by `inspect(i, j)`.
export const pattern = (inspect) => {
  const [cells, frame] = [svg("g"), svg("rect", { class: "al-frame" })];
  const look = { class: "al-pattern", role: "img", tabindex: 0, viewBox: "0 0 100 100" };
  const element = svg("svg", look, cells, frame);
  let [side, row, column] = [1, 0, 0];
  element.addEventListener("focus", () => inspect(row, column));
  element.addEventListener("keydown", (event) => {
    const next = step(event, row, column, side, side);
    if (!next) return;
    event.preventDefault();
    [row, column] = [next[0], Math.min(next[1], next[0])];
    inspect(row, column);
  });
  const point = (event) => {
    const box = element.getBoundingClientRect();
    const cell = (x, size) => clamp(Math.floor((side * x) / size), 0, side - 1);
    inspect(cell(event.clientY - box.top, box.height), cell(event.clientX - box.left, box.width));
  };
  element.addEventListener("pointermove", point);
  element.addEventListener("pointerdown", point);
  return {
    element,
    // Draws the weights, frames row i, and lets the keys begin at its cell j.
    update(weights, i, j) {
      [side, row, column] = [weights.length, i, j];
      const [size, gap] = [100 / side, Math.min(0.6, 8 / side)];
      put(frame, { x: 0, y: i * size, width: (i + 1) * size - gap, height: size - gap });
      cells.replaceChildren(...weights.flatMap((line, a) =>
        line.slice(0, a + 1).map((weight, b) =>
          svg("rect", { x: b * size, y: a * size, width: size - gap, height: size - gap,
            style: `--tone:${(100 * weight).toFixed(1)}%` }))));
    },
  };
};

// ---- the address ----

// A lab's state stands in the address of its page, as #cell?name=value&…, so that prose can
// link to it. The history keeps what other labs of the page hold.
const words = (hash) => {
  const [id, query = ""] = hash.replace(/^#/, "").split("?");
  return [decodeURIComponent(id), query];
};
const stored = (place) => {
  const [id, query] = words(location.hash);
  return id === place && query ? query : history.state?.labs?.[place] || "";
};
const store = (place, query) => {
  const all = { ...history.state?.labs, [place]: query };
  const hash = `#${place}${query ? `?${query}` : ""}`;
  try {
    history.replaceState({ ...history.state, labs: all }, "", hash);
  } catch {
    // A browser that writes no address for this page: the lab works without.
  }
};

// ---- a lab ----

export class Lab {
  // `place` is the cell's name on the site; other front ends have no address to write.
  constructor({ model, el, place = "" }, title, traits) {
    this.model = model;
    this.place = place;
    this.params = [];
    this.near = null;
    this.seen = null;
    this.traits = traits;
    this.syncs = [];
    this.first = Object.fromEntries(traits.map((name) => [name, model.get(name)]));
    this.controls = make("div", { class: "al-controls" });
    this.summary = make("p", { class: "al-summary", role: "status" });
    this.stages = make("div", { class: "al-stages al-draws" });
    this.readout = make("p", { class: "al-readout", role: "status" });
    this.task = make("p", { class: "al-task", role: "status" });
    this.tables = make("div", { class: "al-stages" });
    this.extra = make("div", { class: "al-controls" });
    this.tabs = make("div", { class: "al-tabs" });
    this.kept = {}; // what the address says of folds
    this.own = {}; // and of what no trait holds: `text()` gives it, `take(text)` sets it
    this.numbers = { panel: make("div", { class: "al-panel al-numbers", hidden: true }, this.tables) };
    this.more = this.fold("More", this.extra);
    this.kept.more = this.more;
    this.controls.append(this.tabs);
    // Words are below all that is pressed: however long they are, no control moves. A form
    // of its own keeps the radio buttons of two labs on one page apart.
    const form = make(
      "form",
      { submit: (event) => event.preventDefault() },
      make("p", { class: "al-title" }, title),
      this.stages,
      this.controls,
      this.more.panel,
      make("div", { class: "al-words" }, this.summary, this.task, this.readout),
      this.numbers.panel
    );
    this.share(title);
    this.root = make(
      "div",
      {
        class: "attn-lab",
        role: "group",
        "aria-label": title,
        "data-lm-suppress-shortcuts": "true",
        // What is typed in a lab is no shortcut of the page or of JupyterLab. Notebook
        // takes keys on their way down, and asks the element that has the focus first.
        keydown: (event) => event.stopPropagation(),
        focusin: (event) => { event.target.dataset.lmSuppressShortcuts = "true"; },
      },
      form
    );
    el.append(this.root);
    // A phone: what has no room beside the rest is among the numbers.
    this.narrow = this.root.clientWidth > 0 && this.root.clientWidth < 480;
  }

  // The drawing keeps the height that it has at first, and at each new width: what stands
  // below stays in place when sizes change, and what is larger scrolls.
  hold(measure = () => this.stages.offsetHeight) {
    const width = this.root.clientWidth;
    if (!width || width === this.held) return;
    this.held = width;
    this.stages.style.height = "";
    this.stages.style.height = `${measure()}px`;
  }

  aside(stage) {
    if (this.narrow) this.tables.append(stage.element);
  }

  get(name) {
    return this.model.get(name);
  }

  all(...names) {
    return names.map((name) => this.get(name));
  }

  projections() {
    const [query, key, value] = this.all("W_query", "W_key", "W_value");
    return { query, key, value };
  }

  set(changes) {
    for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
    this.model.save_changes();
  }

  // Controls stand before the tabs, or among the settings while `settings` runs.
  add(element) {
    if (this.inSettings) this.extra.append(element);
    else this.tabs.before(element);
    return element;
  }

  settings(build) {
    this.inSettings = true;
    build();
    this.inSettings = false;
  }

  // A part that is on demand: a button among the tabs, and what it opens.
  fold(name, ...content) {
    const panel = make("div", { class: "al-panel", hidden: true }, ...content);
    const open = (on) => {
      panel.hidden = !on;
      // Numbers stand below the words, since no control may move when one is used.
      if (fold === this.more) this.numbers.panel.hidden = !on || !this.tables.childElementCount;
      tab.setAttribute("aria-expanded", String(on));
      this.redraw?.(); // what is not open is not drawn
    };
    const tab = make("button", {
      type: "button", class: "al-tab", "aria-expanded": "false",
      click: () => open(panel.hidden),
    }, name);
    this.tabs.append(tab);
    const fold = { panel, tab, open };
    return fold;
  }

  // Its state as a link and as an embedded frame, and its drawing as an image.
  share(title) {
    const said = make("span", { class: "al-said", role: "status" });
    const field = (name, text) => {
      const line = make("input", { type: "text", readonly: true, focus: () => line.select() });
      this.syncs.push(() => (line.value = text()));
      const copy = async () => {
        line.select();
        const done = await navigator.clipboard?.writeText(line.value).then(() => true, () => false)
          ?? document.execCommand("copy");
        write(said, done ? `${name} copied.` : "Selected: copy it with the keys.");
      };
      return [make("label", { class: "al-control" }, make("span", {}, name), line),
        make("button", { type: "button", class: "al-button", click: copy }, `Copy ${name.toLowerCase()}`)];
    };
    const address = (search) => {
      const query = this.address();
      return `${location.href.split(/[?#]/)[0]}${search}#${this.place}${query ? `?${query}` : ""}`;
    };
    const frame = () => {
      const { width, height } = this.root.getBoundingClientRect();
      const source = address("?embed").replaceAll("&", "&amp;");
      return `<iframe src="${source}" title="${title}" width="${Math.ceil(width) + 24}" ` +
        `height="${Math.ceil(height) + 24}" loading="lazy" style="border: 0"></iframe>`;
    };
    const image = async () => {
      const place = this.place ? address("") : "";
      write(said, await copyPicture(this.root, { title, place }));
    };
    this.more.panel.append(make("div", { class: "al-controls al-share" },
      ...(this.place ? [...field("Link", () => address("")), ...field("Frame", frame)] : []),
      make("button", { type: "button", class: "al-button", click: image }, "Copy image"), said));
  }

  // What the address may say of a trait: `read` gives its value, undefined if it has none.
  param(trait, read, text = String) {
    this.params.push({ trait, read, text });
  }

  among(trait, options) {
    const all = () => (typeof options === "function" ? options() : options);
    const word = (value) =>
      typeof value === "string" ? value : all().find(([known]) => known === value)?.[1];
    this.param(
      trait,
      (text) => all().find(([value, name]) => [String(value), name].includes(text))?.[0],
      (value) => word(value) ?? String(value)
    );
  }

  between(trait, min, max, whole) {
    this.param(trait, (text) => {
      const x = Number(text);
      const good = text !== "" && x >= min && x <= max && (!whole || Number.isInteger(x));
      return good ? x : undefined;
    });
  }

  address() {
    const found = new URLSearchParams();
    for (const { trait, text } of this.params) {
      const value = this.get(trait);
      const same = JSON.stringify(value) === JSON.stringify(this.first[trait]);
      if (!same && !found.has(trait)) found.set(trait, text(value));
    }
    for (const [name, { panel }] of Object.entries(this.kept)) if (!panel.hidden) found.set(name, "1");
    for (const [name, { text }] of Object.entries(this.own)) if (text()) found.set(name, text());
    return found.toString();
  }

  remember() {
    if (!this.place || !this.started) return;
    clearTimeout(this.writing);
    this.writing = setTimeout(() => {
      if (this.address() !== stored(this.place)) store(this.place, this.address());
    }, 150);
  }

  // Takes the state that the address gives; what it does not name is as at first.
  follow(query) {
    const given = new URLSearchParams(query);
    const changes = { ...this.first };
    for (const { trait, read } of this.params) {
      const value = given.has(trait) ? read(given.get(trait)) : undefined;
      if (value !== undefined) changes[trait] = value;
    }
    for (const [name, { open }] of Object.entries(this.kept)) open(given.has(name));
    for (const [name, { take }] of Object.entries(this.own)) take(given.get(name) ?? "");
    this.set(changes);
  }

  toggle(trait, text) {
    this.param(trait, (word) => ({ 1: true, 0: false })[word], (on) => (on ? "1" : "0"));
    const box = make("input", {
      type: "checkbox",
      change: () => this.set({ [trait]: box.checked }),
    });
    this.syncs.push(() => (box.checked = this.get(trait)));
    return this.add(make("label", { class: "al-control" }, box, make("span", {}, text)));
  }

  // `options` are [value, text] pairs, or a function that gives them as things stand.
  // `change` may set more than the trait itself.
  choice(trait, text, options, change = (value) => ({ [trait]: value })) {
    const given = () => (typeof options === "function" ? options() : options);
    this.among(trait, options);
    const list = make("select", {
      change: () => this.set(change(given()[list.selectedIndex][0])),
    });
    let known = "";
    this.syncs.push(() => {
      const names = given().map(([, name]) => name);
      if (names.join() !== known) {
        list.replaceChildren(...names.map((name) => make("option", {}, name)));
      }
      known = names.join();
      list.selectedIndex = given().findIndex(([value]) => value === this.get(trait));
    });
    return this.add(make("label", { class: "al-control" }, make("span", {}, text), list));
  }

  radios(trait, text, options) {
    this.among(trait, options);
    const boxes = options.map(([value]) =>
      make("input", { type: "radio", name: trait, change: () => this.set({ [trait]: value }) })
    );
    this.syncs.push(() =>
      boxes.forEach((box, i) => (box.checked = options[i][0] === this.get(trait)))
    );
    const labels = options.map(([, name], i) =>
      make("label", {}, boxes[i], make("span", {}, name))
    );
    return this.add(
      make("fieldset", { class: "al-radios" }, make("legend", {}, text), ...labels)
    );
  }

  slider(trait, text, { min, max, step = 1, show = String, change, read = (x) => x }) {
    const write_ = change || ((value) => ({ [trait]: value }));
    if (!change) this.between(trait, min, max, step === 1);
    const bar = make("input", {
      // A phone hides the label of some, and a hidden one names nothing.
      type: "range", min, max, step, "aria-label": text, input: () => this.set(write_(Number(bar.value))),
    });
    const shown = make("output");
    this.syncs.push(() => {
      bar.value = read(this.get(trait));
      write(shown, show(this.get(trait)));
      bar.setAttribute("aria-valuetext", shown.textContent);
    });
    return this.add(
      make("label", { class: "al-control" }, make("span", {}, text), bar, shown)
    );
  }

  // A whole number within bounds; anything else is marked and not taken.
  number(trait, text, { min, max }) {
    this.between(trait, min, max, true);
    const field = make("input", {
      type: "number", min, max, step: 1,
      input: () => {
        const good = field.value !== "" && field.validity.valid;
        field.setAttribute("aria-invalid", String(!good));
        if (good) this.set({ [trait]: Number(field.value) });
      },
      focusout: () => {
        field.removeAttribute("aria-invalid");
        field.value = this.get(trait);
      },
    });
    this.syncs.push(() => {
      if (field !== document.activeElement) field.value = this.get(trait);
    });
    return this.add(make("label", { class: "al-control" }, make("span", {}, text), field));
  }

  button(text, click) {
    return this.add(make("button", { type: "button", class: "al-button", click }, text));
  }

  newDraws() {
    this.between("seed", 1, 1000, true);
    this.button("New draws", () => this.set({ seed: (this.get("seed") % 1000) + 1 }));
  }

  // Puts an item into a list, or takes it out.
  flip(trait, item) {
    const now = this.get(trait);
    const next = now.includes(item) ? now.filter((one) => one !== item) : [...now, item].sort();
    this.set({ [trait]: next });
  }

  resetButton() {
    this.button("Reset", () => this.set(this.first));
  }

  // Buttons that set several traits at once, such as a bug; the one that holds is pressed.
  // What they do not name is as in `rest`: as at first, or as it is now where that is {}.
  presets(text, options, rest = this.first) {
    const buttons = options.map(([name, values]) => {
      const click = () => this.set({ ...rest, ...values });
      return make("button", { type: "button", class: "al-button", click }, name);
    });
    this.syncs.push(() =>
      buttons.forEach((button, i) => {
        const wanted = Object.entries({ ...rest, ...options[i][1] });
        const holds = wanted.every(
          ([trait, value]) => JSON.stringify(this.get(trait)) === JSON.stringify(value)
        );
        button.setAttribute("aria-pressed", String(holds));
      })
    );
    const group = { class: "al-presets", role: "group", "aria-label": text };
    return this.add(make("div", group, make("span", {}, text), ...buttons));
  }

  // Grids of numbers on demand, each with a line of its own for the sum behind a number.
  table(title, note, options) {
    const line = make("p", { class: "al-line", "aria-hidden": "true" });
    const inspect = options.inspect && ((...where) => {
      this.near = line;
      options.inspect(...where);
    });
    const stage = this.stage(title, note, this.tables);
    const part = grid({ label: title, ...options, inspect });
    stage.show(part.element, line);
    return Object.assign(part, { stage });
  }

  // The same numbers drawn.
  drawn(shape, title, note, options) {
    const stage = this.stage(title, note);
    const inspect = options.inspect && ((...where) => {
      this.near = null;
      options.inspect(...where);
    });
    const part = grid({ label: `${title}, drawn`, ...options, inspect, shape });
    stage.show(part.element);
    return Object.assign(part, { stage });
  }

  say(text) {
    write(this.readout, text);
    if (this.near) write(this.near, text);
  }

  // What the lab says of what a reader points at: `spell` gets what `inspect` was given and
  // where the reader points; `hint` gives what stands there before.
  tells(hint, spell) {
    const before = typeof hint === "function" ? hint : () => hint;
    this.read = () => this.say(this.seen ? spell(...this.seen) : before());
  }

  inspect(...what) {
    return (...where) => {
      this.seen = [...what, ...where];
      this.read();
    };
  }

  ask(question, solved, done) {
    this.task.classList.toggle("al-done", solved);
    write(this.task, solved ? done : question);
  }

  // One titled part of the lab. Its content can be replaced when a size changes.
  stage(title, note = "", where = this.stages) {
    const body = make("div");
    const heading = make("span", { class: "al-stage-title" }, title);
    const small = make("span", { class: "al-note" }, note);
    const element = make("figure", {}, make("figcaption", {}, heading, small), body);
    where.append(element);
    return {
      element,
      heading,
      note: small,
      show: (...content) => body.replaceChildren(...content),
    };
  }

  // Draws now and after every change; several changes at once draw once.
  start(draw) {
    let waiting = false;
    let open = true;
    const redraw = () => {
      waiting = false;
      if (!open) return;
      this.syncs.forEach((sync) => sync());
      draw();
      this.read?.();
      this.remember();
    };
    // The event's own address: this lab may have written its last state over it since.
    const arrive = ({ newURL }) => {
      const [id, query] = words(new URL(newURL).hash);
      if (id !== this.place) return;
      this.follow(query);
      this.root.scrollIntoView({ behavior: "instant", block: "nearest" });
    };
    const changed = () => {
      if (!waiting) queueMicrotask(redraw);
      waiting = true;
    };
    this.traits.forEach((name) => this.model.on(`change:${name}`, changed));
    if (this.place) {
      const query = stored(this.place);
      if (query) this.follow(query);
      window.addEventListener("hashchange", arrive);
    }
    redraw();
    this.started = true;
    this.redraw = changed;
    return () => {
      open = false;
      window.removeEventListener("hashchange", arrive);
      this.traits.forEach((name) => this.model.off(`change:${name}`, changed));
    };
  }
}

// Colors weights from 0 to 1, the same in every lab.
export const byWeight = (x) => (Number.isFinite(x) ? clamp(x, 0, 1) : 0);
// Colors the largest entry most, whatever its size.
export const byShare = (values, strength = 1) => {
  const largest = Math.max(...values.flat().filter(Number.isFinite).map(Math.abs), 1e-12);
  return (x) => (Number.isFinite(x) ? (strength * Math.abs(x)) / largest : 0);
};
export const range = (count) => Array.from({ length: count }, (_, i) => i);
export const features = (count) => range(count).map((i) => String(i + 1));
export const square = (tokens) => ({ corner: "q \\ k", rows: tokens, columns: tokens });
export const argmax = (row) => row.indexOf(Math.max(...row));
