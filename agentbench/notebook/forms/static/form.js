// A form on the page. Typed text is sent by message and never stored in a trait.
const OVER = ["answered", "withdrawn", "expired"];
const EDITING_CHORD = /^([acvxyz]|Enter|Backspace|Delete|Home|End|Arrow(Left|Right|Up|Down))$/i;

function makeForm({ content, ...first }, post, view) {
  const id = `abf-${view}`;
  const root = node("section", { class: "abf", tabindex: "-1", "aria-labelledby": `${id}-title` });
  const cutNote = {};
  const part = (name, el) => {
    if (!content[name]) return [];
    el.textContent = content[name];
    if (!content.cut.includes(name)) return [el];
    const more = button("Copy full text", () => post({ kind: "full", part: name }), { class: "abf-more" });
    cutNote[name] = { el, more };
    return [el, more];
  };
  root.append(node("div", { class: content.waits ? "abf-title abf-waits" : "abf-title", id: `${id}-title`, role: "heading", "aria-level": "3" }, content.title));
  const origin = node("p", { class: "abf-origin" });
  if (content.origin) root.append(origin);
  const scroller = node("div", { class: "abf-scroll" });
  scroller.append(...part("prompt", node("p", { class: "abf-prompt" })), ...part("context", node("pre", { class: "abf-context", tabindex: "0", "aria-label": "Context" })));
  const shown = node("div", { class: "abf-displays", role: "group", "aria-label": "Subject of the request", tabindex: content.displays.length ? "0" : null });
  scroller.append(shown);
  if (content.deadlineText) scroller.append(node("p", { class: "abf-help" }, `Answer before ${content.deadlineText}.`));

  const summary = node("div", { class: "abf-summary", role: "alert" });
  const body = node("div", { class: "abf-body" });
  const made = new Map();
  let top = [];
  const raws = () => {
    const all = {};
    for (const [path, field] of made) { const raw = field.raw(); if (raw !== undefined) all[path] = raw; }
    return all;
  };
  const typing = typingPause(() => post({ kind: "edit", raw: raws() }));
  let count = 0;
  const host = {
    changed: (settled) => typing.later(settled ? 0 : TYPING_PAUSE_MS),
    flush: typing.now,
    post,
    send: (raw) => { typing.stop(); post({ kind: "edit", raw: { ...raws(), ...raw } }); },
    made: (spec) => {
      let field = made.get(spec.path);
      if (!field?.fits(spec)) {
        field = KINDS[spec.kind](spec, `${id}-f${count++}`, host);
        made.set(spec.path, field);
      }
      field.update(spec);
      return field;
    },
  };
  const nodes = (specs) => {
    const before = document.activeElement;
    top = specs.map(host.made);
    arrange(body, top.map((field) => field.box));
    const there = new Set();
    const seen = (field) => { there.add(field.path); field.children.forEach(seen); };
    top.forEach(seen);
    for (const path of [...made.keys()]) if (!there.has(path)) made.delete(path);
    if (before !== document.activeElement) (body.contains(before) ? before : root).focus({ preventScroll: true });
  };
  nodes(first.nodes);

  // The whole form as one JSON text.
  const whole = node("div", { class: "abf-field", hidden: true });
  const wholeText = node("textarea", { class: "abf-input abf-code", rows: 10, id: `${id}-json`, spellcheck: "false", "aria-describedby": `${id}-json-help ${id}-json-problem` });
  const wholeProblem = node("div", { class: "abf-problem", id: `${id}-json-problem` });
  whole.append(node("label", { class: "abf-label", for: `${id}-json` }, "The whole form as JSON"), wholeText,
    node("div", { class: "abf-help", id: `${id}-json-help` }, "Secrets and files are not in this text; they do not change."), wholeProblem);
  const typingWhole = typingPause(() => post({ kind: "json", text: wholeText.value }));
  wholeText.addEventListener("input", () => typingWhole.later());
  const swap = button("Edit as JSON", () => {
    if (whole.hidden) { typing.now(); post({ kind: "json", do: "open" }); wholeText.dataset.wanted = "1"; }
    else { typingWhole.now(); post({ kind: "json", do: "close" }); }
  }, { class: "abf-more", hidden: !content.json });
  const showWhole = (text) => {
    const on = typeof text === "string";
    whole.hidden = !on;
    body.classList.toggle("abf-away", on);
    swap.textContent = on ? "Back to the fields" : "Edit as JSON";
    if (on && !typingWhole.waits() && wholeText.value !== text) wholeText.value = text;
    if (on && wholeText.dataset.wanted) { delete wholeText.dataset.wanted; wholeText.focus(); }
    if (!on) wholeText.value = "";
  };

  const withdraw = button("Withdraw the question", () => { typing.now(); typingWhole.now(); lock(true); post({ kind: "withdraw" }); },
    { class: "abf-more", hidden: !content.withdraws });

  const buttons = node("div", { class: "abf-actions", role: "group", "aria-label": "Answer" });
  let left = null;
  const lock = (locked) => {
    const here = document.activeElement;
    if (locked && root.contains(here)) left = here;
    for (const el of [...buttons.children, swap, withdraw]) el.disabled = locked;
    body.inert = whole.inert = locked;
    if (!locked && left && document.activeElement === document.body) left.focus({ preventScroll: true });
    if (!locked) left = null;
  };
  const press = (action, pressed) => {
    if (action.reveals && made.get(action.reveals)?.reveal()) { pressed.hidden = true; made.get(action.reveals).focus(); return; }
    typing.stop();
    typingWhole.now();
    lock(true);
    post({ kind: "press", action: action.name, raw: raws() });
  };
  for (const action of content.actions) {
    const el = button("", () => press(action, el), { class: `abf-button abf-${action.tone}` });
    el.hidden = made.get(action.reveals)?.box.hidden === false;
    buttons.append(el);
  }
  const sender = content.actions.find((action) => action.name === "submit");
  root.addEventListener("keydown", (event) => {
    // Keys that type, edit or send must not reach the notebook; its shortcuts (save, find) must.
    const chord = (event.ctrlKey || event.metaKey) && !event.altKey;
    if (!chord || EDITING_CHORD.test(event.key)) event.stopPropagation();
    const here = event.target;
    const typed = here.tagName === "INPUT" && here.type !== "checkbox" && here.type !== "file";
    const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey || typed);
    if (sender && sends && !buttons.firstChild.disabled) { event.preventDefault(); press(sender); }
  });

  const change = button("Change", () => post({ kind: "reopen" }), { class: "abf-more", hidden: true });
  const status = node("div", { class: "abf-status", role: "status" });
  const foot = node("div", { class: "abf-foot" });
  foot.append(buttons, swap, withdraw);
  scroller.append(summary, body, whole);
  root.append(scroller, foot, status, change);

  const complain = (errors, count) => {
    summary.replaceChildren();
    for (const [path, field] of made) field.complain(errors[path]);
    wholeProblem.textContent = errors.json ? `⚠ ${errors.json}` : "";
    if (!count) return;
    summary.append(node("span", {}, `${count}: `));
    for (const [path, text] of Object.entries(errors)) {
      const field = made.get(path);
      const name = path === "json" ? "JSON" : field ? nameOf(field) || "The whole form" : text;
      summary.append(button(whole.hidden || path === "json" ? name : `${name}: ${text}`, () => focus(path), { class: "abf-link" }), " ");
    }
    if (!whole.hidden && !errors.json) wholeProblem.textContent = Object.values(errors).map((text) => `⚠ ${text}`).join(" ");
  };
  // `Address › Street`: the label of a field after those of its groups.
  const nameOf = (wanted) => {
    const names = (field) => {
      const own = field.box.classList.contains("abf-member") ? "" : field.spec.label;
      if (field === wanted) return [own];
      for (const child of field.children) {
        const below = names(child);
        if (below) return below[0]?.startsWith(own) ? below : [own, ...below];
      }
      return null;
    };
    for (const field of top) { const found = names(field); if (found) return found.filter(Boolean).join(" › "); }
    return wanted.spec.label;
  };
  const focus = (path) => {
    if (!whole.hidden) { wholeText.focus(); return; }
    const field = made.get(path) ?? top[0];
    for (const at of made.values()) if (at.fold && at.box.contains(field?.box)) at.fold(true);
    field?.focus();
  };

  const form = {
    root,
    // Text typed here is newer than the state that arrives.
    state: (latest, own) => {
      const known = new Set(made.values());
      nodes(latest.nodes);
      for (const [path, field] of made) if (!own || !known.has(field)) field.write(latest.raw[path] ?? {});
      latest.labels.forEach((label, at) => { buttons.children[at].textContent = label; });
      if (!own) showWhole(latest.text);
    },
    focus,
    // After the form is on the page, because they use the colours of the page.
    display: () => {
      for (const [name, media, data] of content.displays) {
        const what = displayOf(name || "Context", media, data, root);
        if (media === "text/html") what.style.height = `${Math.min(12, 2 + 1.6 * (data.match(/<(tr|br|p|li)\b/g) ?? []).length)}em`;
        if (name) shown.append(node("div", { class: "abf-label" }, name));
        shown.append(what);
      }
    },
    showWaiting: () => {
      if (!content.origin) return;
      const s = content.asked ? Math.max(0, Math.round(Date.now() / 1000 - content.asked)) : null;
      const text = s === null ? "" : s < 120 ? `, waiting ${s} s` : s < 7200 ? `, waiting ${Math.round(s / 60)} min` : `, waiting ${Math.round(s / 3600)} h`;
      origin.textContent = content.origin + (OVER.includes(root.dataset.state) ? "" : text);
    },
    status: (latest) => {
      root.dataset.state = latest.state;
      const bad = latest.state === "invalid" || (latest.errors.json && latest.live);
      complain(latest.errors, latest.state === "invalid" ? latest.note : "");
      status.textContent = latest.state === "invalid" ? "" : latest.note;
      const over = OVER.includes(latest.state);
      if (over) showWhole(null);
      body.hidden = foot.hidden = over;
      change.hidden = !(latest.state === "answered" && !content.waits);
      root.classList.toggle("abf-bad", Boolean(bad));
      lock(!latest.live);
      if (!over || !left) return;
      left = null;
      // The focused element is gone: continue from here, not from the top of the page.
      const at = document.activeElement;
      if (at === document.body || root.contains(at)) root.focus({ preventScroll: true });
    },
    full: async (name, text) => {
      const { el, more } = cutNote[name] ?? {};
      if (!el) return;
      try {
        await navigator.clipboard.writeText(text);
        more.textContent = "Copied";
      } catch {
        el.textContent = text; // no clipboard on this page: show all of it
        more.remove();
      }
    },
  };
  form.state(first);
  return form;
}

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const post = (message, buffers) => model.send({ ...message, view }, undefined, buffers);
  let form = null;
  let due = null;
  let tick = null;
  const waiting = node("div", { class: "abf-status" }, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);
  const begin = (message) => {
    form = makeForm(message, post, view);
    waiting.replaceWith(form.root);
    form.status(message.status);
    form.display();
    form.showWaiting();
    if (message.content.asked) tick = setInterval(form.showWaiting, 5000);
    const left = message.content.deadline ? message.content.deadline * 1000 - Date.now() : null;
    if (left !== null && left < 2 ** 31) due = setTimeout(() => post({ kind: "due" }), Math.max(0, left) + 50);
  };
  const on = {
    state: (message) => { form.state(message, message.from === view); on.status(message.status); },
    status: (message) => { form.status(message); form.showWaiting(); },
    focus: (message) => {
      const at = document.activeElement; // do not take the focus away from elsewhere
      if (message.view === view && (form.root.contains(at) || at.contains(form.root))) form.focus(message.path);
    },
    full: (message) => { if (message.view === view) form.full(message.part, message.text); },
  };
  const receive = (message) => {
    if (message.kind === "form" && message.view === view && !form) begin(message);
    else if (form && on[message.kind]) on[message.kind](message);
  };
  model.on("msg:custom", receive);
  post({ kind: "ready" });
  return () => { clearTimeout(due); clearInterval(tick); model.off("msg:custom", receive); };
}

export default { render };
