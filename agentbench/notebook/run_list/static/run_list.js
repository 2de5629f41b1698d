// A table of runs; each name is a button that opens the run below.
function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const post = (kind, id) => model.send({ kind, id, view });
  const count = node("span", { class: "abr-count", role: "status" });
  const refresh = node("button", { type: "button", class: "abr-small", onclick: () => post("refresh") }, "Refresh");
  const body = node("tbody");
  const head = node("tr");
  const table = node("table", {}, node("caption", { class: "abr-quiet" }, "Runs"), node("thead", {}, head), body);
  const shown = node("div", { class: "abr-shown", role: "region", "aria-label": "The opened run", hidden: true });
  const root = node("div", { class: "abr" }, node("div", { class: "abr-head" }, node("span", { class: "abr-title", role: "heading", "aria-level": "3" }, "Runs"), count, refresh),
    node("div", { class: "abr-scroll", tabindex: "0", role: "region", "aria-label": "Table of runs" }, table), shown);
  const waiting = node("div", {}, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);
  let opened = null;

  const mark = () => { for (const row of body.children) row.toggleAttribute("data-opened", row.dataset.id === opened); };
  const rowOf = ({ id, cells: [chain, ...rest], opens, asks }) => {
    const title = opens === "stepper" ? "Open in a stepper" : "Open for reading";
    const open = node("button", { type: "button", class: "abr-open", title, "aria-label": `${chain}, ${rest[0]}: ${title}`, onclick: () => post("open", id) }, chain);
    return node("tr", { "data-id": id, "data-asks": asks }, node("td", {}, open), ...rest.map((text) => node("td", {}, text)));
  };
  const on = {
    runs: (message) => {
      if (message.view !== undefined) waiting.replaceWith(root);
      if (!root.isConnected) return;
      const at = document.activeElement?.closest?.("tr")?.dataset.id;
      head.replaceChildren(...message.head.map((name) => node("th", { scope: "col" }, name)));
      body.replaceChildren(...message.rows.map(rowOf));
      const all = message.rows.length + message.hidden;
      count.textContent = `${all} ${all === 1 ? "run" : "runs"}${message.hidden ? `, the latest ${message.rows.length} shown` : ""}`;
      mark();
      if (at !== undefined) [...body.children].find((row) => row.dataset.id === at)?.querySelector("button").focus({ preventScroll: true });
    },
    view: (message) => {
      opened = message.problem ? null : message.id;
      mark();
      shown.replaceChildren();
      shown.hidden = !(message.html || message.problem);
      if (message.problem) shown.append(node("p", { class: "abr-problem", role: "alert" }, `Not opened: ${message.problem}`));
      if (message.html) {
        const frame = displayOf("Last checkpoint of the run", "text/html", message.html);
        shown.append(node("p", { class: "abr-note" }, "The last checkpoint of this run, read-only. To step the run, pass its workflow to runs()."), frame);
      }
    },
  };
  const receive = (message) => { if (message.view === undefined || message.view === view) on[message.kind]?.(message); };
  root.addEventListener("keydown", (event) => { if (!(event.ctrlKey || event.metaKey)) event.stopPropagation(); });
  model.on("msg:custom", receive);
  post("ready");
  return () => model.off("msg:custom", receive);
}

export default { render };
