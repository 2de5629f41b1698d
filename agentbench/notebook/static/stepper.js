// The parts of a stepper's panel. All text is written with textContent; all content comes by message and stays in no trait.
const SAY_EVERY_MS = 1000;

function node(tag, attributes = {}, text) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) el.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) el.setAttribute(name, value);
  }
  if (text !== undefined) el.textContent = text;
  return el;
}

function write(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

const enabled = (button) => button.getAttribute("aria-disabled") !== "true";

// ---- header, controls, news -------------------------------------------------------------------------------------------

const KEYS = [
  ["s", "Step"], ["r", "Run"], ["p", "Pause"], [".", "Stop"],
  ["← →", "on the line of checkpoints: earlier, later"], ["arrows", "on the graph: along the edges; Home: the start"],
  ["Enter", "on the graph: select, open the Node tab"], ["+ − 0", "on the graph: zoom, fit"],
  ["Ctrl+Enter", "send a form"], ["Esc", "back to the controls"], ["?", "this list"],
];

// Single keys are ours while the focus is inside the panel; keys with a modifier stay the notebook's.
function listenForKeys(frame, act) {
  const hear = (event) => {
    const at = event.target;
    const typing = at.matches?.("input:not([type=range]):not([type=radio]):not([type=checkbox]), textarea, select") || at.isContentEditable;
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (modified || (event.shiftKey && event.key === "Enter")) return;
    event.stopPropagation(); // in command mode the notebook would cut cells and change their type
    if (typing || event.defaultPrevented) return;
    if (act(event.key)) event.preventDefault();
  };
  frame.addEventListener("keydown", hear);
  return () => frame.removeEventListener("keydown", hear);
}

function makeTop(say, el) {
  const root = node("section", { class: "abs abs-top" });
  const header = node("div", { class: "abs-header" });
  const parts = {};
  for (const name of ["name", "run", "superstep", "status", "figures"]) {
    parts[name] = node("span", { class: `abs-${name}` });
    header.append(parts[name]);
  }
  const sign = node("span", { "aria-hidden": "true" });
  const words = node("span");
  sign.append(node("span"));
  parts.status.append(sign, " ", words);
  const spoken = node("div", { class: "abs-quiet", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  const tools = node("div", { class: "abs-tools", role: "toolbar", "aria-label": "Controls" });
  const buttons = new Map();
  const press = (name) => { const b = buttons.get(name); if (b && enabled(b)) say({ kind: "press", name }); };
  const button = (name) => {
    const made = node("button", { type: "button", class: "abs-button" });
    if (name === "step") made.classList.add("abs-first");
    made.addEventListener("click", () => press(name));
    buttons.set(name, made);
    return made;
  };
  const slider = node("input", { type: "range", min: 0, step: 1, "aria-label": "Checkpoint" });
  const number = node("input", { type: "number", min: 1, step: 1, "aria-label": "Checkpoint number" });
  const place = node("span", { class: "abs-place" });
  let stops = [];
  let shownAt = 0;
  // Answers to quick moves come late: until the last one is answered, the slider is the person's.
  let wanted = null;
  let wantedUntil = 0;
  const goto = (index) => {
    if (!stops[index] || index === (wanted ?? shownAt)) return;
    wanted = index;
    wantedUntil = performance.now() + SAY_EVERY_MS;
    say({ kind: "goto", id: stops[index][1] });
  };
  slider.addEventListener("input", () => goto(Number(slider.value)));
  number.addEventListener("change", () => goto(Number(number.value) - 1));
  const line = node("span", { class: "abs-line" });
  line.append(button("back"), slider, number, button("forward"), place);
  const keys = node("button", { type: "button", class: "abs-button", "aria-expanded": "false", "aria-label": "Keys", title: "List the keys (?)" }, "?");
  keys.style.minWidth = "32px";
  tools.append(...["step", "run", "pause", "stop"].map(button), node("span", { class: "abs-gap" }), line, keys);

  const banner = node("div", { class: "abs-banner" });
  const text = node("span", { class: "abs-banner-text" });
  const actions = node("span", {});
  const details = node("details", {});
  const trace = node("pre", { tabindex: "0", "aria-label": "Details" });
  details.append(node("summary", {}, "details"), trace);
  details.addEventListener("toggle", () => { trace.scrollTop = trace.scrollHeight; }); // the person's own code comes last
  banner.append(text, actions, details);

  const help = node("div", { class: "abs-help", hidden: true });
  const list = node("dl", {});
  for (const [key, what] of KEYS) {
    const dt = node("dt", {});
    dt.append(node("kbd", {}, key));
    const pair = node("div", {});
    pair.append(dt, node("dd", {}, what));
    list.append(pair);
  }
  help.append(node("b", {}, "Keys, while the focus is in this panel"), list);
  const toggleHelp = () => { help.hidden = !help.hidden; keys.setAttribute("aria-expanded", String(!help.hidden)); };
  keys.addEventListener("click", toggleHelp);
  root.append(header, spoken, tools, banner, help);

  // A screen reader hears at most one message a second, and always the last one.
  let nextAt = 0;
  let timer = null;
  let first = true;
  const speak = (message) => {
    clearTimeout(timer);
    const wait = nextAt - performance.now();
    if (wait > 0) { timer = setTimeout(() => speak(message), wait); return; }
    if (spoken.textContent === message) return;
    spoken.textContent = message;
    nextAt = performance.now() + SAY_EVERY_MS;
  };

  const act = (key) => {
    const name = { s: "step", r: "run", p: "pause", ".": "stop" }[key];
    if (name) press(name);
    else if (key === "?") toggleHelp();
    else if (key === "Escape") buttons.get("step").focus();
    else return false;
    return true;
  };
  let stop = () => {};
  const attach = () => {
    const frame = el.closest(".abs-frame");
    if (!frame) return false;
    stop = listenForKeys(frame, act);
    return true;
  };
  if (!attach()) requestAnimationFrame(attach);

  return {
    root,
    stop: () => { stop(); clearTimeout(timer); },
    focusRequest: () => {
      const frame = el.closest(".abs-frame");
      const forms = frame ? [...frame.querySelectorAll(".abs-requests .abf")] : [];
      const form = forms.at(-1);
      if (!form) return false;
      // To a field if there is one; never to a button, where a space typed too early would answer.
      const field = form.querySelector(".abf-field:not([hidden]) :is(input, select, textarea):not(:disabled)");
      if (!field) form.tabIndex = -1;
      (field ?? form).focus({ preventScroll: true });
      form.scrollIntoView({ block: "nearest" });
      return true;
    },
    view: (view) => {
      const head = view.header;
      root.setAttribute("aria-label", `Stepper ${head.name}`);
      write(parts.name, head.name);
      write(parts.run, head.run);
      parts.run.title = head.run;
      write(parts.superstep, head.superstep);
      parts.status.dataset.status = view.status;
      sign.classList.toggle("abs-bars", view.status === "waiting");
      write(sign.firstChild, head.sign);
      write(words, head.status);
      write(parts.figures, head.figures.join("  ·  "));
      for (const [name, label, hint, on] of view.buttons) {
        const made = buttons.get(name);
        write(made, label);
        made.title = hint;
        made.setAttribute("aria-disabled", String(!on));
      }
      if (view.stops) stops = [...stops.slice(0, view.stopsFrom), ...view.stops];
      const count = stops.length;
      shownAt = view.index ?? 0;
      const many = count > 500;
      slider.hidden = many;
      number.hidden = !many;
      slider.max = String(Math.max(count - 1, 0));
      number.max = String(count);
      if (wanted === null || shownAt === wanted || performance.now() > wantedUntil) {
        wanted = null;
        slider.value = String(shownAt);
        number.value = String(shownAt + 1);
      }
      for (const control of [slider, number]) control.disabled = !view.scrubbing;
      slider.setAttribute("aria-valuetext", count ? `${stops[shownAt]?.[0]}, ${shownAt + 1} of ${count}` : "none yet");
      write(place, view.position);
      place.title = count ? `checkpoint ${shownAt + 1} of ${count}: ${stops[shownAt]?.[0]}` : "no checkpoint yet";
      const news = view.banner;
      banner.dataset.tone = news.tone;
      write(text, news.text);
      const signature = JSON.stringify(news.actions);
      if (actions.dataset.signature !== signature) {
        actions.dataset.signature = signature;
        actions.replaceChildren(...news.actions.flatMap(([command, label]) => {
          const made = node("button", { type: "button", class: "abs-button abs-small" }, label);
          made.addEventListener("click", () => { say({ kind: "press", name: command }); buttons.get("step").focus(); });
          return [made, " "];
        }));
      }
      details.hidden = !news.details;
      if (!news.details) details.open = false;
      write(trace, news.details);
      if (first) { first = false; spoken.textContent = ""; } else speak(view.announcement);
    },
  };
}

// ---- beside the graph: a tree of values --------------------------------------------------------------------------------

function makeSide(say, el) {
  const root = node("section", { class: "abs abs-side", "aria-label": "Values" });
  const tabs = node("div", { class: "abs-tabs", role: "tablist", "aria-label": "What is shown" });
  const page = node("div", { class: "abs-page", role: "tabpanel", tabindex: "0" });
  root.append(tabs, page);
  const made = new Map();
  const opened = new Set();
  let stamp = null;
  let current = null;
  let lists = new Map();

  const choose = (name) => say({ kind: "tab", name });
  tabs.addEventListener("keydown", (event) => {
    const names = [...made.keys()];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = names[(names.indexOf(current) + step + names.length) % names.length];
    made.get(next).focus();
    choose(next);
  });

  const rows = (level, path, names) => {
    const items = level.rows.map(([name, kind, text, note, opens, cut], i) => {
      const here = [...path, level.start + i];
      const known = [...names, name].join("\u0000");
      const li = node("li", {});
      const row = node("div", { class: "abs-row" });
      if (opens) row.classList.add("abs-more");
      if (text.length < 48 && !text.includes("\n")) row.classList.add("abs-short");
      const fold = opens ? node("button", { type: "button", class: "abs-fold", "aria-expanded": "false", "aria-label": `Open ${name}` }, "▸") : node("span", { class: "abs-leaf" });
      row.append(fold, node("span", { class: "abs-key" }, name));
      if (note) row.append(node("span", { class: "abs-note" }, note));
      if (kind) row.append(node("span", { class: "abs-kind" }, kind));
      row.append(node("span", { class: "abs-value" }, text));
      if (cut) {
        const more = node("button", { type: "button", class: "abs-link" }, "Copy full text");
        more.addEventListener("click", () => { lists.set(`full ${here}`, { more, row }); say({ kind: "full", stamp, path: here }); });
        row.append(more);
      }
      li.append(row);
      if (opens) {
        const open = () => {
          const inner = node("ul", { class: "abs-rows" });
          li.append(inner);
          row.classList.add("abs-opened");
          fold.textContent = "▾";
          fold.setAttribute("aria-expanded", "true");
          lists.set(String(here), { inner, names: [...names, name] });
          say({ kind: "level", stamp, path: here, start: 0 });
        };
        fold.addEventListener("click", () => {
          if (li.lastChild === row) { opened.add(known); open(); return; }
          opened.delete(known);
          li.lastChild.remove();
          row.classList.remove("abs-opened");
          fold.textContent = "▸";
          fold.setAttribute("aria-expanded", "false");
        });
        if (opened.has(known)) queueMicrotask(open);
      }
      return li;
    });
    if (level.more > 0) {
      const li = node("li", {});
      const more = node("button", { type: "button", class: "abs-link" }, `${level.more.toLocaleString("en")} more`);
      more.addEventListener("click", () => { li.remove(); say({ kind: "level", stamp, path, start: level.start + level.rows.length }); });
      li.append(more);
      items.push(li);
    }
    return items;
  };

  return {
    root,
    stop: () => {},
    side: (told) => {
      for (const [name, label] of told.tabs) {
        if (made.has(name)) continue;
        const tab = node("button", { type: "button", class: "abs-tab", role: "tab" }, label);
        tab.addEventListener("click", () => choose(name));
        made.set(name, tab);
        tabs.append(tab);
      }
      current = told.tab;
      for (const [name, tab] of made) {
        tab.setAttribute("aria-selected", String(name === current));
        tab.tabIndex = name === current ? 0 : -1;
      }
      page.setAttribute("aria-label", told.title);
      stamp = told.stamp;
      lists = new Map();
      const list = node("ul", { class: "abs-rows" });
      lists.set("", { inner: list, names: [current] });
      const at = page.scrollTop;
      list.append(...rows(told.level, [], [current]));
      page.replaceChildren(node("p", { class: "abs-title" }, told.title), list);
      page.scrollTop = at;
    },
    level: (told) => {
      const place = told.stamp === stamp ? lists.get(String(told.path)) : null;
      if (place) place.inner.append(...rows(told.level, told.path, place.names));
    },
    full: async (told) => {
      const place = told.stamp === stamp ? lists.get(`full ${told.path}`) : null;
      if (!place) return;
      try {
        await navigator.clipboard.writeText(told.text);
        place.more.textContent = "Copied";
      } catch {
        place.row.querySelector(".abs-value").textContent = told.text; // no clipboard on this page: show all of it
        place.more.remove();
      }
    },
  };
}

// ---- below: the log ----------------------------------------------------------------------------------------------------

function makeLog() {
  const root = node("section", { class: "abs abs-log", "aria-label": "Log" });
  const head = node("div", { class: "abs-log-head" });
  const last = node("span", { class: "abs-last" });
  const toggle = node("button", { type: "button", class: "abs-button abs-small", "aria-expanded": "false" }, "Expand");
  const lines = node("ol", { class: "abs-lines", hidden: true, tabindex: "0", "aria-label": "Log lines" });
  head.append(node("b", {}, "Log"), last, toggle);
  root.append(head, lines);
  toggle.addEventListener("click", () => {
    lines.hidden = !lines.hidden;
    toggle.textContent = lines.hidden ? "Expand" : "Fold";
    toggle.setAttribute("aria-expanded", String(!lines.hidden));
    lines.scrollTop = lines.scrollHeight;
  });
  let total = 0;
  return {
    root,
    stop: () => {},
    log: (told) => {
      const fresh = told.lines.slice(Math.max(0, told.lines.length - Math.max(0, told.total - total)));
      if (told.total < total) return;
      total = told.total;
      const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 20;
      for (const [kind, text] of fresh) lines.append(node("li", { "data-kind": kind }, text));
      while (lines.childElementCount > told.limit) lines.firstChild.remove();
      if (atEnd) lines.scrollTop = lines.scrollHeight;
      const newest = told.headline;
      write(last, newest ? newest[1] : "nothing happened yet");
      last.dataset.kind = newest ? newest[0] : "";
      last.title = newest ? newest[1] : "";
    },
  };
}

const MAKERS = { top: makeTop, side: makeSide, log: makeLog };

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const say = (message) => model.send({ ...message, view });
  const part = MAKERS[model.get("part")](say, el);
  el.classList.add("abs-host");
  const waiting = node("div", { class: "abs" }, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);
  const hear = (message) => {
    if (message.view && message.view !== view) return;
    if (message.kind === "focusRequest") {
      // The form is a widget of its own and may still be on its way.
      let tries = 20;
      const look = () => { if (!part.focusRequest?.() && tries-- > 0) setTimeout(look, 50); };
      look();
      return;
    }
    const handle = part[message.kind];
    if (!handle) return;
    if (waiting.isConnected) waiting.replaceWith(part.root);
    handle(message);
  };
  model.on("msg:custom", hear);
  say({ kind: "ready" });
  return () => { part.stop(); model.off("msg:custom", hear); };
}

export default { render };
