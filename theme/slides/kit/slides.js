// Shows one slide of a deck at a time: keys, steps, and the notes with a clock.
// Without it, the page has all slides below each other, and so they are printed.

const slides = [...document.querySelectorAll("section")];
const minutes = slides.map((slide) => Number(slide.dataset.minutes));
let current = 0, shown = 0, started = null, notes = null;

const stepsOf = (slide) => [...slide.querySelectorAll(".step")];

const show = (slide, steps) => {
  current = Math.min(Math.max(slide, 0), slides.length - 1);
  shown = steps;
  slides.forEach((one, i) => one.classList.toggle("current", i === current));
  stepsOf(slides[current]).forEach((step, i) => { step.hidden = i >= shown; });
  if (current && !started) started = Date.now();
  history.replaceState(null, "", `#${current + 1}`);
  showNotes();
};

const forward = () => {
  if (shown < stepsOf(slides[current]).length) show(current, shown + 1);
  else if (current < slides.length - 1) show(current + 1, 0);
};

const back = () => {
  if (shown) show(current, shown - 1);
  else if (current) show(current - 1, stepsOf(slides[current - 1]).length);
};

const KEYS = {
  ArrowRight: forward, ArrowDown: forward, PageDown: forward, " ": forward,
  ArrowLeft: back, ArrowUp: back, PageUp: back,
  Home: () => show(0, 0),
  End: () => show(slides.length - 1, 0),
  s: () => openNotes(),
};

const onKey = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  // A lab has its own arrows; what a remote control sends still moves on.
  const inLab = event.target.closest?.(".attn-lab");
  if (inLab && !event.key.startsWith("Page")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (!KEYS[key]) return;
  event.preventDefault();
  KEYS[key]();
};

const clock = (seconds) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

const openNotes = () => {
  notes = window.open("", "notes", "width=760,height=640");
  if (!notes) return; // the browser blocks windows: NAME-notes.html has the notes
  notes.document.title = "Notes";
  notes.document.body.innerHTML =
    '<p id="clock"></p><h1></h1><div id="note"></div><p id="next"></p>';
  notes.document.body.style.font = "20px/1.45 sans-serif";
  notes.document.onkeydown = onKey;
  showNotes();
};

const showNotes = () => {
  if (!notes || notes.closed) return;
  const find = (what) => notes.document.querySelector(what);
  find("h1").textContent = slides[current].querySelector("h2").textContent;
  find("#note").innerHTML = slides[current].querySelector("aside").innerHTML;
  const next = slides[current + 1]?.querySelector("h2").textContent;
  find("#next").textContent = next ? `Next: ${next}` : "The last slide.";
  showClock();
};

const showClock = () => {
  if (!notes || notes.closed) return;
  const spent = started ? (Date.now() - started) / 1000 : 0;
  notes.document.querySelector("#clock").textContent =
    `${clock(spent)} since the first slide. Planned: this slide until ` +
    `${clock(60 * sum(minutes.slice(0, current + 1)))}, all until ${clock(60 * sum(minutes))}. ` +
    `Slide ${current + 1} of ${slides.length}.`;
};

// Slides are drawn for 1280 by 720 pixels and enlarged to the window as a whole.
const resize = () => {
  const scale = Math.min(innerWidth / 1280, innerHeight / 720);
  document.querySelector("main").style.zoom = scale;
};

document.documentElement.classList.add("one");
document.addEventListener("keydown", onKey);
addEventListener("resize", resize);
addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1, 0));
addEventListener("beforeprint", () => { document.querySelector("main").style.zoom = 1; });
addEventListener("afterprint", resize);
setInterval(showClock, 1000);
resize();
show((Number(location.hash.slice(1)) || 1) - 1, 0);
