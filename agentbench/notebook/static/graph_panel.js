// A graph that is sent once and painted often: states arrive as a map from elements to states.
// Text meets the page as text nodes only; the SVG is checked before it is adopted.

const SVG = "http://www.w3.org/2000/svg";
const DIRECTIONS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

// Parses SVG text as XML and drops whatever could act, whoever made the picture.
function checked(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.localName !== "svg" || root.querySelector("parsererror")) return null;
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (/^(script|foreignobject|iframe|object|embed|image|style|animate|set)/i.test(node.localName)) {
      node.remove();
      continue;
    }
    for (const { name, value } of [...node.attributes]) {
      const link = /(^|:)href$/i.test(name) && !value.startsWith("#");
      if (/^on/i.test(name) || link || name === "style" || /url\s*\(/i.test(value)) node.removeAttribute(name);
    }
  }
  return document.importNode(root, true);
}

function make(tag, attributes, parent) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent?.append(made);
  return made;
}

// In command mode JupyterLab's own keys cut and add cells; it leaves elements alone that say so themselves.
function keepKeys(element) {
  element.dataset.lmSuppressShortcuts = "";
  return element;
}

class Graph {
  constructor(model, el) {
    this.model = model;
    el.classList.add("ab_panel");
    const tools = document.createElement("div");
    tools.className = "ab_tools";
    const buttons = { Fit: ["Fit the graph (0)", "0"], "\u2212": ["Zoom out (-)", "-"], "+": ["Zoom in (+)", "+"] };
    for (const [textContent, [title, key]] of Object.entries(buttons)) {
      const onclick = () => this.onview(key);
      const facts = { type: "button", textContent, title, ariaLabel: title, onclick };
      tools.append(keepKeys(Object.assign(document.createElement("button"), facts)));
    }
    tools.append((this.note = document.createElement("span")));
    this.port = document.createElement("div");
    this.port.className = "ab_port";
    this.port.setAttribute("role", "application");
    el.append(tools, this.port);
    this.el = el;
    this.layout();
  }

  layout() {
    const old = this.port.contains(document.activeElement) && this.focused;
    this.port.replaceChildren();
    this.port.setAttribute("aria-label", this.get("label"));
    this.port.style.maxHeight = `${this.get("height")}px`;
    this.note.textContent = this.get("note");
    const svg = (this.svg = checked(this.get("svg")));
    this.parts = new Map();
    this.edges = [];
    this.states = {};
    if (!svg) return (this.port.textContent = "The picture could not be read.");
    this.size = [parseFloat(svg.getAttribute("width")) || 1, parseFloat(svg.getAttribute("height")) || 1];
    for (const part of svg.querySelectorAll(".ab_node,.ab_frame,.ab_edge")) {
      this.parts.set(part.id, part);
      part.removeAttribute("id"); // several panels may stand on one page
      if (part.dataset.from) this.edges.push([part.dataset.from, part.dataset.to]);
      if (!part.dataset.box) continue;
      const [left, top, right, bottom] = (part.box = part.dataset.box.split(" ").map(Number));
      part.at = [(left + right) / 2, (top + bottom) / 2];
      keepKeys(part).setAttribute("role", "button");
      part.setAttribute("tabindex", "-1");
    }
    this.port.append(svg);
    this.parts.forEach((_, id) => this.paint(id));
    this.apply(this.get("patch"));
    this.first = [...this.parts].find(([, part]) => part.at && part.classList.contains("ab_node"))?.[0];
    this.focused = this.parts.has(old) ? old : this.first;
    if (this.focused) this.parts.get(this.focused).setAttribute("tabindex", "0");
    requestAnimationFrame(() => {
      this.showView();
      if (old) this.focus(this.focused);
    });
  }

  apply(patch) {
    let busy;
    for (const [id, state] of Object.entries(patch)) {
      const part = this.parts.get(id);
      if (!part) continue;
      this.states[id] = state;
      this.paint(id);
      if (part.at && (state === "running" || state === "waiting")) busy = part;
    }
    if (busy && !this.port.matches(":hover,:focus-within")) this.reveal(busy);
  }

  paint(id) {
    const part = this.parts.get(id);
    const state = this.states[id] ?? "idle";
    const [icon, words] = this.get("looks")[state] ?? ["", ""];
    part.setAttribute("class", part.getAttribute("class").replace(/ ab_(s_\w+|sel)/g, ""));
    if (state !== "idle") part.classList.add(`ab_s_${state}`);
    if (!part.at) return;
    part.querySelectorAll(".ab_halo,.ab_gap,.ab_ring,.ab_mark,.ab_badge,.ab_stop").forEach((each) => each.remove());
    const stop = this.get("breakpoints").includes(id);
    const selected = this.get("selected") === id;
    const badge = this.get("badges")[id];
    const [left, top, right, bottom] = part.box;
    if (selected) part.classList.add("ab_sel");
    if (state === "waiting") this.ring(part, "ab_gap", "ab_halo");
    if (stop) {
      this.ring(part, "ab_ring");
      make("circle", { class: "ab_stop", r: 5, cx: left + 2, cy: top + 2 }, part);
    }
    if (icon) {
      const inset = part.querySelector("path.ab_shape,rect.ab_shape") ? 0 : (right - left) * 0.12;
      const mark = make("g", { class: "ab_mark", transform: `translate(${right - inset} ${top + 1})` }, part);
      make("circle", { r: 8.5 }, mark);
      make("path", { d: icon }, mark);
    }
    if (badge) {
      const at = { class: "ab_badge", x: (left + right) / 2, y: bottom + 13, "text-anchor": "middle", "font-size": 12 };
      make("text", at, part).textContent = badge;
    }
    const said = [part.dataset.name, part.dataset.what, words, badge, stop && "breakpoint", selected && "selected"];
    part.setAttribute("aria-label", said.filter(Boolean).join(", "));
    part.setAttribute("aria-pressed", String(selected));
  }

  // Wider copies of the outline below the node: a double border or a ring, whatever the shape.
  ring(part, ...classes) {
    const outline = [...part.querySelectorAll(".ab_shape,.ab_line")].pop();
    for (const name of classes) {
      const copy = outline.cloneNode();
      copy.setAttribute("class", name);
      part.prepend(copy);
    }
  }

  focus(id) {
    const part = this.parts.get(id);
    if (!part?.at) return;
    this.parts.get(this.focused)?.setAttribute("tabindex", "-1");
    part.setAttribute("tabindex", "0");
    this.focused = id;
    part.focus({ preventScroll: true });
    this.reveal(part);
  }

  reveal(part) {
    const [box, port] = [part.getBoundingClientRect(), this.port.getBoundingClientRect()];
    if (box.left < port.left || box.right > port.right) this.port.scrollLeft += box.left - port.left - port.width / 2;
    if (box.top < port.top || box.bottom > port.bottom) this.port.scrollTop += box.top - port.top - port.height / 2;
  }

  // The next node in a direction: along an edge if one leads there, else the nearest.
  next(id, [dx, dy]) {
    const from = this.parts.get(id);
    const joined = new Set(this.edges.filter((edge) => edge.includes(id)).flat());
    let best = null;
    for (const [other, part] of this.parts) {
      if (other === id || !part.at) continue;
      const [x, y] = [part.at[0] - from.at[0], part.at[1] - from.at[1]];
      const [ahead, aside] = [x * dx + y * dy, Math.abs(x * dy + y * dx)];
      if (ahead <= 1 || aside > 3 * ahead) continue;
      const cost = ahead + 2 * aside + (joined.has(other) ? 0 : 1e5);
      if (!best || cost < best[0]) best = [cost, other];
    }
    return best?.[1];
  }

  get(name) {
    return this.model.get(name);
  }

  set(name, value) {
    this.model.set(name, value);
    this.model.save_changes();
  }

  stop(id) {
    const now = this.get("breakpoints");
    this.set("breakpoints", now.includes(id) ? now.filter((each) => each !== id) : [...now, id]);
  }

  idOf(target) {
    const part = target.closest?.(".ab_node,.ab_frame");
    return part && [...this.parts].find(([, each]) => each === part)?.[0];
  }

  onkey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    const id = this.focused;
    if (DIRECTIONS[key]) this.focus(this.next(id, DIRECTIONS[key]));
    else if (key === "Home") this.focus(this.first);
    else if ((key === "Enter" || key === " ") && this.idOf(event.target)) {
      if (this.get("selected") === id) this.model.send({ kind: "open", element: id });
      this.set("selected", id);
    } else if (key === "b" && id) this.stop(id);
    else if ("+=-0".includes(key)) this.onview(key);
    else {
      // Out of the graph; a stepper around it hears all keys that are left over, and goes on to its own controls.
      if (key === "Escape") this.el.querySelector("button").focus();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  onview(key) {
    if (key === "0") this.fit();
    else this.zoom(key === "-" ? 0.8 : 1.25);
  }

  zoom(factor, at) {
    this.setScale(Math.min(4, Math.max(0.2, this.scale * factor)), at);
    this.keepView();
  }

  fit() {
    const width = this.port.clientWidth || 600;
    this.setScale(Math.min(1, width / this.size[0], this.get("height") / this.size[1]));
    this.keepView();
  }

  setScale(scale, at = [this.port.clientWidth / 2, this.port.clientHeight / 2]) {
    const { port, scale: before = scale } = this;
    const [x, y] = [(port.scrollLeft + at[0]) / before, (port.scrollTop + at[1]) / before];
    this.scale = scale;
    this.svg.setAttribute("width", this.size[0] * scale);
    this.svg.setAttribute("height", this.size[1] * scale);
    port.scrollLeft = x * scale - at[0];
    port.scrollTop = y * scale - at[1];
  }

  keepView() {
    const { scrollLeft: x, scrollTop: y } = this.port;
    this.model.send({ kind: "view", view: { zoom: this.scale, x, y } });
  }

  // At first text has its full size; a graph that is too large is scrolled.
  showView(view) {
    if (!this.svg) return;
    this.setScale(view?.zoom ?? 1);
    if (view) [this.port.scrollLeft, this.port.scrollTop] = [view.x ?? 0, view.y ?? 0];
  }
}

function render({ model, el }) {
  const graph = new Graph(model, el);
  const repaint = () => graph.parts.forEach((_, id) => graph.paint(id));
  const { port } = graph;
  const listen = {
    "change:svg": () => graph.layout(),
    "change:stamp": () => graph.apply(model.get("patch")),
    "change:badges": repaint,
    "change:selected": repaint,
    "change:breakpoints": repaint,
    "msg:custom": (message) => {
      if (message.kind === "full") graph.apply(message.states);
      if (message.kind === "view") graph.showView(message.view);
    },
  };
  for (const [name, fn] of Object.entries(listen)) model.on(name, fn);

  port.addEventListener("keydown", (event) => graph.onkey(event));
  port.addEventListener("click", (event) => {
    const id = graph.idOf(event.target);
    if (id) graph.focus(id);
    graph.set("selected", id ?? "");
  });
  port.addEventListener("dblclick", (event) => {
    const id = graph.idOf(event.target);
    if (id) model.send({ kind: "open", element: id });
  });
  port.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // the plain wheel scrolls the page
    event.preventDefault();
    const box = port.getBoundingClientRect();
    graph.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, [event.clientX - box.left, event.clientY - box.top]);
  }, { passive: false });

  model.send({ kind: "ready", stamp: model.get("stamp") });
  return () => {
    for (const [name, fn] of Object.entries(listen)) model.off(name, fn);
  };
}

export default { render };
