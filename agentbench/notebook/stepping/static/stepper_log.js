// Below everything: what happened, the newest line in the open.

function makeLog() {
  const root = node("section", { class: "abs abs-log", "aria-label": "Log" });
  const last = node("span", { class: "abs-last" });
  const toggle = makeSmallButton("Expand", { "aria-expanded": "false" });
  const lines = node("ol", { class: "abs-lines", hidden: true, tabindex: "0", "aria-label": "Log lines" });
  root.append(node("div", { class: "abs-log-head" }, node("b", {}, "Log"), last, toggle), lines);
  toggle.addEventListener("click", () => {
    lines.hidden = !lines.hidden;
    toggle.textContent = lines.hidden ? "Expand" : "Fold";
    toggle.setAttribute("aria-expanded", String(!lines.hidden));
    lines.scrollTop = lines.scrollHeight;
  });
  let total = 0;
  return {
    root,
    stop: () => {},
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
