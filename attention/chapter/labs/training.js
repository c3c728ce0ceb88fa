// What each head of a small model looks at, from the first step of training to the last.
import { format } from "./core.js";
import { Lab, byWeight, grid, write } from "./ui.js";

const TRAITS = ["tokens", "steps", "losses", "heads", "scores", "patterns", "at", "head"];
const HINT = "Point at a weight, or move to it with the arrow keys, to read it.";
const two = (x) => (x < 0.005 ? "" : x.toFixed(2));

export default {
  render({ model, el }) {
    const lab = new Lab({ model, el }, "Training lab", TRAITS);
    const [tokens, steps, heads] = ["tokens", "steps", "heads"].map((name) => lab.get(name));
    const names = Object.keys(lab.get("scores"));
    lab.slider("at", "Training step", {
      min: 0, max: steps.length - 1, show: (at) => String(steps[at]),
    });
    lab.choice("head", "Head", heads.map((name, i) => [i, name]));
    lab.resetButton();

    const pattern = () => lab.get("patterns")[lab.get("at")][lab.get("head")];
    let inspected = null;
    const read = () => {
      if (!inspected) return write(lab.readout, HINT);
      const [i, j] = inspected;
      const from = `${tokens[i]} (${i + 1}) looks at ${tokens[j]} (${j + 1})`;
      return write(lab.readout, `${from} with weight ${pattern()[i][j].toFixed(3)}`);
    };

    const weights = grid({
      label: "Attention weights",
      corner: "q \\ k",
      rows: tokens,
      columns: tokens,
      inspect: (i, j) => {
        inspected = [i, j];
        read();
      },
    });
    lab.stage("Weights α", "of the head, at this step").show(weights.element);
    const table = grid({ label: "Scores", corner: "head", rows: heads, columns: names });
    lab.stage("Scores of all heads", "at this step").show(table.element);

    return lab.start(() => {
      const at = lab.get("at");
      weights.update(pattern(), { tone: byWeight, text: two });
      const scores = lab.get("scores");
      const lines = heads.map((_, i) => names.map((name) => scores[name][at][i]));
      table.update(lines, { tone: byWeight });
      table.choose(lab.get("head"));
      write(lab.summary, `After ${steps[at]} steps, the loss is ${format(lab.get("losses")[at])}.`);
      read();
    });
  },
};
