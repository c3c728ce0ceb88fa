// Answers to exercises on the built page: a form for each, a verdict in words, and which
// ones are done, kept in this browser alone. Set behind the check, in one script.

const KEY = "coding-attention-exercises";

// ---- progress ----

const readDone = () => JSON.parse(useStore(KEY) ?? "[]").filter((name) => name in tables);
const writeDone = (names) => useStore(KEY, JSON.stringify(names));

const marks = {};
const showProgress = (done, line) => {
  const total = Object.keys(marks).length;
  const count = done.filter((name) => marks[name]).length;
  const words =
    `${total} exercises of this page can be answered here, by a script in the page; ` +
    "the others need Python. " +
    (count ? `Done, and remembered in this browser alone: ${count} of ${total}. ` : "Which ones you did is kept in this browser and sent nowhere.");
  line.replaceChildren(words);
  if (count) {
    const forget = () => {
      writeDone([]);
      showProgress([], line);
      line.focus();
    };
    line.append(make("button", { type: "button", click: forget }, "Forget this"));
  }
  for (const [name, mark] of Object.entries(marks)) {
    mark.textContent = done.includes(name) ? "✓ done" : "";
  }
};

// ---- one field of a form: what to show, and what was entered ----

let count = 0;
const id = () => `practice-${++count}`;

const textInput = (more = {}) =>
  make("input", { type: "text", autocomplete: "off", spellcheck: "false", ...more });

const oneText = (field, more) => {
  const input = textInput({ id: id(), ...more });
  const label = make("label", { for: input.id }, field.label);
  return { parts: [label, input], read: () => input.value };
};

const row = (field, inputs, read) => {
  const legend = make("legend", {}, field.label);
  const group = make("div", { class: "practice-row" }, ...inputs);
  return { parts: [make("fieldset", {}, legend, group)], read };
};

const table = (field, cell, entered) => {
  const [rows, columns] = field.options;
  const head = make("tr", {}, make("td"), ...columns.map((c) => make("th", { scope: "col" }, c)));
  const cells = rows.map((name) => columns.map((column) => cell(name, column)));
  const lines = rows.map((name, i) =>
    make("tr", {}, make("th", { scope: "row" }, name),
      ...cells[i].map((entry) => make("td", {}, entry)))
  );
  const caption = make("caption", {}, field.label);
  const grid = make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...lines));
  const read = () => cells.map((line) => line.map(entered));
  return { parts: [make("div", { class: "practice-grid" }, grid)], read };
};

const fields = {
  number: (field) => oneText(field, { inputmode: "text", size: "10" }),
  count: (field) => oneText(field, { inputmode: "numeric", size: "12" }),
  shape: (field) => oneText(field, { size: "14", placeholder: "such as (4, 7)" }),
  numbers(field) {
    const inputs = Array.from({ length: field.length }, (_, i) =>
      textInput({ "aria-label": `${field.label}: ${i + 1} of ${field.length}`, size: "5" })
    );
    return row(field, inputs, () => inputs.map((input) => input.value));
  },
  flags(field) {
    const boxes = Array.from({ length: field.length }, () => make("input", { type: "checkbox" }));
    const labels = boxes.map((box, i) => make("label", {}, box, ` place ${i + 1}`));
    return row(field, labels, () => boxes.map((box) => box.checked));
  },
  choice(field) {
    const options = [["", "choose"], ...field.options];
    const select = make("select", { id: id() },
      ...options.map(([value, text]) => make("option", { value }, text)));
    const label = make("label", { for: select.id }, field.label);
    return { parts: [label, select], read: () => select.value };
  },
  order(field) {
    const list = make("ol", {});
    const move = (item, up) => {
      const other = up ? item.previousElementSibling : item.nextElementSibling;
      if (!other) return;
      if (up) other.before(item);
      else other.after(item);
      item.querySelectorAll("button")[up ? 0 : 1].focus();
      said.textContent = `Line ${item.dataset.letter} is now at place ${
        [...list.children].indexOf(item) + 1
      }.`;
    };
    const said = make("p", { class: "practice-said", role: "status" });
    for (const [letter, text] of field.options) {
      const item = make("li", { "data-letter": letter });
      const step = (up, sign, word) =>
        make("button", { type: "button", "aria-label": `Move line ${letter} ${word}`,
          click: () => move(item, up) }, sign);
      item.append(step(true, "↑", "up"), step(false, "↓", "down"), make("code", {}, `${letter}  ${text}`));
      list.append(item);
    }
    return {
      parts: [make("fieldset", {}, make("legend", {}, field.label), list, said)],
      read: () => [...list.children].map((item) => item.dataset.letter).join(""),
    };
  },
  mask(field) {
    const isOn = (button) => button.getAttribute("aria-pressed") === "true";
    const cell = (query, key) => {
      const button = make("button", {
        type: "button",
        "aria-pressed": "false",
        "aria-label": `see: query ${query}, key ${key}`,
        click() {
          button.setAttribute("aria-pressed", !isOn(button));
          button.textContent = isOn(button) ? "hide" : "see";
          button.setAttribute("aria-label", `${button.textContent}: query ${query}, key ${key}`);
        },
      }, "see");
      return button;
    };
    return table(field, cell, isOn);
  },
  matrix(field) {
    const cell = (query, key) =>
      textInput({ size: "4", "aria-label": `weight of ${key} for ${query}` });
    return table(field, cell, (input) => input.value);
  },
};

// ---- one exercise ----

const WORDS = { right: "Right. ", "not right": "Not right yet. ", "nothing yet": "" };

const place = (box, name, progress) => {
  const known = tables[name];
  const entered = known.fields.map((field) => fields[field.kind](field));
  const mark = make("span", { class: "practice-mark" });
  const result = make("p", { class: "practice-result", role: "status" });
  const section = box.closest("section");
  const read = section.querySelector(":scope > p a.internal");
  const show = (event) => {
    event.preventDefault();
    const { outcome, say } = verdict(name, known, entered.map(({ read }) => read()));
    result.dataset.outcome = outcome;
    result.replaceChildren(
      make("strong", {}, WORDS[outcome]),
      say || "Nothing to check yet: write your answer first."
    );
    if (outcome === "not right" && read) {
      result.append(" To read: ", make("a", { href: read.href }, known.read), ".");
    }
    if (outcome === "right") {
      const done = [...new Set([...readDone(), name])];
      writeDone(done);
      showProgress(done, progress);
    }
  };
  const title = section.querySelector("h3").firstChild.textContent;
  const lines = entered.map(({ parts }) => make("div", { class: "practice-field" }, ...parts));
  const submit = make("div", { class: "practice-submit" }, make("button", { type: "submit" }, "Check"), mark);
  const form = make("form", { "aria-label": `Answer: ${title}`, submit: show },
    make("p", { class: "practice-title" }, "Answer here"), ...lines, submit, result);
  marks[name] = mark;
  box.replaceChildren(form);
};

const start = () => {
  const progress = document.querySelector(".practice-progress");
  if (!progress) return;
  const boxes = document.querySelectorAll(".practice[data-exercise]");
  boxes.forEach((box) => place(box, box.dataset.exercise, progress));
  progress.tabIndex = -1;
  showProgress(readDone(), progress);
  // Whoever followed a link to a place below the forms is to stay there.
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  target?.scrollIntoView({ behavior: "instant" });
};

document.addEventListener("DOMContentLoaded", start);
