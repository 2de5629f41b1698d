// A form on the page. Texts are written with textContent; what is typed leaves by message and is kept in no trait.
const TYPING_PAUSE_MS = 300;

function node(tag, attributes = {}, text) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) el.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) el.setAttribute(name, value);
  }
  if (text !== undefined) el.textContent = text;
  return el;
}

// One field: `raw()` is what is typed (nothing while untouched), `write(raw)` puts it there.
function makeField(spec, id, heard) {
  const box = node("div", { class: "abf-field", hidden: spec.hiddenAtFirst });
  const group = spec.control === "radio" || spec.control === "toggle";
  const help = node("div", { class: "abf-help", id: `${id}-help` }, spec.help);
  const problem = node("div", { class: "abf-problem", id: `${id}-problem` });
  const described = { "aria-describedby": `${id}-help ${id}-problem` };
  let touched = false;
  let main;
  let read;
  let put;
  const typed = (settled) => {
    touched = true;
    heard(settled);
  };

  const wrap = group ? node("div", { role: "radiogroup", "aria-labelledby": `${id}-label`, ...described }) : null;
  const label = node(group ? "div" : "label", { class: "abf-label", id: `${id}-label`, for: group ? null : id }, spec.label);
  box.append(label);

  if (group) {
    wrap.className = spec.control === "toggle" ? "abf-toggles" : "abf-radios";
    const options = spec.options.map((text, at) => {
      const line = node("label", { class: "abf-option" });
      const input = node("input", { type: "radio", name: id, value: at });
      line.append(input, node("span", {}, text));
      input.addEventListener("change", () => typed(true));
      wrap.append(line);
      return input;
    });
    let other = null;
    let otherText = null;
    if (spec.other) {
      const line = node("div", { class: "abf-option" });
      other = node("input", { type: "radio", name: id, id: `${id}-other` });
      otherText = node("input", { type: "text", class: "abf-input", "aria-label": `${spec.label}: another text` });
      line.append(other, node("label", { for: `${id}-other` }, "Other:"), otherText);
      other.addEventListener("change", () => { otherText.focus(); typed(true); });
      otherText.addEventListener("input", () => { other.checked = true; typed(false); });
      wrap.append(line);
    }
    main = options[0] ?? other;
    read = () => {
      const at = options.findIndex((input) => input.checked);
      if (at >= 0) return { option: at };
      return other?.checked ? { text: otherText.value } : { text: "" };
    };
    put = (raw) => {
      options.forEach((input, at) => { input.checked = raw.option === at; });
      if (other && raw.text) { other.checked = true; otherText.value = raw.text; }
    };
    box.append(wrap);
  } else if (spec.control === "select") {
    main = node("select", { id, class: "abf-input", ...described });
    main.append(node("option", { value: "" }, "Choose…"));
    spec.options.forEach((text, at) => main.append(node("option", { value: at }, text)));
    main.addEventListener("change", () => typed(true));
    read = () => (main.value === "" ? { text: "" } : { option: Number(main.value) });
    put = (raw) => { main.value = raw.option === undefined ? "" : String(raw.option); };
    box.append(main);
  } else {
    const tall = spec.control === "area" || spec.control === "json";
    const type = spec.control === "password" ? "password" : "text";
    main = node(tall ? "textarea" : "input", {
      id, class: "abf-input", type: tall ? null : type, rows: tall ? 4 : null, inputmode: spec.inputmode,
      autocomplete: type === "password" ? "new-password" : "off", ...described,
    });
    if (spec.control === "json") main.classList.add("abf-code");
    if (spec.control === "combo") {
      const list = node("datalist", { id: `${id}-list` });
      spec.options.forEach((text) => list.append(node("option", { value: text })));
      main.setAttribute("list", list.id);
      box.append(list);
    }
    main.addEventListener("input", () => typed(false));
    read = () => {
      const at = spec.control === "combo" ? spec.options.indexOf(main.value) : -1;
      return at >= 0 ? { option: at } : { text: main.value };
    };
    put = (raw) => { main.value = raw.option === undefined ? raw.text ?? "" : spec.options[raw.option]; };
    box.append(main);
  }

  let none = null;
  if (spec.nullable) {
    const line = node("label", { class: "abf-option abf-none" });
    none = node("input", { type: "checkbox" });
    line.append(none, node("span", {}, "none"));
    none.addEventListener("change", () => { mute(); typed(true); });
    box.append(line);
  }
  const mute = () => {
    for (const el of box.querySelectorAll(".abf-input, [type=radio]")) el.disabled = Boolean(none?.checked);
  };
  const count = spec.counts ? node("div", { class: "abf-count" }) : null;
  const counted = () => {
    if (count) count.textContent = `${[...main.value].length}${spec.maxLength ? ` of ${spec.maxLength}` : ""} characters`;
  };
  box.addEventListener("input", counted);
  counted();
  box.append(...[count, help, problem].filter(Boolean));

  return {
    box, spec,
    focus: () => (none?.checked ? none : main).focus(),
    raw: () => (touched ? (none?.checked ? { none: true } : read()) : undefined),
    write: (raw) => {
      touched = true;
      if (none) none.checked = raw.none === true;
      put(raw);
      mute();
      counted();
    },
    clear: () => { touched = false; if (none) none.checked = false; put({ text: "" }); mute(); counted(); },
    reveal: () => {
      if (!box.hidden) return false;
      box.hidden = false;
      if (!touched && spec.suggestion) { put({ text: spec.suggestion }); touched = true; counted(); }
      return true;
    },
    complain: (text) => {
      problem.textContent = text ? `⚠ ${text}` : "";
      const marked = wrap ?? main;
      if (text) marked.setAttribute("aria-invalid", "true");
      else marked.removeAttribute("aria-invalid");
    },
  };
}

function makeForm(content, say, view) {
  const id = `abf-${view}`;
  const root = node("section", { class: "abf", "aria-labelledby": `${id}-title` });
  const cutNote = {};
  const part = (name, el) => {
    if (!content[name]) return [];
    el.textContent = content[name];
    if (!content.cut.includes(name)) return [el];
    const more = node("button", { type: "button", class: "abf-more" }, "Copy full text");
    more.addEventListener("click", () => say({ kind: "full", part: name }));
    cutNote[name] = { el, more };
    return [el, more];
  };
  root.append(node("div", { class: content.waits ? "abf-title abf-waits" : "abf-title", id: `${id}-title`, role: "heading", "aria-level": "3" }, content.title));
  root.append(...part("prompt", node("p", { class: "abf-prompt" })), ...part("context", node("pre", { class: "abf-context", tabindex: "0", "aria-label": "Context" })));
  if (content.deadlineText) root.append(node("p", { class: "abf-help" }, `Answer before ${content.deadlineText}.`));

  const summary = node("div", { class: "abf-summary", role: "alert" });
  const body = node("div", { class: "abf-body" });
  let timer = null;
  const fields = new Map();
  const raws = () => {
    const all = {};
    for (const [path, field] of fields) { const raw = field.raw(); if (raw !== undefined) all[path] = raw; }
    return all;
  };
  content.fields.forEach((spec, at) => {
    const heard = (settled) => {
      clearTimeout(timer);
      timer = setTimeout(() => say({ kind: "edit", raw: raws() }), settled ? 0 : TYPING_PAUSE_MS);
    };
    const field = makeField(spec, `${id}-f${at}`, heard);
    fields.set(spec.path, field);
    body.append(field.box);
  });

  const buttons = node("div", { class: "abf-actions", role: "group", "aria-label": "Answer" });
  const lock = (locked) => {
    for (const el of buttons.children) el.disabled = locked;
  };
  const press = (action) => {
    if (action.reveals && fields.get(action.reveals)?.reveal()) { fields.get(action.reveals).focus(); return; }
    clearTimeout(timer);
    lock(true);
    say({ kind: "press", action: action.name, raw: raws() });
  };
  for (const action of content.actions) {
    const button = node("button", { type: "button", class: `abf-button abf-${action.tone}` }, action.label);
    button.addEventListener("click", () => press(action));
    buttons.append(button);
  }
  const sender = content.actions.find((action) => action.name === "submit");
  body.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the notebook has keys of its own
    const here = event.target;
    const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey || (here.tagName === "INPUT" && here.type !== "checkbox"));
    if (sender && sends && !buttons.firstChild.disabled) { event.preventDefault(); press(sender); }
  });

  const change = node("button", { type: "button", class: "abf-more", hidden: true }, "Change");
  change.addEventListener("click", () => say({ kind: "reopen" }));
  const status = node("div", { class: "abf-status", role: "status" });
  root.append(summary, body, buttons, status, change);

  const complain = (errors, count) => {
    summary.replaceChildren();
    for (const [path, field] of fields) field.complain(errors[path]);
    if (!count) return;
    summary.append(node("span", {}, `${count}: `));
    for (const [path, text] of Object.entries(errors)) {
      const field = fields.get(path);
      const link = node("button", { type: "button", class: "abf-link" }, field ? field.spec.label : text);
      link.addEventListener("click", () => field?.focus());
      summary.append(link, " ");
    }
  };

  return {
    root,
    drafts: (drafts) => { for (const [path, raw] of Object.entries(drafts)) fields.get(path)?.write(raw); },
    focus: (path) => (fields.get(path) ?? fields.values().next().value)?.focus(),
    status: (told) => {
      root.dataset.state = told.state;
      complain(told.errors, told.state === "invalid" ? told.note : "");
      status.textContent = told.state === "invalid" ? "" : told.note;
      const over = told.state === "answered" || told.state === "expired";
      if (over) for (const field of fields.values()) field.clear();
      body.hidden = buttons.hidden = over;
      change.hidden = !(told.state === "answered" && content.repeats);
      lock(!told.live);
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
}

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const say = (message) => model.send({ ...message, view });
  let form = null;
  let due = null;
  const waiting = node("div", { class: "abf-status" }, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);
  const hear = (message) => {
    if (message.kind === "form" && message.view === view && !form) {
      form = makeForm(message.content, say, view);
      waiting.replaceWith(form.root);
      form.drafts(message.drafts);
      form.status(message.status);
      const left = message.content.deadline ? message.content.deadline * 1000 - Date.now() : null;
      if (left !== null && left < 2 ** 31) due = setTimeout(() => say({ kind: "due" }), Math.max(0, left) + 50);
    }
    if (!form) return;
    if (message.kind === "drafts" && message.from !== view) form.drafts(message.drafts);
    if (message.kind === "status") form.status(message);
    if (message.kind === "focus" && message.view === view) {
      const at = document.activeElement; // who has gone on stays there
      if (form.root.contains(at) || at.contains(form.root)) form.focus(message.path);
    }
    if (message.kind === "full" && message.view === view) form.full(message.part, message.text);
  };
  model.on("msg:custom", hear);
  say({ kind: "ready" });
  return () => { clearTimeout(due); model.off("msg:custom", hear); };
}

export default { render };
