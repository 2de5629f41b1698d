// Building blocks of a form.
const TYPING_PAUSE_MS = 300;

function button(text, pressed, attributes = {}) {
  const el = node("button", { type: "button", ...attributes }, text);
  el.addEventListener("click", pressed);
  return el;
}

// Sends after a pause in typing; `now` sends pending text immediately.
function typingPause(send) {
  let timer = null;
  const stop = () => {
    const waits = timer !== null;
    clearTimeout(timer);
    timer = null;
    return waits;
  };
  const now = () => { if (stop()) send(); };
  return { stop, now, waits: () => timer !== null, later: (ms = TYPING_PAUSE_MS) => { stop(); timer = setTimeout(now, ms); } };
}

// Arranges elements in this order and moves only misplaced ones, so that typing elsewhere is not disturbed.
function arrange(holder, wanted) {
  wanted.forEach((el, at) => {
    if (holder.children[at] !== el) holder.insertBefore(el, holder.children[at] ?? null);
  });
  while (holder.children.length > wanted.length) holder.lastElementChild.remove();
}

// Toggle buttons of which at most one is on; `put({})` turns all off.
function choices(id, texts, look, chosen, described = {}) {
  const main = node("div", { role: "radiogroup", class: look, "aria-labelledby": `${id}-label`, ...described });
  const inputs = texts.map((text, at) => {
    const line = node("label", { class: "abf-option" });
    const input = node("input", { type: "radio", name: `${id}-choice`, value: at });
    input.addEventListener("change", () => chosen(at));
    line.append(input, node("span", {}, text));
    main.append(line);
    return input;
  });
  const on = () => inputs.find((input) => input.checked);
  return {
    els: [main],
    main,
    read: () => (on() ? { option: Number(on().value) } : { text: "" }),
    put: (raw) => inputs.forEach((input, at) => { input.checked = at === raw.option; }),
    focus: () => (on() ?? inputs[0])?.focus(),
  };
}

function dropdown(id, texts, chosen, described = {}, empty = "Choose…") {
  const main = node("select", { id, class: "abf-input", ...described });
  if (empty) main.append(node("option", { value: "" }, empty));
  texts.forEach((text, at) => main.append(node("option", { value: at }, text)));
  main.addEventListener("change", () => chosen(Number(main.value)));
  return {
    els: [main],
    main,
    read: () => (main.value === "" ? { text: "" } : { option: Number(main.value) }),
    put: (raw) => { main.value = String(raw.option ?? ""); },
    focus: () => main.focus(),
  };
}

// The checkbox for "no value".
function noneBox(spec, ticked) {
  if (!spec.none) return null;
  const line = node("label", { class: "abf-option abf-none" });
  const input = node("input", { type: "checkbox" });
  input.checked = spec.none.on;
  input.addEventListener("change", () => ticked(input.checked));
  line.append(input, node("span", {}, spec.none.label));
  return { el: line, input };
}

function labelText(spec) {
  return spec.optional ? `${spec.label} (optional)` : spec.label;
}

function sizeText(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
