// A tree of boxes and parts in one view. The parts are anywidgets; their messages and traits are sent by the host's model.

class Part {
  constructor(id, state, post) {
    [this.id, this.state, this.post, this.changed, this.listeners] = [id, state, post, {}, new Map()];
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    if (this.take({ [name]: value })) this.changed[name] = value;
  }

  save_changes() {
    this.post({ kind: "set", part: this.id, state: this.changed });
    this.changed = {};
  }

  send(content, callbacks, buffers) {
    this.post({ kind: "message", part: this.id, content }, buffers);
  }

  on(name, listener) {
    this.listeners.set(name, [...(this.listeners.get(name) ?? []), listener]);
  }

  off(name, listener) {
    this.listeners.set(name, (this.listeners.get(name) ?? []).filter((each) => each !== listener));
  }

  emit(name, ...values) {
    for (const listener of this.listeners.get(name) ?? []) listener(...values);
  }

  // Whether the values are new.
  take(values) {
    const fresh = Object.entries(values).filter(([name, value]) => JSON.stringify(this.state[name]) !== JSON.stringify(value));
    Object.assign(this.state, values);
    for (const [name] of fresh) this.emit(`change:${name}`);
    return fresh.length > 0;
  }
}

const modules = new Map();

function load(name, script) {
  if (!modules.has(name)) {
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    modules.set(name, import(url).finally(() => URL.revokeObjectURL(url)));
  }
  return modules.get(name);
}

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const post = (message, buffers) => model.send({ ...message, view }, undefined, buffers);
  const shown = new Map(); // by id: element, part, cleanup function
  const sheets = new Set();

  const build = (about) => {
    const made = shown.get(about.id) ?? { el: document.createElement("div"), end: () => {} };
    shown.set(about.id, made);
    made.el.className = [...new Set([...made.el.classList, ...about.names])].join(" ");
    for (const [name, value] of Object.entries(about.style)) made.el.style.setProperty(name, value);
    if (about.children) fill(made, about.children);
    else if (about.html !== undefined) made.el.innerHTML = about.html;
    else if (!made.part) start(made, about);
    return made.el;
  };
  const fill = (made, children) => {
    for (const id of (made.ids ?? []).filter((each) => !children.some((child) => child.id === each))) {
      shown.get(id)?.end();
      shown.delete(id);
    }
    made.ids = children.map((child) => child.id);
    const elements = children.map(build);
    const same = elements.length === made.el.children.length && elements.every((each, at) => made.el.children[at] === each);
    if (!same) made.el.replaceChildren(...elements); // typed text is kept
  };
  const start = (made, { id, module, script, sheet, state }) => {
    made.part = new Part(id, state, post);
    if (!sheets.has(module)) {
      sheets.add(module);
      el.append(Object.assign(document.createElement("style"), { textContent: sheet }));
    }
    load(module, script).then((found) => {
      if (shown.get(id) === made) made.end = found.default.render({ model: made.part, el: made.el }) ?? made.end;
    });
  };
  const HANDLERS = {
    tree: ({ root }) => { const made = build(root); if (!made.isConnected) el.append(made); },
    children: ({ box, children }) => shown.has(box) && fill(shown.get(box), children),
    message: ({ part, content }, buffers) => shown.get(part)?.part?.emit("msg:custom", content, buffers),
    state: ({ part, state }) => shown.get(part)?.part?.take(state),
  };
  const onMessage = (message, buffers) => {
    if (!message.view || message.view === view) HANDLERS[message.kind]?.(message, buffers);
  };
  model.on("msg:custom", onMessage);
  post({ kind: "ready" });
  return () => {
    model.off("msg:custom", onMessage);
    for (const { end } of shown.values()) end();
  };
}

export default { render };
