// Below everything: what happened, the newest line in the open.

function makeLog() {
  const last = node("span", { class: "abs-last" });
  const lines = node("ol", { class: "abs-lines", hidden: true, tabindex: "0", "aria-label": "Log lines" });
  const turn = () => {
    lines.hidden = !lines.hidden;
    toggle.textContent = lines.hidden ? "Expand" : "Fold";
    toggle.setAttribute("aria-expanded", String(!lines.hidden));
    lines.scrollTop = lines.scrollHeight;
  };
  const toggle = makeSmallButton("Expand", turn, { "aria-expanded": "false" });
  const head = node("div", { class: "abs-log-head" }, node("b", {}, "Log"), last, toggle);
  const root = node("section", { class: "abs abs-log", "aria-label": "Log" }, head, lines);
  let total = 0;
  return {
    root,
    log: (told) => {
      if (told.total < total) { // a saved run went back
        lines.replaceChildren();
        total = 0;
      }
      const fresh = told.lines.slice(Math.max(0, told.lines.length - (told.total - total)));
      total = told.total;
      const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 20;
      for (const [kind, text] of fresh) lines.append(node("li", { "data-kind": kind }, text));
      while (lines.childElementCount > told.limit) lines.firstChild.remove();
      if (atEnd) lines.scrollTop = lines.scrollHeight;
      const newest = told.headline;
      write(last, newest ? newest[1] : "nothing happened yet");
      last.dataset.kind = newest ? newest[0] : "";
      last.title = newest ? newest[1] : "";
    },
  };
}
