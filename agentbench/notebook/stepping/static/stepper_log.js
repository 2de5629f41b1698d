// The log at the bottom of the panel, folded to its newest line.

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
    log: (data) => {
      if (data.total < total) { // a saved run was moved back
        lines.replaceChildren();
        total = 0;
      }
      const fresh = data.lines.slice(Math.max(0, data.lines.length - (data.total - total)));
      total = data.total;
      const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 20;
      for (const [kind, text] of fresh) lines.append(node("li", { "data-kind": kind }, text));
      while (lines.childElementCount > data.limit) lines.firstChild.remove();
      if (atEnd) lines.scrollTop = lines.scrollHeight;
      const newest = data.headline;
      write(last, newest ? newest[1] : "no entries yet");
      last.dataset.kind = newest ? newest[0] : "";
      last.title = newest ? newest[1] : "";
    },
  };
}
