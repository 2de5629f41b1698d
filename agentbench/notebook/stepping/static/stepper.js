// One part of a stepper's panel: `stepper_base`, `_top`, `_side` and `_log` precede this file in one module.
// All content arrives by message; no trait stores it.

const MAKERS = { top: makeTop, side: makeSide, log: makeLog };

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const post = (message) => model.send({ ...message, view });
  const part = MAKERS[model.get("part")](post, el, model.get("height"));
  el.classList.add("abs-host");
  const waiting = node("div", { class: "abs" }, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);
  const onMessage = (message) => {
    if (message.view && message.view !== view) return;
    if (message.kind === "focusRequest") {
      // The form is a separate widget and may not be displayed yet.
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
  // JupyterLab marks the widgets of a restarted kernel after it has reported the restart.
  const check = () => setTimeout(() => { if (el.closest(".jupyter-widgets-disconnected")) part.gone?.(); });
  model.on("msg:custom", onMessage);
  model.on("comm_live_update", check);
  post({ kind: "ready" });
  return () => { part.stop?.(); model.off("msg:custom", onMessage); model.off("comm_live_update", check); };
}

export default { render };
