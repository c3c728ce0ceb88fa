// All heads side by side, and the way of one token through them: weights, contexts, out_proj.
import {
  causalHead, format, headSums, largestDifference, short, spellDot, spellSoftmax,
  splitAttention, stackHeads, sum, wrapper,
} from "./core.js";
import { HEADS, Lab, argmax, byShare, byWeight, features, grid, make, range, square, write } from "./ui.js";

const TRAITS = [
  "inputs", "tokens", "num_heads", "d_head", "token", "silenced", "sharper", "heads",
  "out_proj",
];
const MOST = 4;
const TIMES = 24; // multi_head.py has it, too
const HINT = "Point at a square or a bar, or move to it with the arrow keys, to read its sum.";

const compute = (lab) => {
  const [h, d, i] = lab.all("num_heads", "d_head", "token");
  const inputs = lab.get("inputs");
  const times = lab.get("sharper") ? TIMES : 1;
  const heads = lab.get("heads")[d].slice(0, h).map((head) =>
    ({ ...head, query: head.query.map((row) => row.map((x) => x * times)) }));
  const first = wrapper(inputs, heads);
  const root = Math.sqrt(h * d); // as nn.Linear draws: within 1 / √d_in
  const rows = lab.get("out_proj").slice(0, h * d);
  const weight = rows.map((row) => row.slice(0, h * d).map((x) => x / root));
  const bias = rows.map((row) => row.at(-1) / root);
  const off = lab.get("silenced").filter((head) => head < h);
  return {
    parts: heads.map((head) => causalHead(inputs, head)),
    first,
    second: splitAttention(inputs, stackHeads(heads), h),
    weight, bias, off,
    ...headSums(first[i], weight, bias, h, off),
  };
};
const size = (row) => Math.sqrt(sum(row.map((x) => x * x)));

// From -1 to 1, as a share of the largest.
const signed = (values) => {
  const share = byShare(values);
  return (x) => Math.sign(x) * share(x);
};

const widths = (d_in, t, h, d) => [
  ["argument d_out", d, h * d],
  ["W_query.weight", `${h} × (${d}, ${d_in})`, `(${h * d}, ${d_in})`],
  ["queries", `${h} × (b, ${t}, ${d})`, `(b, ${h}, ${t}, ${d})`],
  ["scores", `${h} × (b, ${t}, ${t})`, `(b, ${h}, ${t}, ${t})`],
  ["divisor", `√${d}`, `√${d}`],
  ["output", `(b, ${t}, ${h * d})`, `(b, ${t}, ${h * d})`],
  ["weights in all", 3 * h * d * d_in, `${3 * h * d * d_in} + out_proj ${h * d * (h * d + 1)}`],
];
const widthTable = (...sizes) => {
  const line = ([name, ...cells]) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...cells.map((x) => make("td", {}, String(x))));
  const head = ["wrapper", "split"].map((name) => make("th", { scope: "col" }, name));
  return make("div", { class: "al-scroll", role: "group", tabindex: "0", "aria-label": "Every width" },
    make("table", { "aria-label": "Every width" },
      make("thead", {}, make("tr", {}, make("td", { class: "al-empty" }), ...head)),
      make("tbody", {}, ...widths(...sizes).map(line))));
};

export default {
  render({ model, el, place }) {
    const lab = new Lab({ model, el, place }, "Multi-head lab", TRAITS);
    lab.root.classList.add("al-multi");
    const tokens = lab.get("tokens");
    const names = range(MOST).map((head) => `head ${head}`);
    const switches = names.map((name, head) => make("button", {
      type: "button", class: `al-button ${HEADS[head]}`,
      click: () => lab.flip("silenced", head),
    }, name));
    lab.param("silenced", (text) => {
      const off = text.split(",").map(Number);
      const good = off.every((head) => Number.isInteger(head) && head >= 0 && head < MOST);
      return good ? [...new Set(off)].sort() : undefined;
    }, (off) => off.join());
    lab.add(make("div", { class: "al-presets", role: "group", "aria-label": "Heads that are on" },
      make("span", {}, "On:"), ...switches));
    lab.choice("token", "Token", tokens.map((token, i) => [i, token]));
    lab.resetButton();
    if (Object.keys(lab.get("heads")).length > 1) { // not the heads of one layer that was given
      lab.settings(() => {
        lab.slider("num_heads", "num_heads", { min: 1, max: MOST });
        lab.slider("d_head", "d_out of one head", { min: 1, max: 4 });
        lab.choice("sharper", "Queries", [[true, `times ${TIMES}`], [false, "as drawn"]]);
      });
    }

    let now = null;
    let shape = "";
    const spell = {
      weights: (head) => (i, j) =>
        `head ${head}, ${tokens[i]} → ${tokens[j]}: ${spellSoftmax(now.parts[head].scores[i], j)}`,
      context: (i, j) => {
        const d = lab.get("d_head");
        const part = now.parts[Math.floor(j / d)];
        return `${tokens[i]}, head ${Math.floor(j / d)}, feature ${(j % d) + 1}: ` +
          spellDot(part.weights[i], part.values.map((row) => row[j % d]));
      },
      out: (k, head) => {
        const [h, d] = lab.all("num_heads", "d_head");
        if (head === h) return `bias of feature ${k + 1}: ${format(now.bias[k])}`;
        const kept = names.slice(0, h).map((_, one) => one).filter((one) => !now.off.includes(one));
        if (head > h) {
          const parts = [...kept.map((one) => short(now.added[one][k])), short(now.bias[k])];
          return `feature ${k + 1} of the output: ${parts.join(" + ")} = ${format(now.output[k])}`;
        }
        const [from, to] = [head * d, (head + 1) * d];
        const gone = now.off.includes(head) ? "; it is off" : "";
        return `head ${head} adds to feature ${k + 1}: ` +
          spellDot(now.first[lab.get("token")].slice(from, to), now.weight[k].slice(from, to)) + gone;
      },
    };
    lab.tells(HINT, (how, i, j) => how(i, j));
    const heats = lab.stage("1. Weights α of each head");
    heats.element.classList.add("al-wide");
    // On a phone there is room for the heads or for the token's way: two steps.
    const steps = ["1: all tokens", "2 to 4: one token"].map((text, step) => make("button", {
      type: "button", class: "al-button", "aria-pressed": String(!step),
      click: () => {
        lab.root.classList.toggle("mh-second", step === 1);
        steps.forEach((one, i) => one.setAttribute("aria-pressed", String(i === step)));
      },
    }, text));
    lab.stages.after(make("div", { class: "mh-steps", role: "group", "aria-label": "Steps" }, ...steps));
    const stages = {
      bars: lab.stage(""),
      context: lab.stage("3. Contexts z"),
      out: lab.stage("4. out_proj adds them up"),
    };
    let grids = {};
    const build = (h, d) => {
      lab.seen = null;
      lab.tables.replaceChildren();
      const used = names.slice(0, h);
      const joined = range(h * d).map((j) => `h${Math.floor(j / d)} ${(j % d) + 1}`);
      const drawn = (label, shape, options, colors) => {
        const part = grid({ label: `${label}, drawn`, shape, ...options });
        if (shape !== "heat") part.table.classList.add("al-named");
        part.cells.forEach((line, i) => line.forEach((cell, j) =>
          cell.classList.add(HEADS[colors(i, j)] || "al-plain")));
        return part;
      };
      grids = { heat: [], weights: [] };
      used.forEach((name, head) => {
        const pick = (i) => lab.set({ token: i });
        const options = { ...square(tokens), pick, inspect: lab.inspect(spell.weights(head)) };
        grids.heat.push(drawn(`Weights α of ${name}`, "heat", options, () => head));
        grids.weights.push(lab.table(`Weights α of ${name}`, "", options));
      });
      heats.show(make("div", { class: "mh-heads" }, ...grids.heat.map((part, head) =>
        make("div", { class: `mh-head ${HEADS[head]}` }, make("p", {}, names[head]), part.element))));
      grids.bars = drawn("Weights α of the token", "bars", {
        corner: "token", rows: tokens, columns: used,
        inspect: (j, head) => lab.inspect(spell.weights(head))(lab.get("token"), j),
      }, (i, head) => head);
      grids.context = drawn("Context of the token", "signed", {
        corner: "feature", rows: joined, columns: ["z"],
        inspect: (j) => lab.inspect(spell.context)(lab.get("token"), j),
      }, (j) => Math.floor(j / d));
      const out = {
        corner: "feature", rows: features(h * d), columns: [...used, "bias", "out"],
        inspect: lab.inspect(spell.out),
      };
      grids.out = drawn("Output of the token", "signed", out, (i, head) => (head < h ? head : MOST));
      for (const name of ["bars", "context", "out"]) stages[name].show(grids[name].element);
      const both = { corner: "token", rows: tokens, columns: joined, inspect: lab.inspect(spell.context) };
      grids.first = lab.table("MultiHeadAttentionWrapper", "", both);
      grids.second = lab.table("MultiHeadAttention", "before out_proj", both);
      grids.adds = lab.table("Output of the token", "what each head adds, the bias, and their sum", out);
      lab.stage("Every width", "", lab.tables).show(widthTable(lab.get("inputs")[0].length, tokens.length, h, d));
    };
    const task = (moved) => {
      const [h, token] = [lab.get("num_heads"), tokens[lab.get("token")]];
      const least = moved.indexOf(Math.min(...moved));
      const solved = h > 1 && now.off.length === 1 && now.off[0] === least;
      const others = moved.map((x, head) => `${format(x)} without head ${head}`);
      lab.ask(h < 2 ? "" : `Which head does the output of ${token} miss least? Switch it off.`, solved,
        `Done: the output of ${token} moves by ${others.join(", ")}.`);
    };

    return lab.start(() => {
      const [h, d, i] = lab.all("num_heads", "d_head", "token");
      now = compute(lab);
      if (shape !== [h, d].join()) build(h, d);
      shape = [h, d].join();
      switches.forEach((button, head) => {
        button.hidden = head >= h;
        button.setAttribute("aria-pressed", String(!now.off.includes(head)));
      });
      now.parts.forEach((part, head) => {
        for (const one of [grids.heat[head], grids.weights[head]]) {
          one.update(part.weights, { tone: byWeight });
          one.choose(i);
        }
        grids.heat[head].element.parentElement.classList.toggle("al-off", now.off.includes(head));
      });
      write(heats.note, lab.get("sharper") ? `queries times ${TIMES}, so that heads differ` : "");
      write(stages.bars.heading, `2. Weights α of ${tokens[i]}`);
      const off = (head) => now.off.includes(head);
      grids.bars.update(tokens.map((_, j) => now.parts.map((part) => part.weights[i][j])), { tone: byWeight });
      grids.bars.flagCells("al-off", (j, head) => off(head));
      const context = now.first[i].map((x) => [x]);
      grids.context.update(context, { tone: signed(context) });
      grids.context.flagCells("al-off", (j) => off(Math.floor(j / d)));
      const lines = now.output.map((x, k) => [...now.added.map((part) => part[k]), now.bias[k], x]);
      grids.out.update(lines, { tone: signed(lines) });
      grids.out.flagCells("al-off", (k, head) => off(head));
      grids.first.update(now.first);
      grids.second.update(now.second);
      write(grids.second.stage.note,
        `before out_proj; largest difference to the wrapper: ${format(largestDifference(now.first, now.second))}`);
      grids.adds.update(lines);
      const most = now.parts.map((part, head) => `${tokens[argmax(part.weights[i])]} in head ${head}`);
      const gone = now.off.map((head) => now.added[head]);
      write(lab.summary, now.off.length
        ? `Without ${now.off.map((head) => names[head]).join(" and ")}, the output of ${tokens[i]} moves by ` +
          `${format(size(gone[0].map((_, k) => sum(gone.map((part) => part[k])))))}` +
          (now.off.length === h ? ": only the bias of out_proj is left." : ".")
        : `${tokens[i]} looks most at ${most.join(", at ")}.`);
      task(now.added.map(size));
      lab.hold();
    });
  },
};
