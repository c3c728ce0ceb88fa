// The labs by the names of their Python classes. `make labs` bundles what they import.
export { default as AttentionLab } from "./attention.js";
export { default as DropoutLab } from "./dropout.js";
export { default as HeadSplitLab } from "./head_split.js";
export { default as LookLab } from "./look.js";
export { default as MaskLab } from "./mask.js";
export { default as MultiHeadLab } from "./multi_head.js";
export { default as ScaleLab } from "./scale.js";
export { default as TinyGptLab } from "./tiny_gpt.js";
