// Scales, lines and dragging, for what the labs draw.

// A function from values between the ends of `domain` to places between those of `range`;
// `invert` leads back.
const makeScale = (to, from) => (domain, range) => {
  const [low, high] = domain.map(to);
  const [start, end] = range;
  const scale = (value) => start + ((to(value) - low) / (high - low)) * (end - start);
  const invert = (place) => from(low + ((place - start) / (end - start)) * (high - low));
  return Object.assign(scale, { domain, range, invert });
};
export const linear = makeScale((x) => x, (x) => x);
export const logarithmic = makeScale(Math.log, Math.exp);

// About `count` round values (a step of 1, 2 or 5 times a power of ten) on a linear axis.
export const roundValues = ([low, high], count) => {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 5, 10].map((k) => k * power).find((step) => step > 0.7 * rough);
  const [first, last] = [Math.ceil(low / size), Math.floor(high / size)];
  return Array.from({ length: last - first + 1 }, (_, k) =>
    Number(((first + k) * size).toPrecision(12)));
};

// The path through points whose places `x(point, i)` and `y(point, i)` give.
export const path = (points, x, y) =>
  points.map((point, i) =>
    `${i ? "L" : "M"}${x(point, i).toFixed(2)},${y(point, i).toFixed(2)}`).join("");

// Lets mouse, finger and pen drag a mark; `to([x, y])` hears where to, in pixels of the
// drawing `root`.
export const letDrag = (mark, root, to) => {
  const tell = ({ clientX, clientY }) => {
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(root.getScreenCTM().inverse());
    to([x, y]);
  };
  mark.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    mark.setPointerCapture(event.pointerId);
    mark.focus({ preventScroll: true });
    tell(event);
  });
  mark.addEventListener("pointermove", (event) => {
    if (mark.hasPointerCapture(event.pointerId)) tell(event);
  });
};
