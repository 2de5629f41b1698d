// A picture with a switch between its forms, and with rows that can be chosen.
// It stands in a shadow root, so that its style stays its own. Text meets the page as text nodes only.

const OWN = `:host{display:block;overflow:auto}
.bar{display:flex;gap:0;margin:0 0 6px}.bar:empty{display:none}
button{font:12px Helvetica,Arial,sans-serif;padding:3px 10px;border:1px solid var(--jp-border-color1,#8c959f);
background:var(--jp-layout-color1,#fff);color:var(--jp-ui-font-color1,#1f2328);cursor:pointer}
button:first-child{border-radius:6px 0 0 6px}button:last-child{border-radius:0 6px 6px 0}button+button{border-left:0}
button[aria-checked=true]{font-weight:bold;background:var(--jp-layout-color3,#e6e8eb)}
button:focus-visible,[data-item]:focus-visible{outline:2px solid var(--jp-brand-color1,#0b57d0);outline-offset:1px}
[data-item]{cursor:pointer}[data-item][aria-selected=true] text{font-weight:bold}
[data-item]:hover .ab_row{fill-opacity:.07}[data-item][aria-selected=true] .ab_row{fill-opacity:.16;stroke:currentColor}
svg{max-width:100%;height:auto}`;
const STEPS = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

// A picture follows the browser's preference; in a page that says its theme, it follows that.
function themed(svg) {
  const light = document.body.dataset.jpThemeLight;
  if (light === undefined) return;
  for (const style of svg.querySelectorAll("style")) {
    const wanted = light === "true" ? "not all" : "all";
    style.textContent = style.textContent.replaceAll("(prefers-color-scheme:dark)", wanted);
  }
}

function render({ model, el }) {
  const shadow = (el.shadowRoot ?? el.attachShadow({ mode: "open" }));
  const style = Object.assign(document.createElement("style"), { textContent: OWN });
  const bar = document.createElement("div");
  bar.className = "bar";
  const port = document.createElement("div");
  port.dataset.lmSuppressShortcuts = "";
  bar.dataset.lmSuppressShortcuts = "";
  shadow.replaceChildren(style, bar, port);

  const say = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const items = () => [...port.querySelectorAll("[data-item]")];

  function layout() {
    const svg = checked(model.get("svg"));
    port.replaceChildren(...(svg ? [svg] : []));
    if (!svg) return;
    themed(svg);
    const rows = items();
    if (!rows.length) return;
    svg.setAttribute("role", "listbox");
    svg.setAttribute("aria-label", model.get("label"));
    for (const row of rows) {
      row.setAttribute("role", "option");
      row.setAttribute("aria-label", row.querySelector("title")?.textContent ?? "");
    }
    mark();
  }

  function mark() {
    const rows = items();
    const chosen = rows.find((row) => Number(row.dataset.item) === model.get("selected"));
    for (const row of rows) {
      row.setAttribute("aria-selected", String(row === chosen));
      row.setAttribute("tabindex", row === (chosen ?? rows[rows.length - 1]) ? "0" : "-1");
    }
  }

  function choices() {
    const names = model.get("choices");
    bar.setAttribute("role", "radiogroup");
    bar.setAttribute("aria-label", model.get("label"));
    bar.replaceChildren(
      ...names.map((textContent, at) => {
        const button = Object.assign(document.createElement("button"), { type: "button", textContent });
        button.setAttribute("role", "radio");
        button.onclick = () => say("choice", at);
        return button;
      }),
    );
    pressed();
  }

  function pressed() {
    [...bar.children].forEach((button, at) => {
      button.setAttribute("aria-checked", String(at === model.get("choice")));
      button.tabIndex = at === model.get("choice") ? 0 : -1;
    });
  }

  bar.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = [...bar.children];
    if (!step || !all.length) return;
    event.preventDefault();
    const next = (all.indexOf(event.target) + step + all.length) % all.length;
    all[next].focus();
    say("choice", next);
  };
  port.onclick = (event) => {
    const row = event.target.closest("[data-item]");
    if (row) say("selected", Number(row.dataset.item));
  };
  port.onkeydown = (event) => {
    const rows = items();
    const at = rows.indexOf(event.target.closest("[data-item]"));
    if (at < 0) return;
    if (event.key in STEPS) rows[Math.min(rows.length - 1, Math.max(0, at + STEPS[event.key]))].focus();
    else if (event.key === "Enter" || event.key === " ") say("selected", Number(rows[at].dataset.item));
    else return;
    event.preventDefault();
  };

  const told = { "change:svg": layout, "change:selected": mark, "change:choice": pressed, "change:choices": choices };
  for (const [name, take] of Object.entries(told)) model.on(name, take);
  choices();
  layout();
  return () => {
    for (const [name, take] of Object.entries(told)) model.off(name, take);
  };
}

export default { render };
