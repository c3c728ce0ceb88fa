// A head of a trained model reads a sentence: ask a word, exchange one, and see it look.
import { Lab, argmax, clamp, make, range, svg, write } from "./ui.js";

const TRAITS = ["scenes", "scene", "exchanged", "asked", "averaged"];
const DOES = {
  "3.1": "from they or it to whom or what",
  "2.9": "at the same word, earlier",
  "1.6": "from a bracket to its opening",
  "0.2": "at the word before",
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "What a trained head looks at", TRAITS);
    lab.root.classList.add("al-look");
    const scenes = lab.get("scenes");
    const scene = () => scenes[lab.get("scene")];
    const which = (of = scene()) => (lab.get("exchanged") && of.words[1] ? 1 : 0);
    const words = () => scene().words[which()];
    const row = () => (lab.get("averaged")
      ? words().map(() => 1 / words().length)
      : scene().weights[which()][lab.get("asked")].map((x) => x / 255));
    const show = (next) => ({ scene: next, exchanged: false, asked: scenes[next].ask });

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
      make("span", { class: "lk-text" }, ""), make("span", { class: "lk-number" }, "")
    )));
    const board = make("div", { class: "lk-board" }, lines, chips);
    lab.stages.append(board);

    // Over the words between two of a row; through the space between two rows.
    const line = (from, to, weight) => {
      const [a, b] = [from.x + from.width / 2, to.x + to.width / 2];
      const down = Math.sign(Math.round((to.y - from.y) / 10));
      const [start, end] = [from.y + (down > 0 ? from.height : 0), to.y + (down < 0 ? to.height : 0)];
      const high = start - Math.min(18 + Math.abs(b - a) / 4, 84);
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
        (j === asked || weight < 0.02 ? [] : [line(boxes[asked], boxes[j], weight)])));
    };
    new ResizeObserver(draw).observe(board);

    // ---- what can be changed ----

    const heads = Object.keys(DOES).filter((head) => scenes.some((one) => one.head === head));
    const exchange = lab.button("", () => {
      lab.set({ exchanged: !lab.get("exchanged"), asked: scene().ask });
    });
    exchange.classList.add("lk-exchange");
    lab.param("exchanged", (text) => ({ 1: true, 0: false })[text], (on) => (on ? "1" : "0"));
    lab.between("asked", 0, 63, true);
    const head = lab.choice("scene", "Head", () => heads.map((name) => {
      const own = scene().head === name ? lab.get("scene") : scenes.findIndex((one) => one.head === name);
      return [own, `${name}: ${DOES[name]}`];
    }), show);
    head.classList.add("lk-head");
    lab.button("Another sentence", () => {
      const same = range(scenes.length).filter((i) => scenes[i].head === scene().head);
      lab.set(show(same[(same.indexOf(lab.get("scene")) + 1) % same.length]));
    });
    lab.toggle("averaged", "Plain mean");
    lab.resetButton();

    lab.readout.remove(); // each word has its number
    let flipped = false;
    return lab.start(() => {
      const [asked, weights, texts] = [lab.get("asked"), row(), words()];
      Array.from(chips.children).forEach((chip, j) => {
        chip.hidden = j >= texts.length;
        if (chip.hidden) chip.setAttribute("aria-label", "no word");
      });
      const most = argmax(weights);
      const differs = scene().words[1]?.findIndex((word, j) => word !== scene().words[0][j]) ?? -1;
      texts.forEach((text, j) => {
        const chip = chips.children[j];
        const special = /^\[.+\]$/.test(text);
        chip.className = ["lk-word", special && "lk-special", j === asked && "lk-asks",
          j === differs && "lk-differs"].filter(Boolean).join(" ");
        chip.tabIndex = j === asked ? 0 : -1;
        chip.style.setProperty("--tone", `${(100 * weights[j]).toFixed(1)}%`);
        write(chip.firstChild, text);
        write(chip.lastChild, weights[j] < 0.05 ? "" : ` ${weights[j].toFixed(2)}`);
        chip.setAttribute("aria-pressed", String(j === asked));
        chip.setAttribute("aria-label", `${text} ${weights[j].toFixed(2)}`);
      });
      exchange.disabled = differs < 0;
      const [now, other] = [texts[differs], scene().words[1 - which()]?.[differs]];
      write(exchange, differs < 0 ? "No word to exchange" : `Exchange ${now} for ${other}`);
      const mean = lab.get("averaged");
      write(lab.summary, mean
        ? `A plain mean gives every word ${weights[0].toFixed(2)}, whichever word asks.`
        : `${texts[asked]} looks at ${texts[most]} (${weights[most].toFixed(2)}).`);
      flipped ||= lab.get("exchanged") && !mean && asked === differs;
      lab.ask("Try it: make it look somewhere else by exchanging one word.", flipped,
        "Done: one word exchanged, and the same head looks somewhere else.");
      draw();
    });
  },
};
