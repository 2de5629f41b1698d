// Beside the graph: facts of a node, values as a tree that opens level by level, differences, and edits of values.

// A field in place of a value. What is typed is told to Python at every pause, and comes back with the page.
function makeEditor(name, told, { draft, type, stage, drop }) {
  const id = `abs-${Math.random().toString(36).slice(2)}`;
  const area = node("textarea", { id, rows: 1, spellcheck: "false", "aria-describedby": `${id}-help ${id}-problem` });
  const problem = node("span", { class: "abs-problem", id: `${id}-problem`, role: "alert" });
  const keep = makeSmallButton("Save edit", { title: "Save this edit until Step, Run or Fork goes on from here (Ctrl+Enter)" });
  const leave = makeSmallButton("Cancel");
  const help = node("span", { class: "abs-kind", id: `${id}-help` }, told.help);
  const el = node("div", { class: "abs-field" },
    node("label", { for: id, "aria-label": `New value of ${name}` }, node("span", { class: "abs-key" }, name)), area,
    node("div", { class: "abs-field-row" }, keep, leave, help), problem);
  let timer = null;
  const grow = () => { area.style.height = "auto"; area.style.height = `${Math.min(area.scrollHeight + 2, 240)}px`; };
  const send = () => stage(area.value);
  area.value = draft ?? told.text;
  area.addEventListener("input", () => {
    grow();
    clearTimeout(timer);
    timer = setTimeout(() => type(area.value), 300);
  });
  area.addEventListener("blur", () => { clearTimeout(timer); type(area.value); });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); event.stopPropagation(); send(); }
    if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); leave.focus(); }
  });
  keep.addEventListener("click", send);
  leave.addEventListener("click", () => { clearTimeout(timer); drop(); });
  requestAnimationFrame(grow);
  return {
    el,
    area,
    flush: () => { clearTimeout(timer); type(area.value); },
    refuse: (words) => {
      problem.textContent = words;
      area.setAttribute("aria-invalid", "true");
      area.focus();
    },
  };
}

function makeTabs(say) {
  const el = node("div", { class: "abs-tabs", role: "tablist", "aria-label": "Details" });
  const made = new Map();
  let current = null;
  const choose = (name) => say({ kind: "tab", name });
  el.addEventListener("keydown", (event) => {
    const names = [...made.keys()];
    const at = names.indexOf(current);
    const to = { ArrowRight: (at + 1) % names.length, ArrowLeft: (at - 1 + names.length) % names.length, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    made.get(names[to]).focus();
    choose(names[to]);
  });
  return {
    el,
    update: (tabs, name) => {
      for (const [each, label] of tabs) {
        if (made.has(each)) continue;
        const tab = node("button", { type: "button", class: "abs-tab", role: "tab" }, label);
        tab.addEventListener("click", () => choose(each));
        made.set(each, tab);
        el.append(tab);
      }
      current = name;
      for (const [each, tab] of made) {
        tab.setAttribute("aria-selected", String(each === name));
        tab.tabIndex = each === name ? 0 : -1;
      }
    },
  };
}

// A text in pieces, those that differ marked: [marked, text].
function marked(pieces, tag) {
  return pieces.map(([differs, text]) => (differs ? node(tag, {}, text) : text));
}

function makeChange([sign, words, path, before, after, command], say) {
  const head = node("div", { class: "abs-row" }, node("span", { class: "abs-sign", title: words, "aria-label": words, role: "img" }, sign), node("span", { class: "abs-key" }, path));
  const li = node("li", { class: "abs-change", "data-sign": sign }, head);
  if (before.length) li.append(node("div", { class: "abs-before" }, ...marked(before, "del")));
  if (after.length) li.append(node("div", { class: "abs-after" }, ...marked(after, "ins")));
  if (command) {
    const drop = makeSmallButton("Discard", { "aria-label": `Discard the edit of ${path}` });
    drop.addEventListener("click", () => say({ kind: "discard", path: command }));
    head.append(drop);
  }
  return li;
}

function makeFacts(facts, breaks, say) {
  const list = node("dl", { class: "abs-facts" });
  for (const [label, text] of facts) list.append(node("div", {}, node("dt", {}, label), node("dd", {}, text)));
  if (!breaks) return [list];
  const checks = [["before", "break before"], ["after", "break after"]].map(([when, label]) => {
    const box = node("input", { type: "checkbox" });
    box.checked = breaks[when];
    box.disabled = !breaks.enabled;
    box.addEventListener("change", () => say({ kind: "break_node", when, on: box.checked }));
    return node("label", { class: "abs-check" }, box, label);
  });
  return [list, node("div", { class: "abs-checks" }, ...checks)];
}

function makeSide(say) {
  const root = node("section", { class: "abs abs-side", "aria-label": "Values" });
  const tabs = makeTabs(say);
  const page = node("div", { class: "abs-page", role: "tabpanel", tabindex: "0" });
  root.append(tabs.el, page);
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
      const fold = opens ? node("button", { type: "button", class: "abs-fold", "aria-expanded": "false", "aria-label": `Open ${name}` }, "▸") : node("span", { class: "abs-leaf" });
      row.append(fold, node("span", { class: "abs-key" }, name));
      if (note) row.append(node("span", { class: "abs-note", "data-note": note }, note));
      if (kind) row.append(node("span", { class: "abs-kind" }, kind));
      if (editable) {
        const change = node("button", { type: "button", class: "abs-link abs-edit", "aria-label": `Edit ${name}` }, "Edit");
        const begun = `${checkpoint}\u0000${known}`;
        change.addEventListener("click", () => edit(row, here, name, begun, true));
        row.append(change);
        if (editing.has(begun) || editable === 2) queueMicrotask(() => edit(row, here, name, begun, false));
      }
      row.append(node("span", { class: "abs-value" }, text));
      if (cut) {
        const more = node("button", { type: "button", class: "abs-link" }, "Copy full text");
        more.addEventListener("click", () => { lists.set(`full ${here}`, { more, row }); tell({ kind: "full", path: here }); });
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
          tell({ kind: "level", path: here, start: 0 });
        };
        fold.addEventListener("click", () => {
          if (!opened.has(known)) { opened.add(known); open(); return; }
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
      const more = node("button", { type: "button", class: "abs-link" }, `${level.more.toLocaleString("en")} more`);
      const li = node("li", {}, more);
      more.addEventListener("click", () => { li.remove(); tell({ kind: "level", path, start: level.start + level.rows.length }); });
      items.push(li);
    }
    return items;
  };

  // Where the focus is, in words that hold when the page is written anew.
  const focusNow = () => {
    const at = document.activeElement;
    if (!page.contains(at) || at === page) return null;
    const editor = [...editors.values()].find((each) => each.area === at);
    if (editor) return { known: editor.known, from: at.selectionStart, to: at.selectionEnd };
    const label = at.getAttribute("aria-label") ?? at.closest("label")?.textContent;
    return label ? { label } : null;
  };
  const refocus = () => {
    if (!back?.label) return;
    const same = [...page.querySelectorAll("button, input")].find((each) => (each.getAttribute("aria-label") ?? each.closest("label")?.textContent) === back.label);
    (same ?? page).focus({ preventScroll: true });
    back = null;
  };

  return {
    root,
    stop: () => {},
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
        figure.append(displayOf(caption, ...display, root));
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
