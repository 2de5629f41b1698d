
// The script of a saved map: answers the page from the saved rows.
const saved = JSON.parse(document.getElementById("data").textContent);
let listener = () => {};
let chosen = {};

const FITS = {
  path: (row, id) => row.path === id,
  node: (row, id) => saved.visited[row.path].includes(id),
  error: (row, id) => row.error === id,
};

function showRows() {
  const { by, id } = chosen;
  const place = Number(id);
  const rows = by ? saved.rows.filter((row) => FITS[by](row, place)) : saved.rows;
  const { cells: [name] = [""], count = saved.count } = by ? saved.map.tables.find((table) => table.by === by).rows[place] : {};
  listener({ kind: "rows", by: by ?? "", id: id ?? "", name, count, head: saved.head, rows: rows.slice(0, 500) });
}

const HANDLERS = {
  ready: () => {
    listener({ kind: "map", ...saved.map });
    showRows();
  },
  filter: ({ by, id }) => {
    chosen = by === chosen.by && id === chosen.id ? {} : { by, id };
    showRows();
  },
  open: ({ id }) => {
    const row = saved.rows.find((each) => each.id === id);
    listener({ kind: "view", id, ...row.details });
  },
  close: () => listener({ kind: "view" }),
};

render({
  model: { get: () => "Map", on: (_, fn) => { listener = fn; }, off() {}, send: (message) => HANDLERS[message.kind]?.(message) },
  el: document.getElementById("map"),
});
