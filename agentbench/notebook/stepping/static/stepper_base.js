// Building blocks of a stepper's panel.

function write(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

// Returns a function that tells whether a value differs from the previous one.
function makeWatch() {
  let last = "";
  return (value) => last !== (last = JSON.stringify(value));
}

// Disabled buttons keep their place and the focus: aria-disabled, not disabled.
const enabled = (button) => button.getAttribute("aria-disabled") !== "true";

function makeButton(text, onclick, { look = "", ...attributes } = {}) {
  return node("button", { type: "button", class: `abs-button ${look}`, onclick, ...attributes }, text);
}

function makeSmallButton(text, onclick, attributes = {}) {
  return makeButton(text, onclick, { look: "abs-small", ...attributes });
}

// Stops a key event from reaching the page and the notebook.
function take(event) {
  event.preventDefault();
  event.stopPropagation();
}

// A box above the page, below the button that opens it. The browser closes it on Escape and on an outside click.
function makePopover(anchor, attributes, ...content) {
  const box = node("div", { popover: "auto", ...attributes, class: `abs-popover ${attributes.class}` }, ...content);
  const isOpen = () => box.matches(":popover-open");
  const place = () => {
    const at = anchor.getBoundingClientRect();
    const below = window.innerHeight - at.bottom - 12;
    const upward = below < Math.min(box.scrollHeight, 260) && at.top > below;
    const right = Math.min(anchor.closest(".abs-frame")?.getBoundingClientRect().right ?? Infinity, window.innerWidth - 8);
    Object.assign(box.style, {
      left: `${Math.max(8, Math.min(at.left, right - box.offsetWidth))}px`,
      top: upward ? "auto" : `${at.bottom + 4}px`,
      bottom: upward ? `${window.innerHeight - at.top + 4}px` : "auto",
      maxHeight: `${(upward ? at.top : below) - 4}px`,
    });
  };
  const show = (wanted) => {
    if (wanted === isOpen()) return;
    box.togglePopover(wanted);
    if (wanted) place();
  };
  const scrolled = (event) => { if (!box.contains(event.target)) show(false); };
  box.addEventListener("toggle", ({ newState }) => {
    const open = newState === "open";
    anchor.setAttribute("aria-expanded", String(open));
    document[open ? "addEventListener" : "removeEventListener"]("scroll", scrolled, { capture: true, passive: true });
    const lost = box.contains(document.activeElement) || document.activeElement === document.body;
    if (!open && lost) anchor.focus({ preventScroll: true });
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    take(event);
    show(false);
    anchor.focus();
  });
  anchor.setAttribute("aria-expanded", "false");
  return { box, show, place, isOpen };
}

// A menu of [command, label, hint, enabled, key]; an item without a command draws a line.
function makeMenu(anchor, label, choose) {
  const { box, show, isOpen } = makePopover(anchor, { role: "menu", "aria-label": label, class: "abs-menu" });
  const changed = makeWatch();
  const items = () => [...box.querySelectorAll("[role=menuitem]")];
  const open = (at = 0) => { show(true); items().at(at)?.focus(); };
  const pick = ({ currentTarget: item }) => {
    if (!enabled(item)) return;
    show(false);
    anchor.focus();
    choose(item.dataset.command);
  };
  anchor.setAttribute("aria-haspopup", "menu");
  let pressedAt = false; // the browser closes it before the click event that would open it again
  anchor.addEventListener("pointerdown", () => { pressedAt = isOpen(); });
  anchor.addEventListener("click", () => { if (pressedAt) show(false); else open(); pressedAt = false; });
  anchor.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    take(event);
    open(event.key === "ArrowDown" ? 0 : -1);
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation(); // the panel ignores keys while a menu is open
    const next = itemAt(event.key, items(), document.activeElement);
    if (next) { event.preventDefault(); next.focus(); }
    if (event.key === "Tab") show(false);
  });
  const makeItem = ([command, text, hint, on, key] = []) => {
    if (!command) return node("hr");
    const about = { title: hint, "data-command": command, "aria-disabled": String(!on), onclick: pick };
    const shown = key ? [node("kbd", { "aria-hidden": "true" }, key)] : [];
    return node("button", { type: "button", role: "menuitem", tabindex: "-1", ...about }, node("span", {}, text), ...shown);
  };
  const update = (list) => {
    if (!changed(list)) return;
    const focused = document.activeElement?.dataset?.command;
    box.replaceChildren(...list.map(makeItem));
    if (focused && isOpen()) items().find((item) => item.dataset.command === focused)?.focus();
  };
  return { box, open, update };
}
