// What the labs draw with: charts with axes, marks that are dragged, planes of vectors.
import { letDrag, linear, roundValues } from "./chart.js";
import { clamp, make, put, range, svg, way } from "./ui.js";

const KINDS = {
  token: "al-token", k: "al-k", v: "al-v", query: "al-query", z: "al-z", bar: "al-bar",
  second: "al-second",
};

// A drawing of `width` × `height` pixels at the usual size of text; it grows with the text.
export const canvas = (width, height, label) =>
  svg("svg", {
    class: "al-drawing",
    role: "group",
    "aria-label": label,
    viewBox: `0 0 ${width} ${height}`,
    style: `width: ${width / 16}rem`,
  });

// Axes below and to the left; `x` and `y` are scales. Drawn anew when a scale changes.
export const axes = (root) => {
  const group = svg("g", { class: "al-axes", "aria-hidden": "true" });
  root.append(group);
  return ({ x, y, xLabel = "", yLabel = "", xTicks = null, yTicks = null }) => {
    const [left, right] = x.range;
    const [bottom, top] = y.range;
    group.replaceChildren(
      svg("path", { d: `M${left},${top}V${bottom}H${right}` }),
      ...(xTicks ?? roundValues(x.domain, 3)).flatMap((tick) => [
        svg("path", { d: `M${x(tick)},${bottom}v4` }),
        svg("text", { x: x(tick), y: bottom + 16, "text-anchor": "middle" }, String(tick)),
      ]),
      ...(yTicks ?? roundValues(y.domain, 3)).flatMap((tick) => [
        svg("path", { d: `M${left - 4},${y(tick)}h4` }),
        svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, String(tick)),
      ]),
      svg("text", { x: right, y: bottom + 31, "text-anchor": "end" }, xLabel),
      svg("text", { x: left - 4, y: top - 8, "text-anchor": "start" }, yLabel)
    );
  };
};

// A mark that mouse, finger and arrow keys move: `to([x, y])` hears where to, in pixels of
// the drawing; `by(dx, dy, far)` hears of an arrow key, with Shift for a large step.
export const movable = (mark, root, label, { to, by, seen = () => {} }) => {
  put(mark, { class: `${mark.getAttribute("class") || ""} al-handle`, tabindex: "0" });
  put(mark, { role: "slider", "aria-label": label, "aria-valuenow": "0" });
  letDrag(mark, root, to);
  mark.addEventListener("keydown", (event) => {
    const where = way(event);
    if (!where) return;
    event.preventDefault();
    by(...where, event.shiftKey);
  });
  mark.addEventListener("focus", seen);
  mark.addEventListener("pointerenter", seen);
  return (text, now = 0) => put(mark, { "aria-valuetext": text, "aria-valuenow": now });
};

// A line across charts, each from its top to its bottom, that is moved along them: `to(x)`
// hears of the place in pixels, `by(steps)` of arrow keys.
export const cursor = (root, label, spans, { to, by }) => {
  const [top, bottom] = [spans[0][0], spans[spans.length - 1][1]];
  const mark = svg("g", {},
    svg("rect", { class: "al-reach", x: -14, y: top - 8, width: 28, height: bottom - top + 12 }),
    ...spans.map(([y1, y2]) => svg("line", { class: "al-now", y1, y2 })),
    svg("circle", { class: "al-now al-point", cy: top + 8, r: 7 }));
  root.append(mark);
  const tell = movable(mark, root, label, {
    to: ([x]) => to(x),
    by: (dx, dy, far) => by((dx || dy) * (far ? 4 : 1)),
  });
  return (x, text, now, [min, max]) => {
    put(mark, { transform: `translate(${x},0)`, "aria-valuemin": min, "aria-valuemax": max });
    tell(text, now);
  };
};

const HIGH = 14; // a line of names, in pixels of the drawing

// How wide a name is drawn: 0 until the page shows it.
const widthOf = (text) => text.getComputedTextLength();
const overlap = ([a, b, w, h], [c, d, u, v]) =>
  Math.max(0, Math.min(a + w, c + u) - Math.max(a, c)) *
  Math.max(0, Math.min(b + h, d + v) - Math.max(b, d));

// Puts the name of a mark where it finds room: beside the mark, else below or above that,
// over nothing that is `taken`. Names that all have one place make a column.
const nameAt = (text, px, py, taken, side) => {
  const width = widthOf(text);
  const rows = range(Math.ceil(side / HIGH)).map((k) => k * HIGH);
  const spots = rows.flatMap((far) =>
    [[9, -far - 12], [-9 - width, -far - 12], [9, far], [-9 - width, far]].map(([dx, dy]) =>
      [px + dx, py + dy, width, HIGH]));
  const inside = ([a, b]) => a >= 0 && a + width <= side && b >= 0 && b + HIGH <= side;
  const costs = spots.map((one) => (inside(one) ? 0 : side * side) +
    taken.reduce((sum, other) => sum + overlap(one, other), 0));
  const box = spots[costs.indexOf(Math.min(...costs))];
  taken.push(box);
  const left = box[0] < px;
  // On the left it ends at the mark, however wide it comes out.
  put(text, { x: left ? px - 9 : box[0], y: box[1] + 11, "text-anchor": left ? "end" : "start" });
};

// Vectors in the plane, as arrows from the origin, and the mean z that weights make of
// them, tied to each by a line as thick as its weight. `move(i, [a, b])` lets them be moved.
export const plane = ({ label, names, kind, reach, move = null, seen = () => {}, side = 240 }) => {
  const root = canvas(side, side, label);
  const low = reach.low < 0 ? -reach.high : -(move ? 0.5 : 0.1) * reach.high;
  const x = linear([low, reach.high], [8, side - 8]);
  const y = linear([low, reach.high], [side - 8, 8]);
  const back = (value, scale) => clamp(Math.round(scale.invert(value) * 100) / 100, ...x.domain);
  const xName = svg("text", { x: side - 6, y: y(0) + 15, "text-anchor": "end" });
  const yName = svg("text", { x: x(0) + 6, y: 14 });
  root.append(
    svg("path", { class: "al-cross", d: `M8,${y(0)}H${side - 8}M${x(0)},8V${side - 8}` }), xName, yName
  );
  const bands = names.map(() => svg("line", { class: "al-band" }));
  const arrows = names.map(() => svg("line", { class: "al-arrow" }));
  const texts = names.map((name) => svg("text", { class: "al-name" }, name));
  const marks = names.map(() => svg("g", {}, svg("circle", { class: "al-reach", r: 14 }),
    svg("circle", { class: `al-dot ${KINDS[kind]}`, r: 6 })));
  const extra = svg("line", { class: "al-arrow al-query-arrow" });
  const extraName = svg("text", { class: "al-name" });
  const mean = svg("rect", { class: "al-mean", width: 12, height: 12 });
  const meanName = svg("text", { class: "al-name al-mean-name" }, "z");
  root.append(...bands, ...arrows, extra, ...texts, ...marks, extraName, mean, meanName);
  let points = [];
  let placeNames = () => {};
  // A front end may draw a lab before it shows it, when names have no width yet.
  new ResizeObserver(() => placeNames()).observe(root);
  const step = (far) => (far ? 0.5 : 0.05) * Math.max(1, Math.round(reach.high));
  const tell = marks.map((mark, i) => {
    if (!move) {
      mark.addEventListener("pointerenter", () => seen(i));
      return () => {};
    }
    return movable(mark, root, `${label}: ${names[i]}`, {
      to: ([a, b]) => move(i, [back(a, x), back(b, y)]),
      by: (dx, dy, far) =>
        move(i, points[i].map((value, k) =>
          clamp(Math.round((value + (k ? dy : dx) * step(far)) * 100) / 100, ...x.domain))),
      seen: () => seen(i),
    });
  });
  return {
    element: root,
    marks,
    // `z` and `query` are points of the plane or null; `chosen` is drawn as the query.
    update({ at, z = null, weights = null, query = null, chosen = -1, axisNames = ["", ""] }) {
      points = at;
      // The query lies above a token of the same place, so that it can be taken.
      if (chosen >= 0 && extraName.previousSibling !== marks[chosen]) {
        root.insertBefore(marks[chosen], extraName);
      }
      xName.textContent = axisNames[0];
      yName.textContent = axisNames[1];
      at.forEach(([a, b], i) => {
        const [px, py] = [x(a), y(b)];
        put(arrows[i], { x1: x(0), y1: y(0), x2: px, y2: py });
        arrows[i].classList.toggle("al-query-arrow", i === chosen);
        marks[i].lastChild.classList.toggle("al-asks", i === chosen);
        put(marks[i], { transform: `translate(${px},${py})` });
        tell[i](`${a.toFixed(2)}, ${b.toFixed(2)}`, a.toFixed(2));
        const tied = z && weights && Number.isFinite(weights[i]) ? weights[i] : 0;
        put(bands[i], { x1: px, y1: py, x2: z ? x(z[0]) : px, y2: z ? y(z[1]) : py });
        put(bands[i], { "stroke-width": 12 * tied });
      });
      const shown = z && z.every(Number.isFinite);
      for (const part of [mean, meanName]) part.style.display = shown ? "" : "none";
      if (shown) put(mean, { x: x(z[0]) - 6, y: y(z[1]) - 6 });
      extra.style.display = extraName.style.display = query ? "" : "none";
      extraName.textContent = "q";
      if (query) put(extra, { x1: x(0), y1: y(0), x2: x(query[0]), y2: y(query[1]) });
      // Marks first: a name covers none of them, nor the names of the axes, nor another name.
      const named = at.map((point, i) => [texts[i], point]);
      if (shown) named.push([meanName, z]);
      if (query) named.push([extraName, query]);
      const places = named.map(([text, [a, b]]) => [text, x(a), y(b)]);
      placeNames = () => {
        const taken = places.map(([, px, py]) => [px - 7, py - 7, 14, 14]);
        taken.push([side - 6 - widthOf(xName), y(0) + 4, widthOf(xName), HIGH]);
        taken.push([x(0) + 6, 3, widthOf(yName), HIGH]);
        for (const [text, px, py] of places) nameAt(text, px, py, taken, side);
      };
      placeNames();
    },
  };
};
// How far a plane has to reach for these points, with room to move them.
export const reachOf = (...lists) => {
  const all = lists.flat(2);
  const most = Math.max(...all.map(Math.abs), 0.1);
  const unit = 10 ** Math.floor(Math.log10(most));
  return { low: Math.min(...all), high: Math.ceil((1.15 * most) / (unit / 2)) * (unit / 2) };
};

// Plays `next()` until it gives false; a second press, or the end, stops it. Where motion is
// not wanted, each press makes one step.
export const playButton = (lab, text, next, wait) => {
  let timer = null;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = text;
  };
  const button = lab.button(text, () => {
    if (timer) return stop();
    if (still) return next(true);
    button.textContent = "Stop";
    timer = setInterval(() => {
      if (!button.isConnected || next() === false) stop();
    }, wait);
    return next(true);
  });
  button.classList.add("al-play");
  return button;
};

// A caption of colors: what each mark of a drawing means. A line breaks between two of them.
export const legend = (...parts) =>
  make("p", { class: "al-legend" }, ...parts.map(([kind, text]) => make("span", {},
    make("span", { class: `al-key ${KINDS[kind]}`, "aria-hidden": "true" }), text)));
