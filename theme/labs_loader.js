// Shows the labs of a static page from what its notebook stored of them: no kernel. A
// classic script, so that it runs from file:// too, behind the bundle of the labs.

const LAB = "application/vnd.coding-attention.lab+json";

// Where labs were, and where they are now: links in other texts go on working.
const MOVED = [
  [/^#lab-training\?at=/, "#lab-tiny-gpt?step="],
  [/^#lab-(training|trained-model)\b/, "#lab-tiny-gpt"],
  [/^#lab-bank\b.*/, "#lab-look"],
  [/^#lab-two-heads\b/, "#lab-multi-head"],
];

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
  for (const script of document.querySelectorAll(`script[type="${LAB}"]`)) {
    const { lab, traits } = JSON.parse(script.textContent);
    const figures = script.parentNode.querySelectorAll(".attn-static");
    const output = script.closest(".output.text_html") ?? script; // goes with its figure
    const el = document.createElement("div");
    output.before(el);
    // The cell's name: a lab's state stands behind it in the address.
    const place = script.closest(".cell[id]")?.id;
    try {
      attentionLabs[lab].render({ model: makeModel(JSON.parse(traits)), el, place });
      [...figures, output].forEach((part) => part.remove());
    } catch (error) {
      // The static figure stays where the lab cannot be shown.
      el.remove();
      console.error(`${lab} cannot be shown:`, error);
    }
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

const followMoved = () => {
  const hash = MOVED.reduce((old, [from, to]) => old.replace(from, to), location.hash);
  if (hash !== location.hash) location.replace(hash);
};

// What the page needs to be read comes first, and the labs after it. On the site they are
// fetched and run late (lean_site/scripts/late.js), which then says so; as an ordinary
// deferred script, this one has run when the page stands.
const event = document.currentScript.defer ? "DOMContentLoaded" : "late-scripts";
document.addEventListener(event, () => setTimeout(() => {
  followMoved();
  keepPlace(mount);
  embed();
}));
