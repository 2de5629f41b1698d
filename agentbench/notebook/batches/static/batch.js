// The live panel of a batch.
const BAR = ["finished", "failed", "waiting", "cancelled"];

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  const post = (kind, more = {}) => model.send({ kind, view, ...more });
  const [title, state, share] = ["abb-title", "abb-state", "abb-share"].map((name) => node("span", { class: name }));
  const [buttons, facts, chips, slowest] = ["abb-buttons", "abb-facts", "abb-chips", "abb-slowest"].map((name) => node("div", { class: name }));
  const problem = node("p", { class: "abb-problem", role: "alert", hidden: true });
  const bar = node("div", { class: "abb-progress", role: "progressbar", "aria-label": "Inputs that have ended", "aria-valuemin": "0", "aria-valuemax": "100" });
  const parts = BAR.map((name) => node("div", { "data-status": name }));
  bar.append(...parts);
  const rows = rowTable("Rows", (id) => post("open", { id }));
  const detail = detailBox(post);
  title.setAttribute("role", "heading");
  title.setAttribute("aria-level", "3");
  state.setAttribute("role", "status");
  const root = node("div", { class: "abb" }, node("div", { class: "abb-head" }, title, state, share, buttons), bar, chips, facts, slowest, problem, rows.el, detail.el);
  const waiting = node("div", {}, `${model.get("name")}: run its cell to show it.`);
  el.append(waiting);

  // Only what differs is replaced, so that a button that is being pressed stays.
  const fill = (parent, items, make) => {
    const same = JSON.stringify(items);
    if (parent.dataset.items === same) return;
    parent.dataset.items = same;
    const at = parent.contains(document.activeElement) && document.activeElement.dataset.id;
    parent.replaceChildren(...items.map(make));
    if (at) [...parent.children].find((each) => each.dataset.id === at)?.focus({ preventScroll: true });
  };
  const chip = ([by, id, text, chosen]) => {
    const sign = node("span", { "aria-hidden": "true", "data-status": by === "status" ? id : null }, by === "status" ? "" : "\u2717");
    return node("button", { type: "button", class: "abb-chip", "data-id": id, "aria-pressed": String(chosen), onclick: () => post("filter", { by, id }) }, sign, text);
  };
  const button = ([name, text]) => node("button", { type: "button", class: "abb-button", "data-id": name, onclick: () => post(name) }, text);
  const slow = ([id, key, took]) => node("button", { type: "button", class: "abb-open", "data-id": id, onclick: () => post("open", { id }) }, `${key} ${took}`);

  let [elapsed, since, words] = [null, 0, []];
  const tick = () => {
    const seconds = elapsed === null ? 0 : Math.round(elapsed + (state.textContent === "running" ? (performance.now() - since) / 1000 : 0));
    const clock = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");
    facts.textContent = [...words, ...(seconds ? [`${clock} elapsed`] : [])].join(" · ");
  };
  const on = {
    progress: (message) => {
      waiting.replaceWith(root);
      title.textContent = message.name;
      if (state.textContent !== message.state) state.textContent = state.dataset.state = message.state;
      share.textContent = message.share;
      let ended = 0;
      for (const part of parts) {
        const wide = message.bar[part.dataset.status] ?? 0;
        part.style.width = `${wide}%`;
        ended += wide;
      }
      bar.ariaValueNow = Math.round(ended);
      bar.ariaValueText = message.share;
      fill(buttons, message.buttons, button);
      const of = (by, items) => items.map(([id, text]) => [by, id, text, id === message.filter]);
      fill(chips, [...of("status", message.counts), ...of("error", message.errors)], chip);
      fill(slowest, message.slowest, slow);
      [elapsed, since, words] = [message.elapsed, performance.now(), [message.reason, ...message.facts].filter(Boolean)];
      tick();
    },
    rows: (message) => rows.show(message),
    view: (message) => {
      detail.show(message);
      rows.open(message.id ?? null);
      problem.hidden = true;
    },
    problem: ({ text }) => {
      problem.hidden = !text;
      problem.textContent = text;
    },
  };
  const receive = (message) => { if (message.view === undefined || message.view === view) on[message.kind]?.(message); };
  // Nothing is sent to a page that nobody sees.
  let [inSight, sent] = [true, null];
  const look = () => {
    const visible = inSight && document.visibilityState === "visible";
    if (visible === sent) return;
    sent = visible;
    try { post("visible", { visible }); } catch { watch.disconnect(); } // the kernel is gone
  };
  const watch = new IntersectionObserver(([entry]) => { inSight = entry.isIntersecting; look(); });
  watch.observe(el);
  document.addEventListener("visibilitychange", look);
  const clock = setInterval(() => { if (sent && state.textContent === "running") tick(); }, 1000);
  root.addEventListener("keydown", (event) => { if (!(event.ctrlKey || event.metaKey)) event.stopPropagation(); });
  model.on("msg:custom", receive);
  post("ready");
  return () => {
    inSight = false;
    look();
    clearInterval(clock);
    watch.disconnect();
    document.removeEventListener("visibilitychange", look);
    model.off("msg:custom", receive);
  };
}

export default { render };
