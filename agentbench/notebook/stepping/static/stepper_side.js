// Beside the graph: facts of a node, values as a tree that opens level by level, differences, and edits of values.

// A field in place of a value. Typed text is sent to Python at every pause, so that a reloaded page shows it again.
function makeEditor(name, data, { draft, type, stage, drop }) {
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
  const hint = { title: "Save this edit; Step, Run or Fork from here applies it (Ctrl+Enter)" };
  const leave = makeSmallButton("Cancel", () => { clearTimeout(timer); drop(); });
  const problem = node("span", { class: "abs-problem", id: `${id}-problem`, role: "alert" });
  const help = node("span", { class: "abs-kind", id: `${id}-help` }, data.help);
  const about = { for: id, "aria-label": `New value of ${name}` };
  const label = node("label", about, node("span", { class: "abs-key" }, name));
  const buttons = node("div", { class: "abs-field-row" }, makeSmallButton("Save edit", send, hint), leave, help);
  const el = node("div", { class: "abs-field" }, label, area, buttons, problem);
  area.value = draft ?? data.text;
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

function makeTabs(post) {
  const made = new Map();
  const choose = (name) => post({ kind: "tab", name });
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

// A text in pieces, [marked, text], with the differences marked.
function marked(pieces, tag) {
  return pieces.map(([differs, text]) => (differs ? node(tag, {}, text) : text));
}

function makeChange([sign, words, path, before, after, command], post) {
  const mark = node("span", { class: "abs-sign", title: words, "aria-label": words, role: "img" }, sign);
  const head = node("div", { class: "abs-row" }, mark, node("span", { class: "abs-key" }, path));
  const li = node("li", { class: "abs-change", "data-sign": sign }, head);
  if (before.length) li.append(node("div", { class: "abs-before" }, ...marked(before, "del")));
  if (after.length) li.append(node("div", { class: "abs-after" }, ...marked(after, "ins")));
  if (command) {
    const label = { "aria-label": `Discard the edit of ${path}` };
    head.append(makeSmallButton("Discard", () => post({ kind: "discard", path: command }), label));
  }
  return li;
}

function makeFacts(facts, breaks, post) {
  const list = node("dl", { class: "abs-facts" });
  for (const [label, text] of facts) list.append(node("div", {}, node("dt", {}, label), node("dd", {}, text)));
  if (!breaks) return [list];
  const checks = [["before", "break before"], ["after", "break after"]].map(([when, label]) => {
    const onchange = ({ target }) => post({ kind: "break_node", when, on: target.checked });
    const box = node("input", { type: "checkbox", checked: breaks[when], disabled: !breaks.enabled, onchange });
    return node("label", { class: "abs-check" }, box, label);
  });
  return [list, node("div", { class: "abs-checks" }, ...checks)];
}

function makeSide(post) {
  const tabs = makeTabs(post);
  const page = node("div", { class: "abs-page", role: "tabpanel", tabindex: "0" });
  const root = node("section", { class: "abs abs-side", "aria-label": "Values" }, tabs.el, page);
  const opened = new Set(); // opened levels, by the names on their path
  const editing = new Map(); // open editors, by checkpoint and path: the typed text, undefined if nothing was typed
  const editors = new Map(); // editors on the page now, by path
  let stamp = null;
  let checkpoint = null;
  let postStamped = post; // sends the stamp of the displayed content, even if a newer one has arrived
  let lists = new Map();
  let back = null; // position of the focus before the page was rebuilt

  const edit = (row, here, name, known, focus) => {
    editing.set(known, editing.get(known));
    lists.set(`draft ${here}`, { row, name, known, focus });
    postStamped({ kind: "draft", path: here });
  };
  const openEditor = (data, { row, name, known, focus }) => {
    const here = data.path;
    const postHere = postStamped; // an editor that was replaced still sends its last text
    if (!editing.has(known)) return; // staged in the meantime
    if (data.problem) {
      editing.delete(known);
      row.querySelector(".abs-problem")?.remove();
      row.append(node("span", { class: "abs-problem", role: "alert" }, data.problem));
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
      postHere({ kind: "typed", path: here, text: null });
      close();
    };
    const type = (text) => {
      if (!editing.has(known) || text === (editing.get(known) ?? data.draft ?? data.text)) return;
      editing.set(known, text);
      postHere({ kind: "typed", path: here, text, key: known });
    };
    const stage = (text) => { editing.set(known, text); postHere({ kind: "edit", path: here, text, key: known }); };
    const editor = makeEditor(name, data, { draft: editing.get(known) ?? data.draft, type, stage, drop });
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
        postStamped({ kind: "level", path: here, start: 0 });
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
          postStamped({ kind: "full", path: here });
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
      li.append(makeLink(`${level.more.toLocaleString("en")} more`, () => { li.remove(); postStamped(next); }));
      items.push(li);
    }
    return items;
  };

  const nameOf = (each) => each.getAttribute("aria-label") ?? each.closest("label")?.textContent;
  // The position of the focus, in a form that is valid after the page is rebuilt.
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
    side: (data) => {
      tabs.update(data.tabs, data.tab);
      page.setAttribute("aria-label", data.title);
      back = focusNow() ?? back;
      const at = page.scrollTop;
      for (const editor of editors.values()) editor.flush();
      ({ stamp, checkpoint } = data);
      postStamped = (message) => post({ ...message, stamp: data.stamp });
      lists = new Map();
      editors.clear();
      const list = node("ul", { class: "abs-rows" });
      lists.set("", { inner: list, names: [data.tab] });
      list.append(...rows(data.level, [], [data.tab]));
      const parts = [node("p", { class: "abs-title" }, data.title)];
      if (data.facts.length) parts.push(...makeFacts(data.facts, data.breaks, postStamped));
      for (const [title, changes] of data.changes) {
        if (title) parts.push(node("p", { class: "abs-title" }, title));
        parts.push(node("ul", { class: "abs-rows" }, ...changes.map((change) => makeChange(change, postStamped))));
      }
      let inserted = 0;
      data.displays.forEach(([above, caption, ...display]) => {
        const figure = node("figure", { class: "abs-output" }, node("figcaption", { class: "abs-title" }, caption));
        figure.append(displayOf(caption, ...display));
        if (above < 0) { parts.splice(1, 0, figure); return; } // above the facts
        const before = inserted++;
        list.insertBefore(node("li", {}, figure), list.children[above + before] ?? null);
      });
      page.replaceChildren(...parts, list);
      page.scrollTop = at;
      refocus();
    },
    level: (data) => {
      const place = data.stamp === stamp ? lists.get(String(data.path)) : null;
      if (place) place.inner.append(...rows(data.level, data.path, place.names));
    },
    draft: (data) => {
      const place = data.stamp === stamp ? lists.get(`draft ${data.path}`) : null;
      if (place && !editors.has(String(data.path))) openEditor(data, place);
    },
    edited: ({ key, problem }) => {
      const [place, editor] = [...editors].find(([, each]) => each.known === key) ?? [];
      if (problem) { editor?.refuse(problem); return; }
      editing.delete(key);
      if (!editor) return;
      editors.delete(place);
      editor.close();
    },
    full: async (data) => {
      const place = data.stamp === stamp ? lists.get(`full ${data.path}`) : null;
      if (!place) return;
      try {
        await navigator.clipboard.writeText(data.text);
        place.more.textContent = "Copied";
      } catch {
        place.row.querySelector(".abs-value").textContent = data.text; // no clipboard on this page: show all of it
        place.more.remove();
      }
    },
  };
}
