// A table whose first cells are buttons; rows that are shown again keep the focus. `pressed` says that they choose.
const STATUSES = ["finished", "failed", "waiting", "open", "cancelled"];

function rowTable(caption, onOpen, pressed = false) {
  const [head, body, title] = [node("tr"), node("tbody"), node("caption", {}, caption)];
  const table = node("table", {}, title, node("thead", {}, head), body);
  const el = node("div", { class: "abb-scroll", tabindex: "0", role: "region", "aria-label": caption, hidden: true }, table);
  let opened = null;
  const mark = () => {
    for (const row of body.children) {
      const chosen = row.toggleAttribute("data-opened", row.dataset.id === opened);
      if (pressed) row.querySelector("button").ariaPressed = String(chosen);
    }
  };
  const rowOf = ({ id, cells: [key, status, ...rest] }) => {
    const title = pressed ? key : `Open ${key}`;
    const open = node("button", { type: "button", class: "abb-open", title, onclick: () => onOpen(id) }, key);
    const facts = { "data-id": id, "data-status": STATUSES.includes(status) ? status : null };
    return node("tr", facts, node("td", {}, open), ...[status, ...rest].map((text) => node("td", {}, text)));
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

// What a person has opened: its facts, and what to do if there is no run to open.
function detailBox(post) {
  const el = node("div", { class: "abb-detail", role: "region", "aria-label": "The opened row", hidden: true });
  return {
    el,
    show({ id, title, fields = [], problem = "", again = false }) {
      el.hidden = !id;
      el.replaceChildren();
      if (!id) return;
      const close = node("button", { type: "button", class: "abb-small", onclick: () => post("close") }, "Close");
      const rerun = node("button", { type: "button", class: "abb-small", onclick: () => post("rerun", { id }) }, "Run it again");
      const facts = fields.flatMap(([name, text]) => [node("dt", {}, name), node("dd", { "data-name": name }, text)]);
      const note = node("p", { class: "abb-note", role: "status" }, problem);
      el.append(node("div", { class: "abb-bar" }, node("b", {}, title), ...(again ? [rerun] : []), close), note, node("dl", {}, ...facts));
    },
  };
}
