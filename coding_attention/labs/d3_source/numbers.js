// What d3-scale takes from d3-interpolate and d3-format, in little: the labs' scales lead
// from numbers to numbers, and the labs write their own ticks. What mixes colors, dates and
// texts, and what formats numbers, is two fifths of the bundle and stays out.
export const interpolate = (a, b) => (t) => a * (1 - t) + b * t;
export { interpolate as interpolateNumber, interpolate as interpolateRound };
const absent = () => {
  throw Error("not in the labs' bundle of d3: see d3_source/numbers.js");
};
export {
  absent as format, absent as formatPrefix, absent as formatSpecifier,
  absent as piecewise, absent as precisionFixed, absent as precisionPrefix,
  absent as precisionRound,
};
