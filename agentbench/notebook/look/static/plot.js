// A picture with a switch between its forms and with selectable rows.
// It is in a shadow root, so that its style does not affect the page.

const OWN = `:host{display:block;overflow:auto}
.bar{display:flex;gap:0;margin:0 0 6px}.bar:empty{display:none}
button{font:12px Helvetica,Arial,sans-serif;padding:3px 10px;border:1px solid var(--jp-border-color1,#8c959f);
background:var(--jp-layout-color1,#fff);color:var(--jp-ui-font-color1,#1f2328);cursor:pointer}
button:first-child{border-radius:6px 0 0 6px}button:last-child{border-radius:0 6px 6px 0}button+button{border-left:0}
button[aria-checked=true]{font-weight:bold;background:var(--jp-layout-color3,#e6e8eb)}
button:focus-visible,[data-item]:focus-visible{outline:2px solid var(--jp-brand-color1,#0b57d0);outline-offset:1px}
[data-item]{cursor:pointer}[data-item][aria-selected=true] text{font-weight:bold}
[data-item]:hover .ab_row{fill-opacity:.07}
[data-item][aria-selected=true] .ab_row{fill-opacity:.16;stroke:currentColor}
svg{max-width:100%;height:auto}`;

// A picture follows the theme of the page if it is known, otherwise the browser's preference.
function themed(svg) {
  const light = document.body.dataset.jpThemeLight;
  if (light === undefined) return;
  for (const style of svg.querySelectorAll("style")) {
    const wanted = light === "true" ? "not all" : "all";
    style.textContent = style.textContent.replaceAll("(prefers-color-scheme:dark)", wanted);
  }
}

function render({ model, el }) {
  const shadow = el.shadowRoot ?? el.attachShadow({ mode: "open" });
  const save = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const rows = () => [...port.querySelectorAll("[data-item]")];
  const choose = (button) => save("choice", [...bar.children].indexOf(button));
  const select = (row) => save("selected", Number(row.dataset.item));

  // One Tab stop for all rows and one for all forms; arrow keys move between them.
  const bar = node("div", { class: "bar", role: "radiogroup", "aria-label": model.get("label"), onkeydown: (event) => {
    const next = itemAt(event.key, [...bar.children], event.target);
    if (!next) return;
    event.preventDefault();
    next.focus();
    choose(next);
  } });
  const port = node("div", {
    onclick: ({ target }) => {
      const row = target.closest("[data-item]");
      if (row) select(row);
    },
    onkeydown: (event) => {
      const row = event.target.closest("[data-item]");
      const next = row && itemAt(event.key, rows(), row);
      if (next) next.focus();
      else if (row && (event.key === "Enter" || event.key === " ")) select(row);
      else return;
      event.preventDefault();
    },
  });
  for (const part of [bar, port]) part.dataset.lmSuppressShortcuts = ""; // suppress JupyterLab's shortcuts
  shadow.replaceChildren(node("style", {}, OWN), bar, port);

  const layout = () => {
    const svg = readSvg(model.get("svg"), true);
    port.replaceChildren(...(svg ? [svg] : []));
    if (!svg) return;
    themed(svg);
    if (!rows().length) return;
    svg.setAttribute("role", "listbox");
    svg.setAttribute("aria-label", model.get("label"));
    for (const row of rows()) {
      row.setAttribute("role", "option");
      row.setAttribute("aria-label", row.querySelector("title")?.textContent ?? "");
    }
    mark();
  };
  const mark = () => {
    const chosen = rows().find((row) => Number(row.dataset.item) === model.get("selected"));
    for (const row of rows()) {
      row.setAttribute("aria-selected", String(row === chosen));
      row.setAttribute("tabindex", row === (chosen ?? rows().at(-1)) ? "0" : "-1");
    }
  };
  const press = () => [...bar.children].forEach((button, at) => {
    button.setAttribute("aria-checked", String(at === model.get("choice")));
    button.tabIndex = at === model.get("choice") ? 0 : -1;
  });
  const offer = () => {
    const onclick = ({ target }) => choose(target);
    bar.replaceChildren(...model.get("choices").map((name) => node("button", { type: "button", role: "radio", onclick }, name)));
    press();
  };

  const listeners = { "change:svg": layout, "change:selected": mark, "change:choice": press, "change:choices": offer };
  for (const [name, take] of Object.entries(listeners)) model.on(name, take);
  offer();
  layout();
  return () => {
    for (const [name, take] of Object.entries(listeners)) model.off(name, take);
  };
}

export default { render };
