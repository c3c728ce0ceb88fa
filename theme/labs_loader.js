// Shows the labs of a static page from the state that its notebook stored: no kernel.
// Classic scripts, so that it runs from file:// too. It stands in the first of them, and
// starts when those of the page's labs are there.

const { labs } = labParts;

const STATE = "application/vnd.jupyter.widget-state+json";
const VIEW = "application/vnd.jupyter.widget-view+json";

// As much of a widget's model as the labs use.
const makeModel = (state) => {
  const listeners = {};
  return {
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      (listeners[`change:${name}`] || []).slice().forEach((listener) => listener());
    },
    save_changes() {},
    on(event, listener) {
      (listeners[event] = listeners[event] || []).push(listener);
    },
    off() {}, // a page keeps its labs
  };
};

const readJson = (type) =>
  Array.from(document.querySelectorAll(`script[type="${type}"]`), (script) => ({
    script,
    data: JSON.parse(script.textContent),
  }));

// A lab is not as high as the figure that it replaces. Whoever followed a link to a place
// below is to stay there.
const keepPlace = (change) => {
  const target = document.getElementById(
    decodeURIComponent(location.hash.slice(1).split("?")[0])
  );
  change();
  target?.scrollIntoView({ behavior: "instant" });
};

const mount = () => {
  const models = {};
  for (const { data } of readJson(STATE)) {
    for (const [id, { lab, state }] of Object.entries(data.state)) {
      if (labs[lab]) models[id] = { lab, model: makeModel(state) };
    }
  }
  for (const { script, data } of readJson(VIEW)) {
    const known = models[data.model_id];
    if (!known) continue;
    const place = document.createElement("div");
    script.before(place);
    // The cell's name: a lab's state stands behind it in the address.
    const cell = script.closest(".cell[id]")?.id;
    try {
      labs[known.lab].render({ model: known.model, el: place, place: cell });
    } catch (error) {
      // The static figure stays where the lab cannot be shown.
      place.remove();
      console.error(`${known.lab} cannot be shown:`, error);
      continue;
    }
    script.parentNode.querySelectorAll(".attn-static").forEach((figure) => {
      // With its box, which would stay as an empty strip.
      (figure.closest(".output.text_html") ?? figure).remove();
    });
  }
};

// With ?embed in its address, a page shows one lab: that of its anchor, else its first.
const embed = () => {
  if (!new URLSearchParams(location.search).has("embed")) return;
  const id = decodeURIComponent(location.hash.slice(1).split("?")[0]);
  const lab = document.querySelector(id ? `#${CSS.escape(id)} .attn-lab` : ".attn-lab");
  if (!lab) return;
  const link = document.createElement("a");
  Object.assign(link, {
    href: location.href.replace(/\?embed[^#]*/, ""), target: "_blank", rel: "noopener",
    textContent: document.title,
  });
  const from = document.createElement("p");
  from.className = "al-from";
  from.append("From ", link);
  lab.append(from);
  lab.classList.add("al-embedded");
  document.documentElement.classList.add("al-embed");
};

// What the page needs to be read comes first, and the labs after it. On the site they are
// fetched and run late (lean_site/scripts/late.js), and the last one says so; where they
// are ordinary deferred scripts, all have run when the page stands.
const event = document.currentScript.defer ? "DOMContentLoaded" : "late-scripts";
document.addEventListener(event, () => setTimeout(() => { keepPlace(mount); embed(); }));
