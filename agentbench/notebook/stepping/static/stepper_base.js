// What the parts of a stepper's panel are made of. All text is written with textContent.

function write(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

// Buttons that can do nothing now keep their place and the focus: aria-disabled, not disabled.
const enabled = (button) => button.getAttribute("aria-disabled") !== "true";

function makeButton(text, attributes = {}) {
  return node("button", { type: "button", class: "abs-button", ...attributes }, text);
}

function makeSmallButton(text, attributes = {}) {
  return makeButton(text, { class: "abs-button abs-small", ...attributes });
}

// A box above the page, below the button that opens it. The browser closes it on Escape and on a click elsewhere.
function makePopover(anchor, attributes) {
  const box = node("div", { popover: "auto", ...attributes });
  box.classList.add("abs-popover");
  const native = typeof box.showPopover === "function";
  if (!native) box.hidden = true;
  let open = false;
  const place = () => {
    const at = anchor.getBoundingClientRect();
    const below = window.innerHeight - at.bottom - 12;
    const upward = below < Math.min(box.scrollHeight, 260) && at.top > below;
    const right = Math.min(anchor.closest(".abs-frame")?.getBoundingClientRect().right ?? Infinity, window.innerWidth - 8);
    box.style.left = `${Math.max(8, Math.min(at.left, right - box.offsetWidth))}px`;
    box.style.top = upward ? "auto" : `${at.bottom + 4}px`;
    box.style.bottom = upward ? `${window.innerHeight - at.top + 4}px` : "auto";
    box.style.maxHeight = `${(upward ? at.top : below) - 4}px`;
  };
  const scrolled = (event) => { if (!box.contains(event.target)) show(false); };
  const turned = (now) => {
    if (open === now) return;
    open = now;
    anchor.setAttribute("aria-expanded", String(now));
    document[now ? "addEventListener" : "removeEventListener"]("scroll", scrolled, { capture: true, passive: true });
    if (now) place();
    else if (box.contains(document.activeElement) || document.activeElement === document.body) anchor.focus({ preventScroll: true });
  };
  const show = (wanted) => {
    if (wanted === open) return;
    if (native) box[wanted ? "showPopover" : "hidePopover"]();
    else box.hidden = !wanted;
    turned(wanted);
  };
  box.addEventListener("toggle", (event) => turned(event.newState === "open"));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    show(false);
    anchor.focus();
  });
  anchor.setAttribute("aria-expanded", "false");
  return { box, show, place, isOpen: () => open };
}

// A menu of [command, label, hint, enabled, key]; an item without a command draws a line.
function makeMenu(anchor, label, choose) {
  const { box, show, isOpen } = makePopover(anchor, { role: "menu", "aria-label": label, class: "abs-menu" });
  anchor.setAttribute("aria-haspopup", "menu");
  let signature = "";
  const items = () => [...box.querySelectorAll("[role=menuitem]")];
  const open = (at = 0) => { show(true); items().at(at)?.focus(); };
  const pick = (item) => {
    if (!enabled(item)) return;
    show(false);
    anchor.focus();
    choose(item.dataset.command);
  };
  let pressedAt = false; // the browser has closed it by the time of the click that would open it again
  anchor.addEventListener("pointerdown", () => { pressedAt = isOpen(); });
  anchor.addEventListener("click", () => { if (pressedAt) show(false); else open(); pressedAt = false; });
  anchor.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    event.stopPropagation();
    open(event.key === "ArrowDown" ? 0 : -1);
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation(); // the keys of the panel rest while a menu is open
    const all = items();
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) { event.preventDefault(); all[to].focus(); }
    if (event.key === "Tab") show(false);
  });
  return {
    box,
    open,
    update: (list) => {
      const now = JSON.stringify(list);
      if (now === signature) return;
      signature = now;
      const focused = document.activeElement?.dataset?.command;
      box.replaceChildren(...list.map((item) => {
        const [command, text, hint, on, key] = item;
        if (!command) return node("hr");
        const made = node("button", { type: "button", role: "menuitem", tabindex: "-1", title: hint, "data-command": command, "aria-disabled": String(!on) }, node("span", {}, text));
        if (key) made.append(node("kbd", { "aria-hidden": "true" }, key));
        made.addEventListener("click", () => pick(made));
        return made;
      }));
      if (focused && isOpen()) items().find((item) => item.dataset.command === focused)?.focus();
    },
  };
}
