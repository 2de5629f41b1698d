// The map of a batch: the graph, tables whose rows filter, and the rows of the batch.
function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const post = (kind, more = {}) => model.send({ kind, view, ...more });
  const [title, facts] = [node("span", { class: "abb-title", role: "heading", "aria-level": "3" }), node("span", { class: "abb-share" })];
  const picture = node("div", { class: "abb-graph" });
  const legend = node("p", { class: "abb-legend" }, "A line is as wide as the share of runs that took it. Select a node, a path or an error to see its rows.");
  const problem = node("p", { class: "abb-problem", role: "alert", hidden: true });
  const rows = rowTable("Rows", (id) => post("open", { id }));
  const detail = detailBox(post);
  const clear = node("button", { type: "button", class: "abb-small", hidden: true, onclick: () => post("filter") }, "Show all rows");
  const [left, right] = [node("div", {}, picture, legend), node("div", { class: "abb-filters" })];
  const grid = node("div", { class: "abb-grid" }, left, right);
  const root = node("div", { class: "abb abb-map" }, node("div", { class: "abb-head" }, title, facts, clear), grid, rows.el, problem, detail.el);
  const waiting = node("div", {}, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);

  const tables = {};
  let [elements, drawn] = [{}, null];
  // What the script of graphs needs of a model; selecting a node is a filter.
  const graphModel = (values) => {
    const listeners = {};
    return {
      get: (name) => values[name],
      set(name, value) {
        if (name !== "selected" || values.selected === value) return;
        values.selected = value;
        listeners["change:selected"]?.();
        const id = elements[value] ?? "";
        if (!drawn.isQuiet) post("filter", id ? { by: "node", id } : {});
      },
      save_changes() {},
      send() {},
      on: (name, listener) => { listeners[name] = listener; },
      off() {},
    };
  };
  const filterTable = ({ by, title: name, head, rows: entries, more }) => {
    const table = (tables[by] = rowTable(name, (id) => post("filter", { by, id }), true));
    table.show({ head, rows: entries, title: name });
    const rest = more ? [node("p", { class: "abb-more" }, `${more.toLocaleString("en")} more, less frequent.`)] : [];
    return [table.el, ...rest];
  };
  const on = {
    map: (message) => {
      if (drawn) return;
      waiting.replaceWith(root);
      [title.textContent, facts.textContent, elements] = [message.title, message.facts, message.nodes];
      right.append(...message.tables.flatMap(filterTable));
      drawn = graphModel({ ...message.graph, patch: {}, badges: {}, breakpoints: [], looks: {}, selected: "", height: 560, stamp: 0 });
      graph.render({ model: drawn, el: picture });
    },
    rows: (message) => {
      const { by, id, name, count } = message;
      const words = { path: "Rows on the path", node: "Rows that called", error: "Rows with" }[by];
      const part = message.rows.length < count ? `, the first ${message.rows.length} of ${count.toLocaleString("en")}` : "";
      rows.show({ ...message, title: `${words ? `${words} ${name}` : "All rows"}${part}` });
      clear.hidden = !by;
      for (const each of Object.keys(tables)) tables[each].open(each === by ? id : null);
      const element = Object.keys(elements).find((each) => by === "node" && elements[each] === id) ?? "";
      drawn.isQuiet = true;
      drawn.set("selected", element);
      drawn.isQuiet = false;
    },
    view: (message) => {
      detail.show(message);
      rows.open(message.id ?? null);
    },
    problem: ({ text }) => {
      problem.hidden = !text;
      problem.textContent = text;
    },
  };
  const receive = (message) => { if (message.view === undefined || message.view === view) on[message.kind]?.(message); };
  root.addEventListener("keydown", (event) => { if (!(event.ctrlKey || event.metaKey)) event.stopPropagation(); });
  model.on("msg:custom", receive);
  post("ready");
  return () => model.off("msg:custom", receive);
}

export default { render };
