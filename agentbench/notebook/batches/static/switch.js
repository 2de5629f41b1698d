// A check box below a form: whether it answers all rows that ask the same.
function render({ model, el }) {
  const box = node("input", { type: "checkbox", onchange: () => model.send({ kind: "set", on: box.checked }) });
  const text = node("span");
  const root = node("label", { class: "abb-switch", hidden: true }, box, text);
  el.append(root);
  const receive = ({ kind, on, count }) => {
    if (kind !== "switch") return;
    root.hidden = count < 2;
    box.checked = on;
    text.textContent = `Answer these ${count.toLocaleString("en")} together`;
  };
  model.on("msg:custom", receive);
  model.send({ kind: "ready" });
  return () => model.off("msg:custom", receive);
}

export default { render };
