// Beside the graph: facts of a node, values as a tree that opens level by level, differences, and edits of values.

// A field in place of a value. What is typed is told to Python at every pause, and comes back with the page.
function makeEditor(name, told, { draft, type, stage, drop }) {
  const id = `abs-${Math.random().toString(36).slice(2)}`;
  let timer;
  const later = () => { timer = setTimeout(flush, 300); };
  const flush = () => { clearTimeout(timer); type(area.value); };
  const send = () => stage(area.value);
  const grow = () => { area.style.height = "auto"; area.style.height = `${Math.min(area.scrollHeight + 2, 240)}px`; };
  const onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { take(event); send(); }
    if (event.key === "Escape") { take(event); leave.focus(); }
  };
  const oninput = () => { grow(); clearTimeout(timer); later(); };
  const area = node("textarea", {
    id, rows: 1, spellcheck: "false", "aria-describedby": `${id}-help ${id}-problem`, oninput, onblur: flush, onkeydown,
  });
  const hint = { title: "Save this edit until Step, Run or Fork goes on from here (Ctrl+Enter)" };
  const leave = makeSmallButton("Cancel", () => { clearTimeout(timer); drop(); });
  const problem = node("span", { class: "abs-problem", id: `${id}-problem`, role: "alert" });
  const help = node("span", { class: "abs-kind", id: `${id}-help` }, told.help);
  const about = { for: id, "aria-label": `New value of ${name}` };
  const label = node("label", about, node("span", { class: "abs-key" }, name));
  const buttons = node("div", { class: "abs-field-row" }, makeSmallButton("Save edit", send, hint), leave, help);
  const el = node("div", { class: "abs-field" }, label, area, buttons, problem);
  area.value = draft ?? told.text;
  requestAnimationFrame(grow);
  return {
    el,
    area,
    flush,
    refuse: (words) => {
      problem.textContent = words;
      area.setAttribute("aria-invalid", "true");
      area.focus();
    },
  };
}

function makeTabs(say) {
  const made = new Map();
  const choose = (name) => say({ kind: "tab", name });
  const onkeydown = (event) => {
    const next = itemAt(event.key, [...made.values()], event.target);
    if (!next || event.key.endsWith("Up") || event.key.endsWith("Down")) return;
    take(event);
    next.focus();
    next.click();
  };
  const el = node("div", { class: "abs-tabs", role: "tablist", "aria-label": "Details", onkeydown });
  return {
    el,
    update: (tabs, name) => {
      for (const [each, label] of tabs) {
        if (made.has(each)) continue;
        const tab = makeLink(label, () => choose(each), { class: "abs-tab", role: "tab" });
        made.set(each, tab);
        el.append(tab);
      }
      for (const [each, tab] of made) {
        tab.setAttribute("aria-selected", String(each === name));
        tab.tabIndex = each === name ? 0 : -1;
      }
    },
  };
}

function makeLink(text, onclick, attributes = {}) {
  return node("button", { type: "button", class: "abs-link", onclick, ...attributes }, text);
}

// A text in pieces, those that differ marked: [marked, text].
function marked(pieces, tag) {
  return pieces.map(([differs, text]) => (differs ? node(tag, {}, text) : text));
}

function makeChange([sign, words, path, before, after, command], say) {
  const mark = node("span", { class: "abs-sign", title: words, "aria-label": words, role: "img" }, sign);
  const head = node("div", { class: "abs-row" }, mark, node("span", { class: "abs-key" }, path));
  const li = node("li", { class: "abs-change", "data-sign": sign }, head);
  if (before.length) li.append(node("div", { class: "abs-before" }, ...marked(before, "del")));
  if (after.length) li.append(node("div", { class: "abs-after" }, ...marked(after, "ins")));
  if (command) {
    const label = { "aria-label": `Discard the edit of ${path}` };
    head.append(makeSmallButton("Discard", () => say({ kind: "discard", path: command }), label));
  }
  return li;
}

function makeFacts(facts, breaks, say) {
  const list = node("dl", { class: "abs-facts" });
  for (const [label, text] of facts) list.append(node("div", {}, node("dt", {}, label), node("dd", {}, text)));
  if (!breaks) return [list];
  const checks = [["before", "break before"], ["after", "break after"]].map(([when, label]) => {
    const onchange = ({ target }) => say({ kind: "break_node", when, on: target.checked });
    const box = node("input", { type: "checkbox", checked: breaks[when], disabled: !breaks.enabled, onchange });
    return node("label", { class: "abs-check" }, box, label);
  });
  return [list, node("div", { class: "abs-checks" }, ...checks)];
}

function makeSide(say) {
  const tabs = makeTabs(say);
  const page = node("div", { class: "abs-page", role: "tabpanel", tabindex: "0" });
  const root = node("section", { class: "abs abs-side", "aria-label": "Values" }, tabs.el, page);
  const opened = new Set(); // levels that a person has opened, by the names that lead there
  const editing = new Map(); // open editors, by checkpoint and those names: what is typed, undefined while nothing was
  const editors = new Map(); // those on the page now, by path
  let stamp = null;
  let checkpoint = null;
  let tell = say; // says which stamp the person had before them, even when the next one has come
  let lists = new Map();
  let back = null; // where the focus was when the page was written anew

  const edit = (row, here, name, known, focus) => {
    editing.set(known, editing.get(known));
    lists.set(`draft ${here}`, { row, name, known, focus });
    tell({ kind: "draft", path: here });
  };
  const openEditor = (told, { row, name, known, focus }) => {
    const here = told.path;
    const mine = tell; // an editor outlives its page by what is typed last
    if (!editing.has(known)) return; // staged meanwhile
    if (told.problem) {
      editing.delete(known);
      row.querySelector(".abs-problem")?.remove();
      row.append(node("span", { class: "abs-problem", role: "alert" }, told.problem));
      return;
    }
    const close = () => {
      const focused = editor.el.contains(document.activeElement);
      editor.el.remove();
      row.hidden = false;
      if (focused) row.querySelector(".abs-edit")?.focus();
    };
    const drop = () => {
      editing.delete(known);
      editors.delete(String(here));
      mine({ kind: "typed", path: here, text: null });
      close();
    };
    const type = (text) => {
      if (!editing.has(known) || text === (editing.get(known) ?? told.draft ?? told.text)) return;
      editing.set(known, text);
      mine({ kind: "typed", path: here, text, key: known });
    };
    const stage = (text) => { editing.set(known, text); mine({ kind: "edit", path: here, text, key: known }); };
    const editor = makeEditor(name, told, { draft: editing.get(known) ?? told.draft, type, stage, drop });
    editors.set(String(here), { ...editor, known, close });
    row.hidden = true;
    row.after(editor.el);
    if (focus || back?.known === known) {
      editor.area.focus({ preventScroll: !focus });
      if (back?.known === known) editor.area.setSelectionRange(back.from, back.to);
      back = null;
    }
  };

  const rows = (level, path, names) => {
    const items = level.rows.map(([name, kind, text, note, opens, cut, editable], i) => {
      const here = [...path, level.start + i];
      const known = [...names, name].join("\u0000");
      const li = node("li", {});
      const row = node("div", { class: "abs-row" });
      if (opens) row.classList.add("abs-more");
      if (text.length < 48 && !text.includes("\n")) row.classList.add("abs-short");
      const open = () => {
        const inner = node("ul", { class: "abs-rows" });
        li.append(inner);
        lists.set(String(here), { inner, names: [...names, name] });
        tell({ kind: "level", path: here, start: 0 });
        turn(true);
      };
      const turn = (on) => {
        row.classList.toggle("abs-opened", on);
        fold.textContent = on ? "▾" : "▸";
        fold.setAttribute("aria-expanded", String(on));
      };
      const toggle = () => {
        if (!opened.delete(known)) { opened.add(known); open(); return; }
        li.lastChild.remove();
        turn(false);
      };
      const fold = opens
        ? makeLink("", toggle, { class: "abs-fold", "aria-label": `Open ${name}` })
        : node("span", { class: "abs-leaf" });
      row.append(fold, node("span", { class: "abs-key" }, name));
      if (opens) turn(false);
      if (note) row.append(node("span", { class: "abs-note", "data-note": note }, note));
      if (kind) row.append(node("span", { class: "abs-kind" }, kind));
      if (editable) {
        const begun = `${checkpoint}\u0000${known}`;
        const onclick = () => edit(row, here, name, begun, true);
        row.append(makeLink("Edit", onclick, { class: "abs-link abs-edit", "aria-label": `Edit ${name}` }));
        if (editing.has(begun) || editable === 2) queueMicrotask(() => edit(row, here, name, begun, false));
      }
      row.append(node("span", { class: "abs-value" }, text));
      if (cut) {
        const copy = makeLink("Copy full text", () => {
          lists.set(`full ${here}`, { more: copy, row });
          tell({ kind: "full", path: here });
        });
        row.append(copy);
      }
      if (opened.has(known) && opens) queueMicrotask(open);
      li.append(row);
      return li;
    });
    if (level.more > 0) {
      const li = node("li");
      const next = { kind: "level", path, start: level.start + level.rows.length };
      li.append(makeLink(`${level.more.toLocaleString("en")} more`, () => { li.remove(); tell(next); }));
      items.push(li);
    }
    return items;
  };

  const nameOf = (each) => each.getAttribute("aria-label") ?? each.closest("label")?.textContent;
  // Where the focus is, in words that hold when the page is written anew.
  const focusNow = () => {
    const at = document.activeElement;
    if (!page.contains(at) || at === page) return null;
    const editor = [...editors.values()].find((each) => each.area === at);
    if (editor) return { known: editor.known, from: at.selectionStart, to: at.selectionEnd };
    return nameOf(at) ? { label: nameOf(at) } : null;
  };
  const refocus = () => {
    if (!back?.label) return;
    const same = [...page.querySelectorAll("button, input")].find((each) => nameOf(each) === back.label);
    (same ?? page).focus({ preventScroll: true });
    back = null;
  };

  return {
    root,
    side: (told) => {
      tabs.update(told.tabs, told.tab);
      page.setAttribute("aria-label", told.title);
      back = focusNow() ?? back;
      const at = page.scrollTop;
      for (const editor of editors.values()) editor.flush();
      ({ stamp, checkpoint } = told);
      tell = (message) => say({ ...message, stamp: told.stamp });
      lists = new Map();
      editors.clear();
      const list = node("ul", { class: "abs-rows" });
      lists.set("", { inner: list, names: [told.tab] });
      list.append(...rows(told.level, [], [told.tab]));
      const parts = [node("p", { class: "abs-title" }, told.title)];
      if (told.facts.length) parts.push(...makeFacts(told.facts, told.breaks, tell));
      for (const [title, changes] of told.changes) {
        if (title) parts.push(node("p", { class: "abs-title" }, title));
        parts.push(node("ul", { class: "abs-rows" }, ...changes.map((change) => makeChange(change, tell))));
      }
      told.displays.forEach(([above, caption, ...display], before) => {
        const figure = node("figure", { class: "abs-output" }, node("figcaption", { class: "abs-title" }, caption));
        figure.append(displayOf(caption, ...display));
        list.insertBefore(node("li", {}, figure), list.children[above + before] ?? null);
      });
      page.replaceChildren(...parts, list);
      page.scrollTop = at;
      refocus();
    },
    level: (told) => {
      const place = told.stamp === stamp ? lists.get(String(told.path)) : null;
      if (place) place.inner.append(...rows(told.level, told.path, place.names));
    },
    draft: (told) => {
      const place = told.stamp === stamp ? lists.get(`draft ${told.path}`) : null;
      if (place && !editors.has(String(told.path))) openEditor(told, place);
    },
    edited: ({ key, problem }) => {
      const [place, editor] = [...editors].find(([, each]) => each.known === key) ?? [];
      if (problem) { editor?.refuse(problem); return; }
      editing.delete(key);
      if (!editor) return;
      editors.delete(place);
      editor.close();
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
