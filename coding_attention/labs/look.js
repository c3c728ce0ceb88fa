// A trained head reads a sentence: see where it looks, exchange a word, and play how it computes.
import { STAGES, addPlayer, compute, describe, drawMachine, weigh } from "./machine.js";
import { Lab, argmax, clamp, make, range, svg, write } from "./ui.js";

const TRAITS = ["scenes", "scene", "exchanged", "asked", "averaged", "stage"];

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "What a trained head looks at", TRAITS);
    lab.root.classList.add("al-look");
    const scenes = lab.get("scenes");
    const scene = () => scenes[lab.get("scene")];
    const which = () => (lab.get("exchanged") ? 1 : 0);
    const words = () => scene().words[which()];
    const row = () => (lab.get("averaged")
      ? words().map(() => 1 / words().length)
      : weigh(scene().inner[which()].scores[lab.get("asked")]));
    const show = (next) => ({ scene: next, exchanged: false, asked: scenes[next].ask });
    // Before the stage that computes them, there are no weights to show.
    const weighed = () => lab.get("stage") > STAGES.indexOf("weight");

    // ---- the sentence, and lines from the word that asks ----

    const lines = svg("svg", { class: "lk-lines", "aria-hidden": "true" });
    // A word's place stays when the sentence changes, and so does the focus.
    const chips = make("div", { class: "lk-words", role: "group", "aria-label": "Words of the sentence, each with its weight" });
    const ask = (j) => {
      lab.set({ asked: j });
      chips.children[j].focus();
    };
    const move = (event) => {
      const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!along) return;
      event.preventDefault();
      ask(clamp(lab.get("asked") + along, 0, words().length - 1));
    };
    const longest = Math.max(...scenes.flatMap((one) => one.words.map((all) => all.length)));
    chips.append(...range(longest).map((j) => make(
      "button", { type: "button", class: "lk-word", click: () => ask(j), keydown: move },
      make("span", { class: "lk-text" }, ""), make("span", { class: "lk-number" }, ""),
      make("span", { class: "lk-room", "aria-hidden": "true" }, "")
    )));
    const board = make("div", { class: "lk-board" }, lines, chips);
    const picture = drawMachine(lab);
    lab.stages.append(board, picture.element);

    // Over the words between two of a row; through the space between two rows.
    const line = (from, to, weight, room) => {
      const [a, b] = [from.x + from.width / 2, to.x + to.width / 2];
      const down = Math.sign(Math.round((to.y - from.y) / 10));
      const [start, end] = [from.y + (down > 0 ? from.height : 0), to.y + (down < 0 ? to.height : 0)];
      const high = start - Math.min(18 + Math.abs(b - a) / 4, 84, 1.3 * room);
      const [first, last] = down ? [(start + end) / 2, (start + end) / 2] : [high, high];
      const d = `M${a} ${start}C${a} ${first} ${b} ${last} ${b} ${end}`;
      return svg("path", { d, class: "lk-line", style: `--weight:${weight.toFixed(3)}` });
    };
    const draw = () => {
      const box = board.getBoundingClientRect();
      const boxes = Array.from(chips.children, (chip) => {
        const { x, y, width, height } = chip.getBoundingClientRect();
        return { x: x - box.x, y: y - box.y, width, height };
      });
      const [asked, weights] = [lab.get("asked"), row()];
      lines.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
      lines.replaceChildren(...weights.flatMap((weight, j) =>
        (j === asked || weight < 0.02 || !weighed() ? [] : [line(boxes[asked], boxes[j], weight, boxes[0].y)])));
    };
    new ResizeObserver(draw).observe(board);

    // ---- what can be changed ----

    const follow = addPlayer(lab);
    const exchange = lab.button("", () => {
      lab.set({ exchanged: !lab.get("exchanged"), asked: scene().ask });
    });
    exchange.classList.add("lk-exchange");
    lab.param("exchanged", (text) => ({ 1: true, 0: false })[text], (on) => (on ? "1" : "0"));
    lab.between("asked", 0, 63, true);
    lab.resetButton();
    lab.inSettings = true;
    lab.between("scene", 0, scenes.length - 1, true);
    if (scenes.length > 1) lab.button("Another sentence", () => lab.set(show((lab.get("scene") + 1) % scenes.length)));
    lab.toggle("averaged", "Plain mean");
    lab.settings(() => {});
    lab.readout.remove(); // each word has its number
    let flipped = false;
    return lab.start(() => {
      // A link may ask for a word that this sentence has not.
      if (lab.get("asked") >= words().length) return lab.set({ asked: scene().ask });
      const [asked, weights, texts] = [lab.get("asked"), row(), words()];
      Array.from(chips.children).forEach((chip, j) => {
        chip.hidden = j >= texts.length;
        if (chip.hidden) chip.setAttribute("aria-label", "no word");
      });
      chips.classList.toggle("lk-long", texts.length > 10);
      // What the other sentence looks at is the word to compare with.
      const most = argmax(weights);
      const there = argmax(scene().inner[1 - which()].scores[asked]);
      const other = there === most ? argmax(weights.map((x, j) => (j === most ? -1 : x))) : there;
      const differs = scene().words[1].findIndex((word, j) => word !== scene().words[0][j]);
      texts.forEach((text, j) => {
        const chip = chips.children[j];
        const special = /^\[.+\]$/.test(text);
        chip.className = ["lk-word", special && "lk-special", j === asked && "lk-asks",
          j === differs && "lk-differs"].filter(Boolean).join(" ");
        chip.tabIndex = j === asked ? 0 : -1;
        chip.style.setProperty("--tone", `${weighed() ? (100 * weights[j]).toFixed(1) : 0}%`);
        write(chip.firstChild, text);
        write(chip.children[1], weights[j] < 0.045 || !weighed() ? "" : ` ${weights[j].toFixed(2)}`);
        // The room of its exchange: no other word moves.
        write(chip.lastChild, scene().words[1 - which()][j]);
        chip.setAttribute("aria-pressed", String(j === asked));
        chip.setAttribute("aria-label", `${text} ${weights[j].toFixed(2)}`);
      });
      write(exchange, `Swap “${texts[differs]}” for “${scene().words[1 - which()][differs]}”`);
      const mean = lab.get("averaged");
      const given = { texts, asked, weights, mean, most, other, ...compute(scene().inner[which()], asked, weights) };
      write(lab.summary, describe(given)[lab.get("stage") - 1]);
      picture.update(given, scene().head, lab.get("stage"));
      flipped ||= lab.get("exchanged") !== lab.first.exchanged && !mean && asked === differs;
      lab.ask("Try it: press Swap. Which word gets the largest weight now?", flipped,
        "Done: one word made it look elsewhere.");
      draw();
      follow();
    });
  },
};
