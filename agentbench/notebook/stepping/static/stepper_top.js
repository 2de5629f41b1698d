// Header, controls and banner of a stepper.

const SAY_EVERY_MS = 1000;
const MOST_STOPS = 500;
const MOST_DOTS = 30;

const MORE_KEYS = [
  ["← →", "on the checkpoint slider: earlier, later"], ["arrows", "on the graph: follow the edges; Home: the start"],
  ["Enter", "on the graph: select, open the Node tab"], ["+ − 0", "on the graph: zoom, fit"],
  ["Ctrl+Enter", "send a form, save an edit"], ["Esc", "back to the controls"],
];

// The panel handles single keys while it has the focus; keys with a modifier go to the notebook.
function listenForKeys(frame, act) {
  const onKeydown = (event) => {
    const at = event.target;
    const field = "input:not([type=range], [type=radio], [type=checkbox]), textarea, select";
    const typing = at.matches?.(field) || at.isContentEditable;
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    if (modified || (event.shiftKey && event.key === "Enter")) return;
    event.stopPropagation(); // in command mode the notebook would cut cells and change their type
    if (typing || event.defaultPrevented) return;
    if (act(event.key)) event.preventDefault();
  };
  frame.addEventListener("keydown", onKeydown);
  return () => frame.removeEventListener("keydown", onKeydown);
}

// Screen readers get at most one message per second, and always the last one, but not the initial one.
function makeVoice() {
  const el = node("div", { class: "abs-quiet", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  let nextAt = null;
  let timer;
  const speak = (message) => {
    clearTimeout(timer);
    if (nextAt === null) { nextAt = 0; return; }
    const wait = nextAt - performance.now();
    if (wait > 0) { timer = setTimeout(() => speak(message), wait); return; }
    if (el.textContent === message) return;
    el.textContent = message;
    nextAt = performance.now() + SAY_EVERY_MS;
  };
  return { el, speak, stop: () => clearTimeout(timer) };
}

function makeHeader() {
  const names = ["name", "run", "superstep", "status", "figures"];
  const parts = Object.fromEntries(names.map((name) => [name, node("span", { class: `abs-${name}` })]));
  const sign = node("span", { "aria-hidden": "true" }, node("span"));
  const words = node("span");
  parts.status.append(sign, " ", words);
  return {
    el: node("div", { class: "abs-header" }, ...Object.values(parts)),
    update: (head, status) => {
      for (const name of ["name", "run", "superstep"]) write(parts[name], head[name]);
      parts.run.title = head.run;
      parts.status.dataset.status = head.sign === "⚠" ? "unanswered" : status;
      sign.classList.toggle("abs-bars", status === "waiting");
      write(sign.firstChild, head.sign);
      write(words, head.status);
      write(parts.figures, head.figures.join("  ·  "));
    },
  };
}

// The checkpoints: a slider with a dot for each, or a number field if there are very many.
function makeScrubber(post) {
  const slider = node("input", {
    type: "range", min: 0, step: 1, "aria-label": "Checkpoint", oninput: () => goto(Number(slider.value)),
  });
  const number = node("input", {
    type: "number", min: 1, step: 1, "aria-label": "Checkpoint number", onchange: () => goto(Number(number.value) - 1),
  });
  const place = node("span", { class: "abs-place" });
  let stops = [];
  let shownAt = 0;
  // Replies lag behind fast moves: until the last one arrives, the slider stays where the person put it.
  let wanted = null;
  let wantedUntil = 0;
  const goto = (index) => {
    if (!stops[index] || index === (wanted ?? shownAt)) return;
    wanted = index;
    wantedUntil = performance.now() + SAY_EVERY_MS;
    post({ kind: "goto", id: stops[index][1] });
  };
  return {
    els: [slider, number],
    place,
    last: () => stops.at(-1)?.[1],
    update: (view) => {
      if (view.stops) stops = [...stops.slice(0, view.stopsFrom), ...view.stops];
      const count = stops.length;
      shownAt = view.index ?? 0;
      slider.hidden = count > MOST_STOPS;
      number.hidden = !slider.hidden;
      slider.max = String(Math.max(count - 1, 0));
      number.max = String(count);
      slider.classList.toggle("abs-dotted", count > 1 && count <= MOST_DOTS);
      slider.style.setProperty("--abs-gaps", String(Math.max(count - 1, 1)));
      if (wanted === null || shownAt === wanted || performance.now() > wantedUntil) {
        wanted = null;
        slider.value = String(shownAt);
        number.value = String(shownAt + 1);
      }
      slider.style.setProperty("--abs-part", String(Number(slider.value) / Math.max(count - 1, 1)));
      for (const control of [slider, number]) control.disabled = !view.scrubbing;
      const label = stops[shownAt]?.[0] ?? view.position;
      const words = label === view.position ? label : `${label}, ${view.position}`;
      slider.setAttribute("aria-valuetext", words);
      write(place, view.position);
      place.title = words;
    },
  };
}

// The banner: a message and its actions.
function makeBanner(press) {
  const text = node("span", { class: "abs-banner-text" });
  const actions = node("span", { class: "abs-actions" });
  const trace = node("pre", { tabindex: "0", "aria-label": "Details" });
  const ontoggle = () => { trace.scrollTop = trace.scrollHeight; }; // the user's own code is at the end
  const details = node("details", { ontoggle }, node("summary", {}, "details"), trace);
  const el = node("div", { class: "abs-banner" }, text, actions, details);
  const changed = makeWatch();
  return {
    el,
    update: (news) => {
      el.dataset.tone = news.tone;
      write(text, news.text);
      const make = ([command, label]) => makeSmallButton(label, () => press(command));
      if (changed(news.actions)) actions.replaceChildren(...news.actions.map(make));
      details.hidden = !news.details;
      if (!news.details) details.open = false;
      write(trace, news.details);
    },
  };
}

// A text field for each running agent that takes messages. A field that stays keeps its text and the focus.
function makeMailbox(post) {
  const el = node("div", { class: "abs-mailbox" });
  const forms = new Map(); // by the id of the agent's node
  const make = (executor, name) => {
    const label = `Message to ${name}`;
    const attributes = { class: "abs-entry", "aria-label": label, placeholder: `${label}, before its next model call` };
    const field = node("input", { type: "text", ...attributes });
    const onsubmit = (event) => {
      event.preventDefault();
      if (!field.value.trim()) return;
      post({ kind: "enqueue", executor, text: field.value });
      field.value = "";
    };
    return node("form", { onsubmit }, field, makeButton("Send", null, { type: "submit", "aria-label": label }));
  };
  return {
    el,
    update: (agents) => {
      const running = new Map(agents);
      for (const [executor, form] of forms) {
        if (running.has(executor)) continue;
        form.remove();
        forms.delete(executor);
      }
      for (const [executor, name] of running) {
        if (forms.has(executor)) continue;
        forms.set(executor, make(executor, name));
        el.append(forms.get(executor));
      }
    },
  };
}

function makeHelp(anchor) {
  const list = node("dl");
  const about = { role: "dialog", "aria-label": "Keys", class: "abs-help", tabindex: "0" }; // scrollable
  const help = makePopover(anchor, about, node("b", {}, "Keys, while the focus is in this panel"), list);
  const open = () => { help.show(true); help.box.focus(); };
  // When closed by its key, it returns the focus to its previous place.
  let from = null;
  const toggle = () => {
    if (help.isOpen()) { help.show(false); from?.focus(); } else { from = document.activeElement; open(); }
  };
  const update = (commands) => {
    if (list.childElementCount) return;
    const keys = [...commands.map(([, label, , , key]) => [key, label]), ...MORE_KEYS];
    list.append(...keys.map(([key, what]) => node("div", {}, node("dt", {}, node("kbd", {}, key)), node("dd", {}, what))));
  };
  return { box: help.box, open, toggle, update };
}

// A dialog that asks for the number of supersteps.
function makeAsk(anchor, post) {
  const count = node("input", { type: "number", min: 1, step: 1, value: 5, class: "abs-entry" });
  const onsubmit = (event) => {
    event.preventDefault();
    if (!count.value || !count.checkValidity()) return;
    post({ kind: "press", name: "run_steps", value: Number(count.value) });
    ask.show(false);
    anchor.focus();
  };
  const label = node("label", {}, "Supersteps: ", count);
  const form = node("form", { onsubmit }, label, makeButton("Run", null, { type: "submit" }));
  const ask = makePopover(anchor, { role: "dialog", "aria-label": "How many supersteps", class: "abs-ask" }, form);
  return { box: ask.box, open: () => { ask.show(true); count.focus(); count.select(); } };
}

// The list of breakpoints, and a form to add one: a kind, then a place in the graph.
function makeBreakpoints(anchor, post) {
  const none = node("p", { class: "abs-none" }, "No breakpoints. A run pauses before the superstep that reaches one.");
  const list = node("ul", { class: "abs-rows" });
  const onchange = () => { suit(); choice.value = "0"; problem.textContent = ""; };
  const kind = node("select", { class: "abs-entry", "aria-label": "Pause", onchange });
  const choice = node("select", { class: "abs-entry", "aria-label": "Where" });
  const entry = { class: "abs-entry", "aria-label": "Superstep" };
  const number = node("input", { type: "number", min: 0, step: 1, value: 1, ...entry });
  const text = node("input", { class: "abs-entry", "aria-label": "Value, as JSON", placeholder: "value, as JSON" });
  const once = node("input", { type: "checkbox" });
  const problem = node("p", { class: "abs-problem", role: "alert" });
  const onsubmit = (event) => {
    event.preventDefault();
    const [name, , , asks] = offered();
    const value = { number: Number(number.value), text: text.value }[asks] ?? null;
    problem.textContent = "";
    post({ kind: "break", sort: name, choice: Number(choice.value) || 0, value, once: once.checked });
  };
  const check = node("label", { class: "abs-check" }, once, "once");
  const form = node("form", { onsubmit }, kind, choice, number, text, check, makeButton("Add", null, { type: "submit" }));
  const about = { role: "dialog", "aria-label": "Breakpoints", class: "abs-breaks" };
  const parts = [node("b", {}, "Breakpoints"), none, list, form, problem];
  const { box, show, isOpen, place } = makePopover(anchor, about, ...parts);
  const changed = makeWatch();
  let offers = [];
  const offered = () => offers.find(([name]) => name === kind.value) ?? ["", "", [], ""];
  const suit = () => {
    const [, , options, asks] = offered();
    const chosen = choice.value;
    choice.replaceChildren(...options.map((option, at) => node("option", { value: at }, option)));
    if (chosen && Number(chosen) < options.length) choice.value = chosen;
    choice.hidden = !options.length;
    number.hidden = asks !== "number";
    text.hidden = asks !== "text";
  };
  return {
    box,
    open: () => { post({ kind: "offers" }); show(true); kind.focus(); },
    problem: (words) => { problem.textContent = words; place(); },
    offer: (kinds) => {
      offers = kinds;
      const chosen = kind.value;
      kind.replaceChildren(...kinds.map(([name, label]) => node("option", { value: name }, label)));
      if (kinds.some(([name]) => name === chosen)) kind.value = chosen;
      suit();
      if (isOpen()) place();
    },
    update: (all) => {
      if (!changed(all)) return;
      none.hidden = all.length > 0;
      const at = [...list.querySelectorAll("button")].indexOf(document.activeElement);
      list.replaceChildren(...all.map(([id, words, reached]) => {
        const label = { "aria-label": `Remove the breakpoint ${words}` };
        const remove = makeSmallButton("Remove", () => post({ kind: "unbreak", id }), label);
        const sign = node("span", { class: "abs-dot", "aria-hidden": "true" }, "●");
        const note = reached ? node("span", { class: "abs-note" }, "reached") : "";
        return node("li", { "data-reached": reached }, sign, node("span", {}, words), note, remove);
      }));
      if (at >= 0) (list.querySelectorAll("button")[Math.min(at, all.length - 1)] ?? kind).focus();
      if (isOpen()) place();
    },
  };
}

function makeTop(post, el, height) {
  const names = ["step", "run", "pause", "stop", "back", "forward", "fork", "edit"];
  const buttons = new Map(names.map((name) => {
    const about = { "data-command": name, look: name === "step" ? "abs-first" : "" };
    return [name, makeButton("", () => press(name), about)];
  }));
  const [step, run, pause, stop, back, forward, fork, edit] = buttons.values();
  const how = makeButton("▾", null, { "aria-label": "Ways to run", title: "Ways to run", look: "abs-how" });
  const more = makeButton("⋯", null, { "aria-label": "More", title: "More", look: "abs-icon" });
  const points = makeButton("", () => breaks.open(), { hidden: true, look: "abs-points" });

  const header = makeHeader();
  const voice = makeVoice();
  const scrubber = makeScrubber(post);
  let storage = ""; // storage with the checkpoints, if it outlives the kernel
  const frameOf = () => el.closest(".abs-frame");
  const press = (name) => {
    const made = buttons.get(name);
    if (made && !enabled(made)) return;
    if (name === "help") help.open();
    else if (name === "breakpoints") breaks.open();
    else if (name === "ask_steps") ask.open();
    else {
      post({ kind: "press", name });
      // A button in the banner disappears when the banner changes.
      if (banner.el.contains(document.activeElement)) step.focus();
      if (name === "edit") lead(".abs-edit, .abs-field textarea");
      else if (name === "see_edits" || name === "see_output") lead("[role=tab][aria-selected=true]");
    }
  };
  // Moves the focus to another part once it is displayed.
  const lead = (selector) => {
    let tries = 20;
    const look = () => {
      const found = frameOf()?.querySelector(`.abs-side :is(${selector})`);
      if (found) found.focus();
      else if (tries-- > 0) setTimeout(look, 50);
    };
    setTimeout(look, 100);
  };
  const banner = makeBanner(press);
  const mailbox = makeMailbox(post);
  const help = makeHelp(more);
  const ask = makeAsk(how, post);
  const breaks = makeBreakpoints(more, post);
  const runMenu = makeMenu(how, "Ways to run", press);
  const moreMenu = makeMenu(more, "More", press);

  const group = (name, ...made) => node("span", { class: `abs-group ${name}` }, ...made);
  const tools = node("div", { class: "abs-tools", role: "toolbar", "aria-label": "Controls" },
    group("abs-go", step, group("abs-split", run, how), pause, stop),
    group("abs-line", back, ...scrubber.els, forward, scrubber.place),
    group("abs-else", fork, edit, points, more));
  const windows = [runMenu.box, ask.box, moreMenu.box, help.box, breaks.box];
  const root = node("section", { class: "abs abs-top" }, header.el, voice.el, tools, banner.el, mailbox.el, ...windows);

  const commandOf = new Map(); // command by key
  const act = (key) => {
    if (key === "?") help.toggle();
    else if (commandOf.has(key)) press(commandOf.get(key));
    else if (key === "Escape") step.focus();
    else return false;
    return true;
  };
  let deaf = () => {};
  const attach = () => {
    const frame = frameOf();
    if (!frame) return false;
    frame.style.setProperty("--abs-height", `${height}px`);
    deaf = listenForKeys(frame, act);
    return true;
  };
  if (!attach()) requestAnimationFrame(attach);

  return {
    root,
    stop: () => { deaf(); voice.stop(); },
    focusRequest: () => {
      const form = [...(frameOf()?.querySelectorAll(".abs-requests .abf") ?? [])].at(-1);
      if (!form) return false;
      // Focus a field if there is one, never a button: a space typed too early would answer the request.
      const field = form.querySelector(".abf-field:not([hidden]) :is(input, select, textarea):not(:disabled)");
      if (!field) form.tabIndex = -1;
      (field ?? form).focus({ preventScroll: true });
      // The asking executor first and the form last, in case both do not fit on the page.
      const asking = frameOf().querySelector(".ab_node.ab_s_waiting");
      for (const each of [asking, form]) each?.scrollIntoView({ block: "nearest", inline: "nearest" });
      return true;
    },
    gone: () => {
      const id = scrubber.last();
      const words = "The kernel of this panel has stopped. Run its cell again to start a new run" + (storage && id
        ? `, or continue from the last checkpoint: stepper(workflow, storage=${storage}, checkpoint="${id}").` : ".");
      const frame = frameOf();
      frame?.classList.add("abs-gone");
      for (const part of frame?.querySelectorAll(".ab_s_running") ?? []) { // nothing is running now
        part.classList.remove("ab_s_running");
        part.querySelector(".ab_mark")?.remove();
        part.ariaLabel &&= part.ariaLabel.replace(/, .*/, "");
      }
      banner.update({ tone: "error", text: words, actions: [], details: "" });
      voice.speak(words);
    },
    file: ({ name, text }) => {
      const href = URL.createObjectURL(new Blob([text], { type: "text/html" }));
      node("a", { href, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(href), SAY_EVERY_MS);
    },
    problem: (data) => breaks.problem(data.text),
    offers: (data) => breaks.offer(data.offers),
    view: (view) => {
      frameOf()?.classList.remove("abs-gone");
      root.setAttribute("aria-label", `Stepper ${view.header.name}`);
      header.update(view.header, view.status);
      for (const [name, label, hint, on, key] of view.buttons) {
        const made = buttons.get(name);
        write(made, label);
        made.title = key ? `${hint} (${key})` : hint;
        made.setAttribute("aria-disabled", String(!on));
      }
      const withKeys = [...view.runMenu, ...view.moreMenu, ...view.buttons].filter(([name, , , , key]) => name && key);
      for (const [name, , , , key] of withKeys) commandOf.set(key, name);
      help.update(withKeys.filter(([name], at) => withKeys.findLastIndex((each) => each[0] === name) === at));
      for (const [made, menu, list] of [[how, runMenu, view.runMenu], [more, moreMenu, view.moreMenu]]) {
        made.setAttribute("aria-disabled", String(!list.length));
        menu.update(list);
      }
      scrubber.update(view);
      storage = view.storage;
      points.hidden = !view.breakpoints.length;
      write(points, `● ${view.breakpoints.length}`);
      points.setAttribute("aria-label", `Breakpoints: ${view.breakpoints.length}`);
      breaks.update(view.breakpoints);
      banner.update(view.banner);
      mailbox.update(view.listening);
      voice.speak(view.announcement);
    },
  };
}
