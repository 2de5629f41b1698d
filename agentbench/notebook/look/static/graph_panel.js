// A graph whose picture is sent once and then repainted.

const SVG = "http://www.w3.org/2000/svg";
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const BUTTONS = { Fit: ["Fit the graph", "0"], "\u2212": ["Zoom out", "-"], "+": ["Zoom in", "+"] };

function make(parent, tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
}

// Suppresses JupyterLab's shortcuts.
function keepKeys(element) {
  element.dataset.lmSuppressShortcuts = "";
  return element;
}

class Graph {
  constructor(model, el) {
    this.model = model;
    el.classList.add("ab_panel");
    const build = (tag, facts) => Object.assign(document.createElement(tag), facts);
    const tools = build("div", { className: "ab_tools" });
    for (const [textContent, [name, key]] of Object.entries(BUTTONS)) {
      const title = `${name} (${key})`;
      const facts = { type: "button", textContent, title, ariaLabel: title, onclick: () => this.onview(key) };
      tools.append(keepKeys(build("button", facts)));
    }
    tools.append((this.note = build("span")));
    this.port = build("div", { className: "ab_port", role: "application" });
    for (const kind of ["keydown", "click", "focusin", "pointerdown", "wheel"]) {
      this.port.addEventListener(kind, (event) => this[kind](event));
    }
    el.append(tools, this.port);
    new ResizeObserver(() => {
      if (!this.chosen && this.fitted !== this.fit) this.showView({});
      this.follow(this.states, ":focus-within");
    }).observe(this.port);
    this.el = el;
    this.layout();
  }

  layout() {
    const old = this.port.contains(document.activeElement) && this.parts.get(this.focused)?.dataset.name;
    this.port.replaceChildren();
    this.port.ariaLabel = this.get("label");
    this.port.style.maxHeight = `${this.get("height")}px`;
    this.note.textContent = this.get("note");
    const svg = (this.svg = readSvg(this.get("svg")));
    this.parts = new Map();
    [this.edges, this.states, this.painted, this.first, this.focused] = [[], {}, {}];
    if (!svg) return (this.port.textContent = "Cannot show the picture.");
    this.size = ["width", "height"].map((side) => parseFloat(svg.getAttribute(side)) || 1);
    for (const part of svg.querySelectorAll(".ab_node,.ab_frame,.ab_edge")) {
      const { id, dataset } = part;
      this.parts.set((part.key = id), part);
      part.removeAttribute("id"); // a page may contain several panels
      if (dataset.from) this.edges.push([dataset.from, dataset.to]);
      if (!dataset.box) continue;
      const [left, top, right, bottom] = (part.box = dataset.box.split(" ").map(Number));
      part.at = [(left + right) / 2, (top + bottom) / 2];
      Object.assign(keepKeys(part), { role: "button", ariaDescription: dataset.what || null, tabIndex: -1 });
      if (part.matches(".ab_node")) this.first ??= id;
      if (dataset.name === old) this.focused ??= id;
    }
    this.port.append(svg);
    this.apply(this.get("patch"));
    this.focused ??= this.first;
    if (this.focused) this.parts.get(this.focused).tabIndex = 0;
    requestAnimationFrame(() => {
      this.showView({ zoom: this.chosen });
      this.port.style.minHeight = `${svg.clientHeight}px`;
      if (old) this.focus(this.focused);
    });
  }

  apply(patch) {
    Object.assign(this.states, patch);
    this.sync();
    // In an animation frame: one layout after all changes.
    requestAnimationFrame(() => this.follow(patch));
  }

  // Scrolls to active nodes, unless a person looks elsewhere.
  follow(states, looked = ":hover,:focus-within") {
    const last = (wanted) => Object.keys(states).findLast((id) => wanted.test(states[id]) && this.parts.get(id)?.at);
    const busy = this.parts.get(last(/running|waiting|failed/) ?? last(/done/));
    if (busy && !this.port.matches(looked)) this.reveal(busy);
  }

  // Paints all changes.
  sync() {
    const [badges, stops, selected] = ["badges", "breakpoints", "selected"].map((name) => this.get(name));
    for (const [id, part] of this.parts) {
      const now = [this.states[id] ?? "idle", badges[id], stops.includes(id), selected === id];
      if (this.painted[id] === `${now}`) continue;
      this.painted[id] = `${now}`;
      this.paint(part, ...now);
    }
  }

  paint(part, state, badge, stop, selected) {
    const [icon, words] = this.get("looks")[state] ?? ["", ""];
    part.setAttribute("class", part.getAttribute("class").replace(/ ab_(s_\w+|sel)/g, ""));
    if (state !== "idle") part.classList.add(`ab_s_${state}`);
    if (!part.at) return;
    part.classList.toggle("ab_sel", selected);
    part.querySelectorAll(".ab_extra").forEach((each) => each.remove());
    const [left, top, right, bottom] = part.box;
    const inset = part.querySelector("path.ab_shape,rect.ab_shape") ? 0 : (right - left) * 0.12;
    const rings = [state === "waiting" && ["ab_halo", 2.5], stop && ["ab_ring", 4.5], selected && ["ab_pick", 5]];
    let width = 1.5;
    // Wider copies of a shape, each below the previous one.
    for (const [name, wide] of rings.filter(Boolean).flatMap((ring) => [["ab_gap", 2.5], ring])) {
      const copy = part.querySelector(".ab_outer").cloneNode();
      copy.setAttribute("class", `ab_extra ${name}`);
      copy.style.strokeWidth = width += wide;
      part.prepend(copy);
    }
    if (stop) make(part, "circle", { class: "ab_extra ab_stop", r: 5.5, cx: left + inset, cy: top + 1 });
    const mark = (name, x, y) => make(part, "g", { class: `ab_extra ${name}`, transform: `translate(${x} ${y})` });
    if (icon) {
      const sign = mark("ab_mark", right - inset, top + 1);
      make(sign, "circle", { r: 8.5 });
      make(sign, "path", { d: icon });
    }
    if (badge) {
      const label = mark("ab_badge", (left + right) / 2, bottom + width / 2);
      const wide = 7 * badge.length + 10;
      make(label, "rect", { x: -wide / 2, y: -7, width: wide, height: 15, rx: 7 });
      make(label, "text", { y: 4.5 }).textContent = badge;
    }
    const said = [part.dataset.name, words, badge, stop && "breakpoint", selected && "selected"];
    part.ariaLabel = said.filter(Boolean).join(", ");
    part.ariaPressed = selected;
  }

  focus(id) {
    const part = this.parts.get(id);
    part?.focus({ preventScroll: true });
    if (part) this.reveal(part);
  }

  // Screen readers also move the focus.
  focusin({ target }) {
    this.parts.get(this.focused).tabIndex = -1;
    target.tabIndex = 0;
    this.focused = target.key;
  }

  reveal(part) {
    const [box, port] = [part.getBoundingClientRect(), this.port.getBoundingClientRect()];
    if (box.left < port.left || box.right > port.right) this.port.scrollLeft += box.left - port.left - port.width / 2;
    if (box.top < port.top || box.bottom > port.bottom) this.port.scrollTop += box.top - port.top - port.height / 2;
  }

  // The next node in a direction, along an edge if one leads there.
  next(id, [dx, dy]) {
    const from = this.parts.get(id).at;
    const joined = this.edges.filter((edge) => edge.includes(id)).flat();
    let [best, least] = [null, Infinity];
    for (const [other, { at }] of this.parts) {
      if (!at) continue;
      const [x, y] = [at[0] - from[0], at[1] - from[1]];
      const [ahead, aside] = [x * dx + y * dy, Math.abs(x * dy + y * dx)];
      const cost = ahead + 2 * aside + (joined.includes(other) ? 0 : 1e5);
      if (ahead > 1 && aside <= 3 * ahead && cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  get(name) {
    return this.model.get(name);
  }

  set(name, value) {
    this.model.set(name, value);
    this.model.save_changes();
  }

  idOf(target) {
    return target.closest(".ab_node,.ab_frame")?.key;
  }

  keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    const id = this.focused;
    if (key === "Escape") return this.el.querySelector("button").focus(); // leave the graph
    if (ARROWS[key]) this.focus(this.next(id, ARROWS[key]));
    else if (key === "Home") this.focus(this.first);
    else if ((key === "Enter" || key === " ") && this.idOf(event.target)) this.pick(id);
    else if (key === "b" && id) {
      const stops = this.get("breakpoints");
      this.set("breakpoints", stops.includes(id) ? stops.filter((each) => each !== id) : [...stops, id]);
    } else if ("+=-0".includes(key)) this.onview(key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  click({ target }) {
    if (this.dragged) return;
    const id = this.idOf(target) ?? "";
    this.focus(id);
    this.pick(id);
  }

  // Opens or folds a selected group.
  pick(id) {
    if (id && this.get("selected") === id) this.model.send({ kind: "open", element: id });
    this.set("selected", id);
  }

  // Drags the background.
  pointerdown({ button, pointerType, pointerId, target, clientX, clientY }) {
    const { port } = this;
    this.dragged = false;
    if (button || pointerType !== "mouse" || target === port || this.idOf(target)) return;
    const [x, y] = [port.scrollLeft + clientX, port.scrollTop + clientY];
    port.setPointerCapture(pointerId);
    port.onpointermove = (now) => {
      this.dragged ||= Math.hypot(now.clientX - clientX, now.clientY - clientY) > 3;
      if (this.dragged) port.scrollTo(x - now.clientX, y - now.clientY);
    };
    port.onlostpointercapture = () => {
      port.onpointermove = null;
      this.keepView();
    };
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the plain wheel scrolls the page
    event.preventDefault();
    const box = this.port.getBoundingClientRect();
    this.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, [event.clientX - box.left, event.clientY - box.top]);
  }

  // Fits the graph, or its shorter side if the whole would be too narrow.
  onview(key) {
    const [less, more] = [this.fit, Math.min(1, (this.get("height") - 16) / this.size[1])].sort();
    this.zoom({ 0: (less < 0.15 ? more : less) / this.scale, "-": 0.8 }[key] ?? 1.25);
  }

  get fit() {
    return Math.min(1, (this.port.clientWidth - 16) / this.size[0]);
  }

  zoom(factor, at) {
    this.setScale((this.chosen = Math.min(4, Math.max(0.05, this.scale * factor))), at);
    this.keepView();
  }

  setScale(scale, at = [this.port.clientWidth / 2, this.port.clientHeight / 2]) {
    const { port, scale: before = scale } = this;
    const [x, y] = [(port.scrollLeft + at[0]) / before, (port.scrollTop + at[1]) / before];
    this.scale = scale;
    this.svg.setAttribute("width", this.size[0] * scale);
    this.svg.setAttribute("height", this.size[1] * scale);
    port.scrollTo(x * scale - at[0], y * scale - at[1]);
  }

  keepView() {
    const { scrollLeft: x, scrollTop: y } = this.port;
    this.model.send({ kind: "view", view: { zoom: this.scale, x, y } });
  }

  // Keeps text legible until the person zooms.
  showView({ zoom, x = 0, y = 0 }) {
    if (!this.svg) return;
    this.chosen = zoom;
    const fit = (this.fitted = this.fit);
    this.setScale(zoom ?? (fit < 0.75 ? 1 : fit));
    this.port.scrollTo(x, y);
  }
}

function render({ model, el }) {
  const graph = new Graph(model, el);
  const listen = {
    "change:svg": () => graph.layout(),
    "change:stamp": () => graph.apply(model.get("patch")),
    "msg:custom": ({ kind, states, view }) => (kind === "full" ? graph.apply(states) : graph.showView(view)),
  };
  for (const name of ["badges", "selected", "breakpoints"]) listen[`change:${name}`] = () => graph.sync();
  for (const [name, fn] of Object.entries(listen)) model.on(name, fn);
  model.send({ kind: "ready", stamp: model.get("stamp") });
  return () => {
    for (const [name, fn] of Object.entries(listen)) model.off(name, fn);
  };
}

export default { render };
