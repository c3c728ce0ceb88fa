
// The book's search: builds the index, compares words, and shows hits.
(() => {
  const KINDS = { listing: "Listing", figure: "Figure", cell: "Cell", name: "Name" };
  const [PAGE, KIND, ANCHOR, TITLE, TEXT, CODE, SHOWN] = Array(7).keys();
  const SHOWN_HITS = 12;
  const PER_PAGE = 3;
  const { stop, same, also, answers, messages, symbols } = globalThis.bookIndex.words;
  // A word without its ending: heads, head; masking, mask.
  const stem = (word) => {
    let short = word;
    if (/[^\p{L}]/u.test(short) || short.length < 4) return short;
    if (/[^aeiou]ies$/.test(short)) short = `${short.slice(0, -3)}y`;
    else if (/[^su]s$/.test(short) && !/is$/.test(short)) short = short.slice(0, -1);
    const cut = short.replace(/(ing|ed)$/, "");
    if (cut !== short && cut.length > 3) short = cut.replace(/([bdglmnprt])\1$/, "$1");
    return short.length > 4 ? short.replace(/e$/, "") : short;
  };
  const splitKnown = (word) => (Object.hasOwn(same, word) ? same[word] : word)
    .split(" ").map(stem);

  // The words of a text. Numbers stay whole; names in code count whole and in parts.
  const words = (text) => (text.normalize("NFC")
    .match(/√|-?\p{N}+(?:\.\p{N}+)+|[\p{L}\p{N}_]+/gu) || [])
    .flatMap((word) => {
      if (/^-?[\d.]+$/.test(word)) return [word.replace(/^-/, "")];
      const pieces = word.replace(/(\p{Ll})(?=\p{Lu})/gu, "$1 ").split(/[ _]+/).filter(Boolean);
      const all = pieces.length > 1 ? [word, ...pieces.filter((p) => p.length > 1)] : pieces;
      return all.flatMap((one) => splitKnown(one.toLowerCase()));
    });
  const STOP = new Set(words(stop));
  // The words that aren't stop words, or all words if there are no others.
  const dropStopWords = (text) => {
    const all = [...new Set(words(text))];
    const kept = all.filter((word) => !STOP.has(word));
    return kept.length ? kept : all;
  };
  const simplify = (text) => ` ${text.toLowerCase().replace(/√/g, " sqrt ")
    .replace(/[^\p{L}\p{N}_.]+/gu, " ").trim()} `;

  // The query, and the query with the book's names for what it calls otherwise.
  const listReadings = (query) => {
    const said = simplify(query);
    const found = [query];
    for (const [calls, names] of also) {
      const call = calls.filter((one) => said.includes(` ${one} `))
        .sort((one, other) => other.length - one.length)[0];
      if (call) found.push(...names.map((name) => said.replace(` ${call} `, ` ${name} `)));
    }
    return found;
  };

  // The answers in the table of words, best first, as [piece, score].
  const DIGITS = "zero one two three four five six seven eight nine".split(" ");
  const findAnswers = (query) => {
    const asked = dropStopWords(query.replace(/(?<![\w.])\d(?![\w.])/g, (digit) => DIGITS[digit]));
    const said = new Set(asked);
    const fits = (table, worth) => table.map(([id, phrases]) => [id, Math.max(
      ...phrases.map((phrase) => worth(dropStopWords(phrase))))]);
    const asks = (all) => {
      const more = asked.length - all.length;
      return all.every((word) => said.has(word)) && more <= (all.length > 2 ? 1 : 0)
        ? all.length - more / 2 : 0;
    };
    // A pasted message, whole or in part: at least three shared words, or all of them.
    const says = (all) => {
      const shared = all.filter((word) => said.has(word)).length;
      const whole = shared >= 0.7 * all.length && (shared > 2 || shared === all.length);
      return whole || (shared > 2 && shared === asked.length) ? shared : 0;
    };
    const names = (all) => (asked.length && asked.every((word) => all.includes(word)) ? 0.5 : 0);
    return [...fits(answers, asks), ...fits(messages, says), ...fits(symbols, names)].filter(([, worth]) => worth)
      .sort((one, other) => other[1] - one[1]);
  };
  const findCodes = (query) => query.toLowerCase().match(/\batt\d{3}\b/g) || []; // anchors

  const { default: MiniSearch } = globalThis.MiniSearchModule;

  const buildSearch = ({ pages, pieces }) => {
    const engine = new MiniSearch({
      fields: ["title", "page", "text", "code", "shown"],
      tokenize: words,
      processTerm: (term) => term,
    });
    const weight = (id) => {
      const piece = pieces[id];
      const kind = { page: 1.2, section: 1, listing: 0.95, name: 0.7 }[piece[KIND]] || 0.45;
      // Cells that check an exercise have its topic in their name, but aren't about it.
      const checks = /^(check|write|solution) /.test(piece[TITLE]) ? 0.5 : 1;
      const asks = piece[TITLE].endsWith("?") ? 1.25 : 1;
      return pages[piece[PAGE]][2] * kind * checks * asks;
    };
    // The code of a section's cells also finds the section, with less weight than words.
    const inSection = [];
    let section = 0;
    pieces.forEach((piece, id) => {
      inSection[id] = [piece[CODE] ?? ""];
      if (piece[KIND] === "section" || piece[KIND] === "page") section = id;
      else inSection[section].push(piece[TITLE], piece[CODE] ?? "");
    });
    engine.addAll(pieces.map((piece, id) => ({
      id,
      title: piece[TITLE],
      page: pages[piece[PAGE]][1],
      text: piece[TEXT] ?? "",
      code: inSection[id].join("\n"),
      shown: piece[SHOWN] ?? "",
    })));
    const options = {
      boost: { title: 4, page: 1.5, text: 1, code: 0.5, shown: 3 },
      boostDocument: weight,
      prefix: (term, i, terms) => i === terms.length - 1 && term.length > 1,
      weights: { prefix: 0.6, fuzzy: 0.5 },
    };
    // Only a word that is nowhere in the book counts as misspelled: first by two swapped
    // letters, then by one wrong letter, then by two.
    const finds = (term, more) => engine.search(term, { tokenize: (t) => [t], ...more }).length > 0;
    const correct = (term) => {
      if (/[^\p{L}]/u.test(term) || term.length < 4 || finds(term, { prefix: true })) return term;
      for (let i = 1; i < term.length; i += 1) {
        const swapped = term.slice(0, i - 1) + term[i] + term[i - 1] + term.slice(i + 1);
        if (finds(swapped)) return swapped;
      }
      return term;
    };
    const fuzzy = (term) => {
      if (/[^\p{L}]/u.test(term) || term.length < 4 || finds(term, { prefix: true })) return false;
      return finds(term, { fuzzy: 1 }) || term.length < 6 ? 1 : 2;
    };
    const searchOnce = (query, combineWith) => engine.search(query, {
      ...options, combineWith, fuzzy,
      tokenize: (text) => dropStopWords(text).map(correct),
    });
    const keepBest = (hits, factor, into) => hits.forEach((hit) => {
      const known = into.get(hit.id);
      const score = hit.score * factor;
      if (!known || known.score < score) into.set(hit.id, { ...hit, score });
    });
    return (query) => {
      const found = new Map();
      // "What is …" prefers titles that ask the same.
      const asked = words(query).filter((word) => STOP.has(word));
      const asks = ({ id }) => {
        const title = new Set(words(pieces[id][TITLE]));
        return 1 + 0.4 * asked.filter((word) => title.has(word)).length;
      };
      listReadings(query).forEach((reading, i) => keepBest(searchOnce(reading, "AND"), i ? 0.9 : 1, found));
      if (found.size < SHOWN_HITS) keepBest(searchOnce(query, "OR"), 0.1, found);
      const hits = [...found.values()].map((hit) => ({ ...hit, score: hit.score * asks(hit) }))
        .sort((one, other) => other.score - one.score);
      const coded = findCodes(query).map((code) => pieces.findIndex((one) => one[ANCHOR] === code));
      const answering = findAnswers(query).slice(0, 3).map(([id]) => id);
      const first = [...new Set([...coded.filter((id) => id >= 0), ...answering])];
      const answered = first.map((id) => found.get(id) ?? { id, terms: dropStopWords(query) });
      const ids = new Set(answered.map(({ id }) => id));
      const counts = {};
      return [
        ...answered,
        ...hits.filter(({ id }) => !ids.has(id)),
      ].filter(({ id }) => {
        const page = pieces[id][PAGE];
        counts[page] = (counts[page] || 0) + 1;
        return counts[page] <= PER_PAGE;
      }).slice(0, SHOWN_HITS);
    };
  };

  // Mark the found words of a text. Built from nodes, never from markup.
  const markWords = (text, terms) => text.split(/([\p{L}\p{N}_√]+(?:\.[\p{L}\p{N}_]+)*)/u).map((word) => {
    const hit = word && words(word).some((one) => terms.has(one));
    return hit ? make("mark", {}, word) : word;
  });

  // The part of a text with the most found words.
  const cutPassage = (text, terms, size = 28) => {
    const all = text.split(" ");
    const hits = all.map((word) => words(word).filter((one) => terms.has(one)));
    let start = 0;
    let most = -1;
    for (let i = 0; i === 0 || i <= all.length - size / 2; i += 4) {
      const count = new Set(hits.slice(i, i + size).flat()).size;
      if (count > most) [start, most] = [i, count];
    }
    const cut = all.slice(start, start + size).join(" ");
    return `${start ? "… " : ""}${cut}${start + size < all.length ? " …" : ""}`;
  };
  // The line of code with the most found words.
  const chooseLine = (code, terms) => {
    const lines = code.split("\n");
    const count = (one) => new Set(words(one).filter((word) => terms.has(word))).size;
    return lines.reduce((best, one) => (count(one) > count(best) ? one : best), lines[0]);
  };

  const makeHit = (hit, { pages, pieces }, root) => {
    const piece = pieces[hit.id];
    const [address, page] = pages[piece[PAGE]];
    const terms = new Set(hit.terms);
    const isPlace = piece[KIND] !== "page" && piece[ANCHOR];
    const link = make("a", { href: `${root}${address}${isPlace ? `#${piece[ANCHOR]}` : ""}` });
    const kind = KINDS[piece[KIND]];
    link.append(make("span", { class: "search-title" }, ...markWords(piece[TITLE], terms)));
    if (piece[KIND] !== "page") {
      link.append(" ", make("span", { class: "search-page" }, kind ? `${kind} in ${page}` : page));
    }
    const number = ((piece[SHOWN] ?? "").match(/\S+/g) || []).find((one) => terms.has(one.replace("-", "")));
    const parts = [];
    if (piece[TEXT]) parts.push(make("span", { class: "search-text" }, ...markWords(cutPassage(piece[TEXT], terms), terms)));
    else if (piece[CODE]) parts.push(make("code", { class: "search-text" }, ...markWords(chooseLine(piece[CODE], terms), terms)));
    if (number) parts.push(make("span", { class: "search-text" }, "prints ", make("mark", {}, number)));
    link.append(...parts);
    return make("li", {}, link);
  };

  let search = null;
  const renderers = new Map(); // of each search field

  globalThis.bookSearch = (field, answer, root) => {
    const data = globalThis.bookIndex;
    const texts = globalThis.bookTexts;
    if (texts) {
      data.pieces.forEach((piece, i) => piece.push(...texts[i]));
      search = globalThis.bookTexts = null;
    }
    search ??= buildSearch(data);
    if (renderers.has(field)) return renderers.get(field)();
    const status = make("p", { class: "search-status", role: "status" });
    const list = make("ol", { class: "search-hits" });
    answer.replaceChildren(status, list);
    const render = () => {
      const query = field.value.trim();
      const hits = query ? search(query) : [];
      list.replaceChildren(...hits.map((hit) => makeHit(hit, data, root)));
      status.textContent = !query ? "" : hits.length
        ? `${hits.length} ${hits.length === 1 ? "hit" : "hits"}. Arrow keys move, Enter opens.`
        : "Nothing found. Try another word, or fewer.";
      answer.dataset.query = query;
    };
    renderers.set(field, render);
    field.addEventListener("input", render);
    const form = field.form;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      render();
      list.querySelector("a")?.click();
    });
    // Arrow keys move between the field and the hits.
    const host = form.parentElement;
    host.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      const stops = [field, ...list.querySelectorAll("a")];
      const at = stops.indexOf(document.activeElement);
      if (at < 0) return;
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      stops[(at + step + stops.length) % stops.length].focus();
    });
    return render();
  };
})();
