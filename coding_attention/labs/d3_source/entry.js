// The parts of d3 that the labs draw with. `npm install && npm run build` here makes ../d3.js.
export { drag } from "d3-drag";
export { scaleLinear, scaleLog } from "d3-scale";
export { select } from "d3-selection";
export { line } from "d3-shape";
