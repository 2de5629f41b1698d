// A table whose first cells are buttons; rows that are shown again keep the focus.
function rowTable(caption, onOpen) {
  const [head, body, title] = [node("tr"), node("tbody"), node("caption", {}, caption)];
  const table = node("table", {}, title, node("thead", {}, head), body);
  const el = node("div", { class: "abb-scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
  let opened = null;
  const mark = () => { for (const row of body.children) row.toggleAttribute("data-opened", row.dataset.id === opened); };
  const rowOf = ({ id, cells: [key, status, ...rest] }) => {
    const open = node("button", { type: "button", class: "abb-open", title: `Open ${key}`, onclick: () => onOpen(id) }, key);
    return node("tr", { "data-id": id, "data-status": status }, node("td", {}, open), ...[status, ...rest].map((text) => node("td", {}, text)));
  };
  return {
    el,
    show({ head: names, rows, title: text }) {
      const at = el.contains(document.activeElement) && document.activeElement.closest("tr")?.dataset.id;
      title.textContent = text;
      head.replaceChildren(...names.map((name) => node("th", { scope: "col" }, name)));
      body.replaceChildren(...rows.map(rowOf));
      el.hidden = !rows.length;
      mark();
      if (at) [...body.children].find((row) => row.dataset.id === at)?.querySelector("button").focus({ preventScroll: true });
    },
    open(id) {
      opened = id;
      mark();
    },
  };
}

// What a person has opened: a card in a frame without scripts, and what to do if there is no run to open.
function detailBox(post) {
  const el = node("div", { class: "abb-detail", role: "region", "aria-label": "The opened row", hidden: true });
  return {
    el,
    show({ id, html, problem, again }) {
      el.hidden = !id;
      el.replaceChildren();
      if (!id) return;
      const close = node("button", { type: "button", class: "abb-small", onclick: () => post("close") }, "Close");
      const rerun = node("button", { type: "button", class: "abb-small", onclick: () => post("rerun", { id }) }, "Run it again");
      el.append(node("div", { class: "abb-bar" }, node("span", { class: "abb-note", role: "status" }, problem), ...(again ? [rerun] : []), close));
      if (html) el.append(displayOf("The opened row", "text/html", html));
    },
  };
}
