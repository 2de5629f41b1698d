// Elements for every panel. Strings become text nodes; a function handles the event of its name, such as `onclick`.
function node(tag, attributes = {}, ...content) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") el.addEventListener(name.slice(2), value);
    else if (value === true) el.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) el.setAttribute(name, value);
  }
  el.append(...content);
  return el;
}

// The target item of an arrow key, Home or End; wraps around.
function itemAt(key, items, current) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
  if (step) return items[(items.indexOf(current) + step + items.length) % items.length];
  return { Home: items[0], End: items.at(-1) }[key];
}
