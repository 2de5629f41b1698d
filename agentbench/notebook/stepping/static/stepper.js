// One part of a stepper's panel: `stepper_base`, `_top`, `_side` and `_log` come before this in one module.
// All content comes by message and stays in no trait.

const MAKERS = { top: makeTop, side: makeSide, log: makeLog };

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const say = (message) => model.send({ ...message, view });
  const part = MAKERS[model.get("part")](say, el, model.get("height"));
  el.classList.add("abs-host");
  const waiting = node("div", { class: "abs" }, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);
  const hear = (message) => {
    if (message.view && message.view !== view) return;
    if (message.kind === "focusRequest") {
      // The form is a widget of its own and may still be on its way.
      let tries = 20;
      const look = () => { if (!part.focusRequest?.() && tries-- > 0) setTimeout(look, 50); };
      look();
      return;
    }
    const handle = part[message.kind];
    if (!handle) return;
    if (waiting.isConnected) waiting.replaceWith(part.root);
    handle(message);
  };
  // JupyterLab marks the widgets of a kernel that was restarted, after it has said so.
  const check = () => setTimeout(() => { if (el.closest(".jupyter-widgets-disconnected")) part.gone?.(); });
  model.on("msg:custom", hear);
  model.on("comm_live_update", check);
  say({ kind: "ready" });
  return () => { part.stop?.(); model.off("msg:custom", hear); model.off("comm_live_update", check); };
}

export default { render };
