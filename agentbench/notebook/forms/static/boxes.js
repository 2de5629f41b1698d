// Containers of fields: groups, lists of rows, pairs, and unions of types. Python sends their structure.

// A titled box. `fill(holder, latest)` arranges its content; `top` is placed between title and content.
function makeBox(spec, id, host, { top = [], foot = [], fill }) {
  const box = node("div", { class: `abf-box abf-${spec.kind}`, role: "group", "aria-labelledby": `${id}-label`, hidden: spec.hiddenAtFirst });
  const title = node("div", { class: "abf-label abf-box-title", id: `${id}-label`, tabindex: "-1" });
  const help = node("div", { class: "abf-help", id: `${id}-help` });
  const problem = node("div", { class: "abf-problem", id: `${id}-problem` });
  const holder = node("div", { class: "abf-holder" });
  const none = noneBox(spec, (on) => host.send({ [spec.path]: { none: on } }));
  const folder = spec.folded ? button("", () => fold(holder.hidden), { class: "abf-more", "aria-expanded": "true" }) : null;
  const inner = node("div", { class: "abf-inner", "aria-describedby": `${id}-help ${id}-problem` });
  box.setAttribute("aria-describedby", `${id}-help ${id}-problem`);
  inner.append(...top, holder, ...foot);
  box.append(...[title, help, none?.el, folder, inner, problem].filter(Boolean));
  const fold = (open) => {
    holder.hidden = !open;
    if (!folder) return;
    folder.textContent = open ? "▾ Fold" : "▸ Show the fields";
    folder.setAttribute("aria-expanded", String(open));
  };
  const self = {
    box, path: spec.path, spec, children: [], holder, fold,
    fits: (latest) => latest.kind === spec.kind && Boolean(latest.none) === Boolean(spec.none),
    update: (latest) => {
      title.textContent = labelText(latest);
      help.textContent = latest.help;
      if (none) {
        if (folder && inner.hidden && !latest.none.on) fold(true); // show the fields as soon as there is a value
        none.input.checked = inner.hidden = latest.none.on;
        if (folder) folder.hidden = latest.none.on;
      }
      spec.label = latest.label;
      fill(self, latest);
    },
    focus: () => { fold(true); (self.children[0] ?? { focus: () => title.focus() }).focus(); },
    raw: () => undefined,
    write: () => {},
    reveal: () => { const was = box.hidden; box.hidden = false; return was; },
    complain: (text) => { problem.textContent = text ? `⚠ ${text}` : ""; },
  };
  if (folder) fold(false);
  return self;
}

function fillHolder(self, latest, host) {
  self.children = latest.children.map(host.made);
  arrange(self.holder, self.children.map((child) => child.box));
}

function makeGroup(spec, id, host) {
  const open = button("Open", () => host.send({ [spec.path]: { open: true } }), { class: "abf-button abf-small" });
  return makeBox(spec, id, host, {
    foot: [open],
    fill: (self, latest) => {
      open.hidden = !latest.closed;
      open.setAttribute("aria-label", `Open ${latest.label}`);
      fillHolder(self, latest, host);
    },
  });
}

function makeOneOf(spec, id, host) {
  const pick = (at) => host.send({ [spec.path]: { pick: at } });
  const named = { "aria-labelledby": `${id}-label` };
  const picker = spec.control === "toggle"
    ? choices(id, spec.options, "abf-toggles abf-types", pick)
    : dropdown(`${id}-type`, spec.options, pick, named, "");
  return makeBox(spec, id, host, {
    top: picker.els,
    fill: (self, latest) => {
      picker.put({ option: latest.picked });
      fillHolder(self, latest, host);
      for (const child of self.children) child.box.classList.add("abf-member");
    },
  });
}

function makeRows(spec, id, host) {
  const ask = (what) => { host.flush(); host.post({ kind: "rows", path: spec.path, ...what }); };
  const rows = new Map();
  const tool = (sign, name, does, path) => button(sign, () => ask({ do: does, row: path }), { class: "abf-tool", "aria-label": name, title: name });
  const rowOf = (child) => {
    const known = rows.get(child.path);
    if (known?.child === child) return known;
    const line = node("div", { class: "abf-row" });
    const tools = node("div", { class: "abf-tools" });
    tools.append(tool("↑", "", "up", child.path), tool("↓", "", "down", child.path), tool("✕", "", "remove", child.path));
    line.append(child.box, tools);
    const made = { line, child, tools };
    rows.set(child.path, made);
    return made;
  };
  const add = button("Add", () => ask({ do: "add" }), { class: "abf-button abf-small" });
  const lines = node("textarea", { class: "abf-input", rows: 5, hidden: true, "aria-labelledby": `${id}-label`, "aria-describedby": `${id}-help ${id}-problem` });
  const typing = typingPause(() => {
    const texts = lines.value.replace(/\n$/, "").split("\n");
    ask({ do: "lines", texts: lines.value === "" ? [] : texts });
  });
  lines.addEventListener("input", () => typing.later());
  const show = (asLines) => {
    if (asLines) lines.value = self.children.map((child) => child.text()).join("\n");
    else typing.now();
    lines.hidden = !asLines;
    self.holder.hidden = add.hidden = asLines;
    swap.textContent = asLines ? "As rows" : "One per line";
  };
  const swap = button("One per line", () => show(lines.hidden), { class: "abf-more", hidden: true });
  const foot = node("div", { class: "abf-line" });
  foot.append(add, swap);
  const self = makeBox(spec, id, host, {
    foot: [lines, foot],
    fill: (self, latest) => {
      self.children = latest.children.map(host.made);
      const here = document.activeElement;
      arrange(self.holder, self.children.map((child) => rowOf(child).line));
      if (here !== document.activeElement && self.holder.contains(here)) here.focus();
      self.children.forEach((child, at) => {
        const [up, down, off] = rowOf(child).tools.children;
        const name = child.spec.label || latest.label;
        for (const [tool, label] of [[up, `Move ${name} up`], [down, `Move ${name} down`], [off, `Remove ${name}`]]) {
          tool.setAttribute("aria-label", label);
          tool.title = label;
        }
        up.disabled = at === 0;
        down.disabled = at === self.children.length - 1;
      });
      add.textContent = "Add";
      add.setAttribute("aria-label", `Add to ${latest.label}`);
      add.disabled = latest.most !== null && latest.children.length >= latest.most;
      const broken = self.children.some((child) => /[\r\n]/.test(child.text?.() ?? ""));
      swap.hidden = !latest.lines || broken;
    },
  });
  const focus = self.focus;
  self.focus = () => (lines.hidden ? (self.children.length ? focus() : add.focus()) : lines.focus());
  return self;
}

const KINDS = { leaf: makeLeaf, group: makeGroup, pair: makeGroup, oneof: makeOneOf, rows: makeRows };
