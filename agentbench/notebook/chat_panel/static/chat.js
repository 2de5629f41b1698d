// A conversation and a text box. All texts become text nodes.
function partOf(part) {
  if (part.picture) return node("figure", {}, node("img", { src: part.picture, alt: part.text }), node("figcaption", { class: "ab_muted" }, part.text));
  if (part.kind === "text") return node("div", { class: "abc-text" }, part.text);
  if (part.kind === "thinking") return node("details", { class: "ab_thought" }, node("summary", {}, "thinking"), node("div", { class: "abc-text" }, part.text));
  const look = { call: "ab_call", ask: "ab_ask", answer: "ab_ask ab_answer", note: "ab_note" }[part.kind] + (part.failed ? " ab_bad" : "");
  const outcome = part.sign ? node("span", { class: "ab_outcome" }, ` ${part.sign} `, node("span", {}, part.outcome)) : node("span", { class: "ab_muted" }, " not run yet");
  const line = part.kind === "call" ? [node("code", {}, part.text), outcome] : [...(part.sign ? [node("span", { class: "ab_sign" }, part.sign)] : []), node("span", {}, part.text)];
  if (!part.folded.length) return node("div", { class: look }, ...line);
  const blocks = part.folded.map(([label, text]) => node("div", {}, node("span", { class: "ab_muted" }, label), node("pre", { tabindex: "0", "aria-label": label }, text)));
  return node("details", { class: look }, node("summary", {}, ...line), ...blocks);
}

function rowOf(row, fork) {
  const known = ["user", "assistant", "system", "tool"].includes(row.role) ? row.role : "other";
  const parts = row.parts.length ? row.parts.map(partOf) : [node("div", { class: "ab_muted" }, "(nothing)")];
  const what = node("div", { class: "ab_what" }, ...parts);
  if (row.fork !== null) {
    const title = `Continue from the end of turn ${row.fork + 1} in a second panel`;
    what.append(node("button", { type: "button", class: "abc-small", title, "aria-label": `Fork turn ${row.fork + 1}`, onclick: () => fork(row.fork) }, "Fork"));
  }
  return node("div", { class: `ab_turn ab_from_${known}` }, node("div", { class: "ab_who", title: row.role }, row.who), what);
}

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const post = (kind, value) => model.send({ kind, value, view });
  const title = node("span", { class: "abc-title", role: "heading", "aria-level": "3" });
  const status = node("span", { class: "abc-status", role: "status" });
  const stop = node("button", { type: "button", class: "abc-small", hidden: true, onclick: () => post("stop") }, "Stop");
  const close = node("button", { type: "button", class: "abc-small", hidden: true, onclick: () => post("close") }, "Close");
  const rows = node("div", { class: "ab_talk" });
  const empty = node("p", { class: "abc-empty" }, "No messages yet.");
  const log = node("div", { class: "abc-log", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Conversation" }, empty, rows);
  const box = node("textarea", { class: "abc-box", rows: "2", placeholder: "Enter sends, Shift+Enter starts a new line" });
  const send = node("button", { type: "submit", class: "abc-send" }, "Send");
  const form = node("form", { class: "abc-form", hidden: true }, box, send);
  const root = node("div", { class: "abc", role: "group" }, node("div", { class: "abc-head" }, title, status, stop, close), log, form);
  const waiting = node("div", {}, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);

  let busy = false;
  const submit = () => {
    if (busy || !box.value.trim()) return;
    post("send", box.value);
    box.value = "";
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  root.addEventListener("keydown", (event) => {
    // Typed keys must not reach the notebook; its shortcuts (save, find) must.
    if (!(event.ctrlKey || event.metaKey) || /^(Enter|[aczvxy])$/i.test(event.key)) event.stopPropagation();
    if (event.key !== "Enter" || event.target !== box || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  });

  const receive = (chat) => {
    if (chat.kind !== "chat" || (chat.view !== undefined && chat.view !== view)) return;
    if (chat.view !== undefined) waiting.replaceWith(root);
    else if (!root.isConnected) return;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const opened = [...rows.children].slice(chat.start).map((row) => [...row.querySelectorAll("details")].map((each) => each.open));
    while (rows.children.length > chat.start) rows.lastElementChild.remove();
    chat.rows.forEach((row, at) => {
      const made = rowOf(row, (turn) => post("fork", turn));
      made.querySelectorAll("details").forEach((each, i) => { each.open = opened[at]?.[i] ?? false; });
      rows.append(made);
    });
    if (atEnd) log.scrollTop = log.scrollHeight;
    empty.hidden = rows.children.length > 0;
    const lost = root.contains(document.activeElement) && (document.activeElement === stop || document.activeElement === box);
    ({ busy } = chat);
    if (title.textContent !== chat.title) title.textContent = chat.title;
    if (status.textContent !== chat.status) status.textContent = chat.status;
    root.setAttribute("aria-label", `Chat with ${chat.title}`);
    box.setAttribute("aria-label", `Message to ${chat.title}`);
    root.dataset.tone = chat.tone;
    stop.hidden = !busy;
    close.hidden = !chat.closable;
    send.setAttribute("aria-disabled", String(busy));
    form.hidden = chat.asks || chat.closed;
    if (lost && !form.hidden && document.activeElement === document.body) box.focus({ preventScroll: true });
  };
  model.on("msg:custom", receive);
  post("ready");
  return () => model.off("msg:custom", receive);
}

export default { render };
