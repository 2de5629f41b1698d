// The file of a saved run: stands in for the kernel, and answers the parts of the stepper from what was recorded.
// `stepper` and `graph` are the modules of the live panel, before this in one script.

const saved = JSON.parse(document.getElementById("run").textContent);
const last = saved.frames.length - 1;
const part = (place) => saved.parts[place];
let at = last;
let { tab } = saved;
let stamp = 0;
let rows = []; // of the open tab: [name, kind, text, note, opens, cut, editable, rows below, full text]

// The side of an anywidget that its script sees.
class Model {
  constructor(values, hear) {
    [this.values, this.send, this.listeners] = [values, hear, {}];
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (name === "breakpoints" || this.values[name] === value) return; // there is nothing to pause
    this.values[name] = value;
    this.tell(`change:${name}`);
  }

  save_changes() {}

  on(name, listener) {
    (this.listeners[name] ??= []).push(listener);
  }

  tell(name, message) {
    for (const listener of this.listeners[name] ?? []) listener(message);
  }
}

const HEAR = {
  press: ({ name }) => {
    if (name === "see_output") open("output");
    else goTo(at + ({ back: -1, forward: 1, step: 1 }[name] ?? 0));
  },
  goto: ({ id }) => goTo(Number(id)),
  tab: ({ name }) => open(name),
  level: ({ path }) => tellSide({ kind: "level", path, level: levelOf(rowsAt(path)) }),
  full: ({ path }) => tellSide({ kind: "full", path, text: part(part(rowsAt(path.slice(0, -1))[path.at(-1)])[8]) }),
};
const hear = (message) => HEAR[message.kind]?.(message);
const tellSide = (message) => models.side.tell("msg:custom", { ...message, stamp });
const rowsAt = (path) => path.reduce((level, place) => part(part(level[place])[7]), rows);
const levelOf = (level) => ({ rows: level.map(part), start: 0, more: 0 });

const models = Object.fromEntries(["top", "side", "log"].map((name) => [name, new Model({ part: name, name: "", height: 420 }, hear)]));
models.graph = new Model({ ...saved.graph, patch: {}, badges: {}, breakpoints: [], selected: "", height: 420 }, () => {});
models.graph.on("change:selected", () => {
  if (models.graph.get("selected")) tab = "node";
  showSide();
});

function goTo(index) {
  const wanted = Math.min(Math.max(index, 0), last);
  if (wanted === at) return;
  at = wanted;
  show();
}

function open(name) {
  tab = name;
  showSide();
}

function showTop() {
  const isLast = at === last;
  models.top.tell("msg:custom", {
    kind: "view",
    ...part(saved.frames[at].view),
    buttons: [
      ["step", "Step", "", !isLast, "s"],
      ["back", "Back", "Show the superstep before", at > 0, "ArrowLeft"],
      ["forward", "Forward", "Show the superstep after", !isLast, "ArrowRight"],
    ],
    runMenu: [],
    moreMenu: [],
    breakpoints: [],
    stops: saved.frames.map(({ label }, index) => [label, String(index)]),
    stopsFrom: 0,
    index: at,
    position: `${at + 1} of ${last + 1}`,
    scrubbing: last > 0,
  });
}

function showLog() {
  const { total } = saved.frames[at];
  const lines = saved.log.slice(Math.max(0, total - 200), total);
  const headline = lines.findLast(([kind]) => kind !== "text") ?? null;
  models.log.tell("msg:custom", { kind: "log", lines, headline, total, limit: 200 });
}

function showSide() {
  const frame = saved.frames[at];
  const content = part((tab === "node" && frame.nodes[models.graph.get("selected")]) || frame.tabs[tab]);
  rows = part(content.rows);
  stamp += 1;
  tellSide({ ...content, kind: "side", tabs: saved.tabs, tab, displays: content.displays.map(part), level: levelOf(rows) });
}

function showGraph() {
  const [states, badges] = [part(saved.frames[at].states), part(saved.frames[at].badges)];
  const idle = Object.fromEntries(Object.keys(models.graph.get("patch")).map((element) => [element, "idle"]));
  models.graph.set("badges", badges);
  models.graph.set("patch", { ...idle, ...states });
  models.graph.tell("change:stamp");
}

function show() {
  for (const showPart of [showTop, showGraph, showSide, showLog]) showPart();
}

for (const [name, model] of Object.entries(models)) {
  (name === "graph" ? graph : stepper).render({ model, el: document.getElementById(name) });
}
const width = document.querySelector("#graph svg").getAttribute("width");
document.getElementById("graph").style.minWidth = `min(${parseFloat(width) + 18}px, 60%)`; // as beside a kernel
show();
requestAnimationFrame(showGraph); // once the graph has its size: scrolled to where something happened
document.querySelector(".abs-log button").click(); // there is room for all lines
