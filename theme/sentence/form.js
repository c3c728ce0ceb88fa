// A reader's own sentence: where do heads of a trained model look in it? The weights are
// loaded once, when asked for; what is typed stays in the page. The reader guesses first.
// Parts of the page are made by lean_site/scripts/shared.js.
import { MOST_TOKENS, checksum, look, readModel, splitPieces, splitWords } from "./forward.js";

const MOST_WORDS = 16;
const OPENING = { ")": "(", "]": "[", "}": "{", "”": "“", "’": "‘", '"': '"', "'": "'" };
const PRONOUNS = new Set("he she it they him her them his hers its their theirs".split(" "));
const PARKED = "parked here when nothing fits";
const EXAMPLE = "The workers watched the piano until they left.";

const isWord = (text) => /[\p{L}\p{N}]/u.test(text);
const lastOf = (words, fits) => words.findLastIndex((word, i) => isWord(word) && fits(word.toLowerCase(), i));

// ---- what can be asked, in the order of how often heads do it ----

const findClosing = (words) => words.findLastIndex((word, i) => words.slice(0, i).includes(OPENING[word]));
const findRepeated = (words) => {
  const small = words.map((word) => word.toLowerCase());
  const repeated = small.filter((word, i) => isWord(word) && small.indexOf(word) < i);
  // The longest: in most sentences "the" comes back, too.
  return small.lastIndexOf(repeated.sort((a, b) => b.length - a.length)[0]);
};
const findPronoun = (words) => {
  const found = lastOf(words, (word) => PRONOUNS.has(word));
  return found < 0 ? lastOf(words, () => true) : found;
};

// from: the place of the word that asks at first; below zero, the question is not asked.
const QUESTIONS = [
  { heads: ["0.2"], does: "the word before", from: (words) => lastOf(words, () => true) },
  { heads: ["1.6"], does: "closing to opening", from: findClosing },
  { heads: ["1.3", "3.1"], does: "pronoun to noun", from: findPronoun },
  { heads: ["2.9"], does: "the same word earlier", from: findRepeated },
];

// ---- what cannot be read, in words ----

const complain = (words) => {
  const count = words.filter(isWord).length;
  if (!count) return "Type a sentence first.";
  if (count > MOST_WORDS) return `That's ${count} words. Shorten it to at most ${MOST_WORDS}.`;
  const foreign = words.find((word) => /[^\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}]/u.test(word));
  return foreign ? `The model reads only English, but “${foreign}” isn't in Latin letters.` : "";
};

const complainOfPieces = (words, pieces) => {
  const unknown = pieces.indexOf(null);
  if (unknown >= 0) return `The model doesn't know “${words[unknown]}”. Take it out.`;
  const count = pieces.flat().length + 2;
  return count > MOST_TOKENS ? `That's ${count} tokens. Shorten it to at most ${MOST_TOKENS}.` : "";
};

// ---- loading ----

// What weights.js holds between its parentheses.
const parse = (text) => JSON.parse(text.slice(text.indexOf("(") + 1, text.lastIndexOf(")")));

const fetchData = async (address, size, signal, report) => {
  const response = await fetch(address, { signal });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  const [reader, decoder] = [response.body.getReader(), new TextDecoder()];
  let [text, received] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return parse(text);
    text += decoder.decode(value, { stream: true });
    received += value.length;
    report(received / size);
  }
};

// Without a server a page may not fetch, but it may run a script.
const runScript = (address, signal) => new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.src = address;
  window.attentionSentence = resolve;
  script.onload = () => reject(new Error("the file is damaged"));
  script.onerror = () => reject(new Error("the file is missing"));
  signal.addEventListener("abort", () => reject(signal.reason));
  document.head.append(script);
});

const loadModel = async ({ address, size, sum }, signal, report) => {
  const data = location.protocol === "file:"
    ? await runScript(address, signal)
    : await fetchData(address, size, signal, report);
  const model = readModel(data);
  if (checksum(model.bytes) !== sum) throw new Error("it isn't the file that belongs to this page");
  return model;
};

// ---- parts of the page ----

const button = (text, click, kind = "button") => make("button", { type: kind, click }, text);

const SVG = "http://www.w3.org/2000/svg";
const drawArc = (from, to, weight) => {
  const [a, b] = [from, to].map((box) => box.x + box.width / 2);
  const down = Math.sign(Math.round((to.y - from.y) / 10));
  const [start, end] = [from.y + (down > 0 ? from.height : 0), to.y + (down < 0 ? to.height : 0)];
  const high = start - Math.min(18 + Math.abs(b - a) / 4, 64);
  const turn = down ? (start + end) / 2 : high; // between two lines, or above one
  const arc = document.createElementNS(SVG, "path");
  arc.setAttribute("d", `M${a} ${start}C${a} ${turn} ${b} ${turn} ${b} ${end}`);
  arc.style.setProperty("--weight", weight.toFixed(3));
  return arc;
};

// A word with what stands below it.
const chip = (word, below, attributes, tag = "span") => {
  const special = word === "[CLS]" ? PARKED : word === "[SEP]" ? "the end" : "";
  const note = special ? [make("small", {}, special)] : [];
  return make(tag, attributes, make("span", {}, word), ...below, ...note);
};

const drawHead = (head, words, row, asked) => {
  const arcs = document.createElementNS(SVG, "svg");
  arcs.setAttribute("aria-hidden", "true");
  const chips = words.map((word, j) => chip(word, [make("b", {}, row[j].toFixed(2))], {
    class: j === asked ? "os-chip os-asks" : "os-chip", style: `--tone:${Math.round(100 * row[j])}%`,
  }));
  const board = make("div", { class: "os-board" }, arcs, make("div", { class: "os-words" }, ...chips));
  new ResizeObserver(() => {
    const { x, y, width, height } = board.getBoundingClientRect();
    const boxes = chips.map((one) => {
      const box = one.getBoundingClientRect();
      return { x: box.x - x, y: box.y - y, width: box.width, height: box.height };
    });
    arcs.setAttribute("viewBox", `0 0 ${width} ${height}`);
    arcs.replaceChildren(...row.flatMap((weight, j) =>
      (j === asked || weight < 0.02 ? [] : [drawArc(boxes[asked], boxes[j], weight)])));
  }).observe(board);
  return make("figure", {}, make("figcaption", {}, `Head ${head}`), board);
};

// ---- the answer, in words ----

const largestOf = (row) => row.indexOf(Math.max(...row));
const describePlace = (words, place, asked) => {
  if (words[place] === "[CLS]") return `[CLS]: ${PARKED}`;
  if (place === asked) return "that word itself";
  const twice = words.filter((word) => word.toLowerCase() === words[place].toLowerCase()).length > 1;
  return `${twice ? `the ${place < asked ? "earlier" : "later"} ` : ""}“${words[place]}”`;
};
const describeHead = (head, words, row, asked) => {
  const largest = largestOf(row);
  return `The largest weight of head ${head} from “${words[asked]}”, ${row[largest].toFixed(2)}, is on ${describePlace(words, largest, asked)}.`;
};
const describeGuess = (guess, largest) => {
  if (guess === null) return "";
  const right = largest.filter((place) => place === guess).length;
  if (right === largest.length) return " That was your guess.";
  return right ? " One of them agrees with your guess." : " You guessed another word.";
};
const describePair = (largest) => {
  if (largest.length < 2) return "";
  return largest[0] === largest[1] ? " The two heads agree." : " The two heads disagree.";
};

const describeRate = ({ heads, does }, rates) => {
  if (heads.length < 2) return `${does}: ${rates[heads[0]].join(" of ")}`;
  const counts = heads.map((head) => `${rates[head][0]} (${head})`).join(" and ");
  return `${does}: ${counts} of ${rates.agree[1]}; they agreed on ${rates.agree[0]}`;
};

// ---- the form ----

class OwnSentence {
  constructor(root) {
    this.facts = JSON.parse(root.dataset.facts);
    this.model = null;
    this.megabytes = `${(this.facts.transferred / 1e6).toFixed(1)} MB`;
    this.input = make("input", { id: "own-text", type: "text", maxlength: 400, autocomplete: "off", spellcheck: "false", lang: "en" });
    this.input.value = EXAMPLE;
    this.submit = button(`Load the model (${this.megabytes}) and read it`, () => {}, "submit");
    this.status = make("p", { class: "os-status", role: "status" });
    this.loading = make("div", { class: "os-loading" });
    this.settings = make("div", {});
    this.board = make("div", {});
    const form = make("form", { submit: (event) => { event.preventDefault(); this.read(); } },
      make("label", { for: "own-text" }, `Your sentence, in English, at most ${MOST_WORDS} words`),
      this.input, this.submit);
    root.replaceChildren(form, this.loading, this.settings, this.status, this.board);
  }

  say(text) {
    this.status.textContent = text;
  }

  async read() {
    const problem = complain(splitWords(this.input.value));
    this.settings.replaceChildren();
    this.board.replaceChildren();
    if (problem) return this.say(problem);
    if (!this.model && !(await this.load())) return;
    this.say("Reading …");
    // Painted before the page is busy.
    requestAnimationFrame(() => setTimeout(() => this.compute()));
  }

  async load() {
    const control = new AbortController();
    const bar = make("progress", { "aria-label": "Loading the model", max: 1 });
    this.loading.replaceChildren(bar, button("Cancel", () => control.abort(new Error("you stopped it"))));
    this.submit.disabled = true;
    this.say(`Loading ${this.megabytes} …`);
    try {
      this.model = await loadModel(this.facts, control.signal, (share) => { bar.value = share; });
      this.submit.textContent = "Read it";
    } catch (error) {
      const why = error instanceof SyntaxError ? "the file is damaged" : error.message;
      this.say(`The model wasn't loaded: ${why}. Your sentence is still there; try again.`);
    }
    this.loading.replaceChildren();
    this.submit.disabled = false;
    return this.model;
  }

  compute() {
    const words = splitWords(this.input.value);
    const pieces = words.map((word) => splitPieces(word, this.model.ids));
    const problem = complain(words) || complainOfPieces(words, pieces);
    if (problem) return this.say(problem);
    this.words = ["[CLS]", ...words, "[SEP]"];
    this.weights = look(this.model, [["[CLS]"], ...pieces, ["[SEP]"]]);
    this.questions = QUESTIONS.filter((one) => one.from(words) >= 0);
    this.choose(this.questions[0]);
  }

  // Which head is asked, and from which word.
  choose(question, asked = question.from(this.words.slice(1, -1)) + 1) {
    [this.question, this.asked] = [question, asked];
    const heads = this.questions.map((one) => {
      const name = `${one.heads.length > 1 ? "Heads" : "Head"} ${one.heads.join(" and ")}`;
      const radio = make("input", { type: "radio", name: "own-head", checked: one === question,
        change: () => this.choose(one) });
      return make("label", {}, radio, make("strong", {}, name), ` ${describeRate(one, this.facts.rates)}`);
    });
    const from = make("select", { change: () => this.choose(question, Number(from.value)) },
      ...this.words.slice(1, -1).map((word, i) =>
        make("option", { value: i + 1, selected: i + 1 === asked }, word)));
    const legend = `Which head? Beside each: how often it did this in ${this.facts.sentences} sentences we wrote before looking.`;
    this.replaceSettings(
      make("fieldset", {}, make("legend", {}, legend), ...heads),
      make("p", {}, make("label", {}, "From the word ", from)));
    this.ask();
  }

  // The focus stays on the control that was used.
  replaceSettings(...content) {
    const used = document.activeElement;
    const kind = this.settings.contains(used) ? (used.matches("select") ? "select" : ":checked") : null;
    this.settings.replaceChildren(...content);
    if (kind) this.settings.querySelector(kind).focus();
  }

  ask() {
    const heads = this.question.heads.join(" and of head ");
    const chips = this.words.map((word, j) => chip(word, [], {
      type: "button", class: j === this.asked ? "os-chip os-asks" : "os-chip", click: () => this.answer(j),
    }, "button"));
    const guesses = make("div", { class: "os-words", role: "group", "aria-label": "Your guess" }, ...chips);
    this.board.replaceChildren(guesses, button("Show me", () => this.answer(null)));
    this.say(`Where will it look? From “${this.words[this.asked]}”, which word gets the largest weight of head ${heads}? Click your guess.`);
  }

  answer(guess) {
    const { question, words, asked } = this;
    const rows = question.heads.map((head) => this.weights(head)[asked]);
    const largest = rows.map(largestOf);
    const drawings = rows.map((row, i) => drawHead(question.heads[i], words, row, asked));
    const again = button("Ask again", () => {
      this.ask();
      this.board.querySelector("button").focus();
    });
    this.board.replaceChildren(make("div", { class: "os-heads" }, ...drawings), again);
    again.focus({ preventScroll: true });
    const heads = rows.map((row, i) => describeHead(question.heads[i], words, row, asked));
    this.say(heads.join(" ") + describePair(largest) + describeGuess(guess, largest));
  }
}

document.querySelectorAll(".own-sentence").forEach((root) => new OwnSentence(root));
