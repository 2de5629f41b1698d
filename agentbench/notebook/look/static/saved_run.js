// The script of a saved run: replaces the kernel and answers the parts of the stepper from recorded data.
// `stepper` and `graph` are the modules of the live panel and precede this file in one script.

const saved = JSON.parse(document.getElementById("run").textContent);
const last = saved.frames.length - 1;
const part = (place) => saved.parts[place];
let at = last;
let { tab } = saved;
let stamp = 0;
let rows = []; // of the open tab: [name, kind, text, note, opens, cut, editable, rows below, full text]

// The model interface that an anywidget script uses.
class Model {
  constructor(values, onMessage) {
    [this.values, this.send, this.listeners] = [values, onMessage, {}];
  }

  get(name) {
    return this.values[name];
  }

  set(name, value) {
    if (name === "breakpoints" || this.values[name] === value) return; // a saved run cannot pause
    this.values[name] = value;
    this.emit(`change:${name}`);
  }

  save_changes() {}

  on(name, listener) {
    (this.listeners[name] ??= []).push(listener);
  }

  emit(name, message) {
    for (const listener of this.listeners[name] ?? []) listener(message);
  }
}

const HANDLERS = {
  press: ({ name }) => {
    if (name === "see_output") open("output");
    else goTo(at + ({ back: -1, forward: 1, step: 1 }[name] ?? 0));
  },
  goto: ({ id }) => goTo(Number(id)),
  tab: ({ name }) => open(name),
  level: ({ path }) => sendSide({ kind: "level", path, level: levelOf(rowsAt(path)) }),
  full: ({ path }) => sendSide({ kind: "full", path, text: part(part(rowsAt(path.slice(0, -1))[path.at(-1)])[8]) }),
};
const onMessage = (message) => HANDLERS[message.kind]?.(message);
const sendSide = (message) => models.side.emit("msg:custom", { ...message, stamp });
const rowsAt = (path) => path.reduce((level, place) => part(part(level[place])[7]), rows);
const levelOf = (level) => ({ rows: level.map(part), start: 0, more: 0 });

const models = Object.fromEntries(["top", "side", "log"].map((name) => [name, new Model({ part: name, name: "", height: 420 }, onMessage)]));
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
  models.top.emit("msg:custom", {
    kind: "view",
    ...part(saved.frames[at].view),
    buttons: [
      ["step", "Step", "", !isLast, "s"],
      ["back", "Back", "Show the previous superstep", at > 0, "ArrowLeft"],
      ["forward", "Forward", "Show the next superstep", !isLast, "ArrowRight"],
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
  models.log.emit("msg:custom", { kind: "log", lines, headline, total, limit: 200 });
}

function showSide() {
  const frame = saved.frames[at];
  const content = part((tab === "node" && frame.nodes[models.graph.get("selected")]) || frame.tabs[tab]);
  rows = part(content.rows);
  stamp += 1;
  sendSide({ ...content, kind: "side", tabs: saved.tabs, tab, displays: content.displays.map(part), level: levelOf(rows) });
}

function showGraph() {
  const [states, badges] = [part(saved.frames[at].states), part(saved.frames[at].badges)];
  const idle = Object.fromEntries(Object.keys(models.graph.get("patch")).map((element) => [element, "idle"]));
  models.graph.set("badges", badges);
  models.graph.set("patch", { ...idle, ...states });
  models.graph.emit("change:stamp");
}

function show() {
  for (const showPart of [showTop, showGraph, showSide, showLog]) showPart();
  document.dispatchEvent(new CustomEvent("superstep", { detail: at })); // for the part of an editable page
}

for (const [name, model] of Object.entries(models)) {
  (name === "graph" ? graph : stepper).render({ model, el: document.getElementById(name) });
}
const width = document.querySelector("#graph svg").getAttribute("width");
document.getElementById("graph").style.minWidth = `min(${parseFloat(width) + 18}px, 60%)`; // as in the live panel
show();
requestAnimationFrame(showGraph); // after layout, so that the graph scrolls to the active nodes
document.querySelector(".abs-log button").click(); // unfold the log, because there is room
