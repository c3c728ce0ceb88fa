// What several scripts use: classic scripts of a page share their constants.

// An element with attributes, those that are functions listening to events.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};

// Reads, or writes, what this browser remembers. Where storage is off, nothing is.
const useStore = (key, value, where = "localStorage") => {
  try {
    const store = globalThis[where];
    if (value !== undefined) store.setItem(key, value);
    return store.getItem(key);
  } catch {
    return null;
  }
};

// Copies a text, and tells whether the browser allowed it.
const copyText = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  // Over http, browsers offer only the old interface.
  const field = make("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
};
