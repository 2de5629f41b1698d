// Controls for a single value. A control has `els`, `read()`, `put(raw)`, `focus()`, and `main`, its labelled element.
const PICKERS = { date: "date", datetime: "datetime-local", time: "time" };

function chooseControl(spec, id, changed, described) {
  const group = choices(id, spec.options, spec.control === "toggle" ? "abf-toggles" : "abf-radios", () => changed(true), described);
  if (!spec.other) return group;
  const line = node("div", { class: "abf-option" });
  const input = node("input", { type: "radio", name: `${id}-choice`, id: `${id}-other` });
  const text = node("input", { type: "text", class: "abf-input", "aria-label": `${spec.label}: another text` });
  line.append(input, node("label", { for: `${id}-other` }, "Other:"), text);
  input.addEventListener("change", () => { text.focus(); changed(true); });
  text.addEventListener("input", () => { input.checked = true; changed(false); });
  group.main.append(line);
  return {
    ...group,
    read: () => (input.checked ? { text: text.value } : group.read()),
    put: (raw) => { group.put(raw); input.checked = Boolean(raw.text); text.value = raw.text ?? ""; },
    focus: () => (spec.options.length ? group : input).focus(),
  };
}

function checkControl(spec, id, changed, described) {
  const line = node("label", { class: "abf-option" });
  const input = node("input", { type: "checkbox", id, ...described });
  line.append(input, node("span", {}, spec.label));
  input.addEventListener("change", () => changed(true));
  return {
    els: [line],
    main: input,
    labelled: true,
    read: () => ({ option: input.checked ? 0 : 1 }),
    put: (raw) => { input.checked = raw.option === 0; },
    focus: () => input.focus(),
  };
}

function selectControl(spec, id, changed, described) {
  return dropdown(id, spec.options, () => changed(true), described);
}

function textControl(spec, id, changed, described) {
  const tall = spec.control === "area" || spec.control === "json";
  const secret = spec.control === "password";
  const main = node(tall ? "textarea" : "input", {
    id, class: "abf-input", type: tall ? null : secret ? "password" : "text", rows: tall ? 4 : null,
    inputmode: spec.inputmode, autocomplete: secret ? "new-password" : "off", spellcheck: spec.control === "json" ? "false" : null, ...described,
  });
  if (spec.control === "json") main.classList.add("abf-code");
  const els = [main];
  if (spec.control === "combo") {
    const list = node("datalist", { id: `${id}-list` });
    spec.options.forEach((text) => list.append(node("option", { value: text })));
    main.setAttribute("list", list.id);
    main.placeholder = `Type to search ${spec.options.length} options`;
    els.push(list);
  }
  let windows = false; // browsers normalise line ends
  main.addEventListener("input", () => changed(false));
  return {
    els,
    main,
    read: () => {
      const at = spec.control === "combo" ? spec.options.indexOf(main.value) : -1;
      return at >= 0 ? { option: at } : { text: windows ? main.value.replace(/\n/g, "\r\n") : main.value };
    },
    put: (raw) => {
      const text = raw.option === undefined ? raw.text ?? "" : spec.options[raw.option];
      windows = /\r\n/.test(text) && !/[^\r]\n/.test(text);
      if (main.value !== text) main.value = text;
    },
    focus: () => main.focus(),
    keeps: () => { if (spec.control !== "combo") main.placeholder = spec.kept ? "unchanged; type to replace it" : ""; },
    length: () => [...main.value].length,
  };
}

function timeControl(spec, id, changed, described) {
  const text = textControl(spec, id, changed, described);
  const picker = node("input", { type: PICKERS[spec.control], class: "abf-picker", tabindex: "-1", "aria-hidden": "true", step: spec.control === "date" ? null : "1" });
  const open = () => {
    const typed = /^(\d{4}-\d\d-\d\d)?[T ]?(\d\d:\d\d(:\d\d)?)?/.exec(text.main.value)?.[0] ?? "";
    picker.value = typed.replace(" ", "T");
    try { picker.showPicker(); } catch { text.main.focus(); }
  };
  picker.addEventListener("change", () => {
    if (!picker.value) return;
    text.main.value = picker.value.replace("T", " ") + (spec.zone === "aware" ? "Z" : "");
    changed(true);
  });
  const pick = button("Pick…", open, { class: "abf-button abf-small", "aria-label": `Pick: ${spec.label}` });
  const line = node("div", { class: "abf-line" });
  line.append(...text.els, pick, picker);
  return { ...text, els: [line] };
}

function fileControl(spec, id, changed, described) {
  const main = node("input", { type: "file", id, class: "abf-file", ...described });
  const said = node("div", { class: "abf-help abf-said", role: "status" });
  main.addEventListener("change", async () => {
    const [file] = main.files;
    if (!file) return;
    if (file.size > spec.limit) {
      said.textContent = `${file.name} has ${sizeText(file.size)}; at most ${sizeText(spec.limit)} are accepted.`;
      main.value = "";
      return;
    }
    changed.file(await file.arrayBuffer());
    said.textContent = `${file.name}, ${sizeText(file.size)}`;
  });
  return {
    els: [main, said],
    main,
    read: () => undefined,
    put: (raw) => {
      if (raw.size === undefined) { main.value = ""; said.textContent = spec.kept ? "A file is set; choose another to replace it." : ""; }
      else if (!main.files.length) said.textContent = raw.size ? `A file of ${sizeText(raw.size)}` : "";
    },
    focus: () => main.focus(),
  };
}

function constControl(spec) {
  const main = node("span", {}, spec.options[0]);
  return { els: [main], main, read: () => ({ none: false }), put: () => {}, focus: () => {} };
}

const CONTROLS = {
  radio: chooseControl, toggle: chooseControl, check: checkControl, select: selectControl, file: fileControl,
  date: timeControl, datetime: timeControl, time: timeControl, const: constControl,
};

// One field: `raw()` returns typed text that was not sent yet, `write(raw)` sets the text from elsewhere.
function makeLeaf(spec, id, host) {
  const box = node("div", { class: spec.control === "const" ? "abf-field abf-const" : "abf-field", hidden: spec.hiddenAtFirst });
  const help = node("div", { class: "abf-help", id: `${id}-help` });
  const problem = node("div", { class: "abf-problem", id: `${id}-problem` });
  let pending = false;
  const changed = (settled) => { pending = true; host.changed(settled); };
  changed.file = (content) => host.post({ kind: "file", path: spec.path }, [content]);
  const group = ["radio", "toggle", "const"].includes(spec.control);
  const control = (CONTROLS[spec.control] ?? textControl)(spec, id, changed, { "aria-describedby": `${id}-help ${id}-problem` });
  const label = node(group ? "div" : "label", { class: "abf-label", id: `${id}-label`, for: group ? null : id });
  const none = noneBox(spec, () => { mute(); changed(true); });
  const mute = () => {
    for (const el of box.querySelectorAll(".abf-input, .abf-button, .abf-file, [type=radio]")) el.disabled = Boolean(none?.input.checked);
  };
  const count = spec.counts ? node("div", { class: "abf-count" }) : null;
  const counted = () => {
    if (count) count.textContent = `${control.length()}${spec.maxLength ? ` of ${spec.maxLength}` : ""} characters`;
  };
  box.addEventListener("input", counted);
  box.append(...[control.labelled ? null : label, ...control.els, none?.el, count, help, problem].filter(Boolean));
  const describe = (latest) => {
    label.textContent = labelText(latest);
    help.textContent = latest.help;
  };
  describe(spec);
  control.put({});
  counted();
  if (none?.input.checked) mute();
  return {
    box, path: spec.path, spec, children: [],
    fits: (latest) => latest.kind === spec.kind && latest.control === spec.control && latest.options.length === spec.options.length
      && Boolean(latest.none) === Boolean(spec.none),
    update: (latest) => { Object.assign(spec, latest); describe(latest); control.keeps?.(); },
    focus: () => (none?.input.checked ? none.input : control).focus(),
    raw: () => {
      if (!pending) return undefined;
      pending = false;
      return none?.input.checked ? { none: true } : control.read();
    },
    text: () => control.read()?.text ?? "",
    write: (raw) => {
      if (pending) return; // the text being typed is newer
      if (none) none.input.checked = raw.none === true;
      if (!raw.none) control.put(raw);
      mute();
      counted();
    },
    reveal: () => {
      if (!box.hidden) return false;
      box.hidden = false;
      if (spec.suggestion && !control.read().text) { control.put({ text: spec.suggestion }); counted(); }
      return true;
    },
    complain: (text) => {
      problem.textContent = text ? `⚠ ${text}` : "";
      if (text) control.main.setAttribute("aria-invalid", "true");
      else control.main.removeAttribute("aria-invalid");
    },
  };
}
