// Find the bug: the causes become buttons that answer, and the score stays on the device.
(() => {
  "use strict";
  const KEY = "find-the-bug";
  const shown = (x) => (typeof x === "number" ? x.toFixed(2) : x);
  const total = (row) => row.find((x) => typeof x === "string") ?? row.reduce((a, b) => a + b, 0);
  const tone = (x) => (typeof x === "number" ? `${Math.round(100 * Math.min(Math.max(x, 0), 1))}%` : "0%");

  // The same picture with other numbers in it.
  const redraw = (figure, name, kind, values) => {
    const copy = figure.cloneNode(true);
    copy.classList.remove("fb-this");
    copy.querySelector("figcaption").textContent = name;
    if (kind === "loss") {
      const svg = copy.querySelector("svg");
      const box = svg.querySelector(".fb-axis").getAttribute("d").match(/[\d.]+/g).map(Number);
      const [left, top, bottom, right] = box;
      const good = values.every((x) => typeof x === "number");
      const at = (x, i) => [left + (i * (right - left)) / (values.length - 1), bottom - (x / 2.5) * (bottom - top)];
      svg.querySelector(".fb-line").setAttribute("points", good ? values.map((x, i) => at(x, i).join()).join(" ") : "");
      svg.querySelector(".fb-none").textContent = good ? "" : "nan from the first step";
      const last = shown(values[values.length - 1]);
      svg.setAttribute("aria-label", `${name}: the loss is ${shown(values[0])} at first, ${last} in the end.`);
      return copy;
    }
    const grids = kind === "heads" || kind === "batch" ? values : [values];
    copy.querySelectorAll("table").forEach((table, k) => {
      table.setAttribute("aria-label", table.getAttribute("aria-label").replace("This layer", name));
      [...table.tBodies[0].rows].forEach((row, i) => {
        row.querySelectorAll("td").forEach((cell, j) => {
          const sum = cell.classList.contains("fb-sum");
          const x = sum ? total(grids[k][i]) : grids[k][i][j];
          cell.textContent = shown(x);
          if (!sum) cell.style.setProperty("--tone", tone(x));
        });
      });
    });
    return copy;
  };

  const cases = [...document.querySelectorAll(".fb-case")];
  const place = document.querySelector(".fb-score");
  let score = JSON.parse(useStore(KEY)) ?? {}; // case -> wrong guesses before the right one
  const save = () => useStore(KEY, JSON.stringify(score));

  const tell = make("p", { role: "status" });
  const squares = make("div", { class: "fb-squares", "aria-hidden": "true" });
  // A square for each case: solved at the first guess, later, not yet.
  const kinds = () => cases.map(({ dataset }) =>
    score[dataset.case] === 0 ? "first" : dataset.case in score ? "later" : "open");
  const copy = make("button", { type: "button", class: "fb-button", click: async () => {
    const row = kinds().map((kind) => ({ first: "🟩", later: "🟨", open: "⬜" })[kind]).join("");
    const text = `Find the bug: ${Object.keys(score).length} of ${cases.length}\n${row}`;
    const done = await copyText(text);
    copy.textContent = done ? "Copied" : "The browser does not allow it";
  } }, "Copy the score");
  const again = make("button", { type: "button", class: "fb-button", click: () => {
    score = {};
    save();
    cases.forEach((element) => element.dispatchEvent(new Event("fb-restart")));
    showScore();
  } }, "Start over");
  const showScore = () => {
    const done = Object.keys(score).length;
    const first = Object.values(score).filter((wrong) => wrong === 0).length;
    tell.textContent = `Solved ${done} of ${cases.length}` + (done ? `, ${first} at the first guess.` : ".");
    squares.replaceChildren(...kinds().map((kind) => make("i", { class: `fb-${kind}` })));
    copy.textContent = "Copy the score";
    again.hidden = copy.hidden = !done;
  };

  // Four grids are more than a phone can show at once: there one picture is seen at a
  // time, and a button exchanges them.
  const choosePicture = (element) => {
    const pictures = element.querySelector(".fb-pictures");
    const other = make("button", { type: "button", class: "fb-button fb-exchange", click: () => {
      const right = pictures.classList.toggle("fb-seen-right");
      other.textContent = right ? "Show this layer" : "Show the right layer";
    } }, "Show the right layer");
    pictures.classList.add("fb-one");
    pictures.append(other);
  };

  const play = (element) => {
    const id = element.dataset.case;
    const { bug, kind, others } = JSON.parse(element.querySelector(".fb-data").textContent);
    const list = element.querySelector(".fb-causes");
    const answer = element.querySelector(".fb-answer");
    const reply = make("div", { class: "fb-reply", role: "status" });
    const shelf = make("div", { class: "fb-pictures" });
    const next = make("a", { class: "fb-next", href: `#${cases[cases.indexOf(element) + 1]?.closest("section").id}` }, "Next case");
    list.after(reply, shelf);
    if (element !== cases.at(-1)) answer.before(next);
    if (kind === "heads" || kind === "batch") choosePicture(element);
    let wrong = 0;

    const buttons = [...list.children].map((item) => {
      const name = item.dataset.bug;
      const cause = item.textContent;
      const button = make("button", { type: "button", class: "fb-cause" }, cause);
      button.addEventListener("click", () => (name === bug ? solve(true) : miss(name, cause, button)));
      item.replaceChildren(button);
      return { name, button };
    });
    const mark = (button, kindOfMark) => {
      button.dataset.mark = kindOfMark;
      button.setAttribute("aria-label", `${button.textContent} ${kindOfMark === "right" ? "Right." : "Not this one."}`);
    };
    const miss = (name, cause, button) => {
      if (element.dataset.solved) return;
      if (!button.dataset.mark) wrong += 1;
      mark(button, "wrong");
      const { looks, picture } = others[name];
      reply.textContent = `Not this one. ${looks}`;
      const figure = redraw(element.querySelector(".fb-this"), "With that mistake", kind, picture);
      shelf.replaceChildren(figure);
    };
    const solve = (fresh) => {
      element.dataset.solved = "yes";
      buttons.forEach(({ name, button }) => {
        if (name === bug) mark(button, "right");
      });
      if (!fresh) return;
      shelf.replaceChildren();
      reply.textContent = wrong ? "Yes, that is it." : "Yes, at the first guess.";
      answer.open = true;
      if (!(id in score)) score[id] = wrong;
      save();
      showScore();
    };
    element.addEventListener("fb-restart", () => {
      wrong = 0;
      delete element.dataset.solved;
      answer.open = false;
      reply.textContent = "";
      shelf.replaceChildren();
      buttons.forEach(({ button }) => {
        delete button.dataset.mark;
        button.removeAttribute("aria-label");
      });
    });
    if (id in score) solve(false);
  };

  cases.forEach(play);
  place.append(tell, squares, copy, again);
  showScore();
})();
