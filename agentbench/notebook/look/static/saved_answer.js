// The part of a saved run's page that collects changes and downloads them as a file; `saved_run.js` tells it the frame.
// Values stay JSON text from the field to the file, because numbers of JavaScript would lose digits.

const sheet = JSON.parse(document.getElementById("sheet").textContent);
const get = (name) => document.getElementById(`answer-${name}`);
const changes = new Map(); // by kind and name: { place, text }
const WANTED = { text: "a text", whole: "a whole number", number: "a number", truth: "true or false", choice: "one of the options", json: "JSON" };
let from = null; // the checkpoint of all changes
let shown = null; // the checkpoint of the displayed superstep
let offered = [];

const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const isInside = (path, outer) => path.startsWith(outer) && /^[.[]/.test(path.slice(outer.length));
const oneLine = (text) => text.replace(/\p{Z}/gu, " ").replace(/\p{C}/gu, "");
const short = (text) => (text.length > 200 ? `${text.slice(0, 200)}…` : text);

// Show a place: [change, name, label, kind, before as JSON, options as JSON, note].
function showPlace() {
  const place = offered[get("place").selectedIndex];
  get("problem").textContent = "";
  get("note").textContent = place?.[6] ?? "";
  if (!place) return get("input").replaceChildren();
  const [, , , kind, before, options] = place;
  const choices = kind === "truth" ? ["true", "false"] : options;
  const input = make(choices.length ? "select" : ["text", "json"].includes(kind) ? "textarea" : "input", { id: "answer-value" });
  input.append(...choices.map((value) => make("option", { value, textContent: kind === "choice" ? String(JSON.parse(value)) : value })));
  if (before) input.value = kind === "text" ? JSON.parse(before) : before;
  else if (choices.length) input.selectedIndex = -1;
  input.dataset.initial = input.value;
  return get("input").replaceChildren(input);
}

// Return the typed value as JSON text, or null.
function typed(kind, text) {
  if (kind === "text") return JSON.stringify(text);
  if (kind === "whole") return /^-?(0|[1-9]\d*)$/.test(text.trim()) ? text.trim() : null;
  try {
    const value = JSON.parse(text);
    return kind === "number" && typeof value !== "number" ? null : text.trim();
  } catch {
    return null;
  }
}

// What the person who merges the file would have to refuse as a whole is refused here.
function problemOf(place, input, text) {
  if (from !== null && from !== shown) return `All changes are at one superstep: remove those at superstep ${sheet.checkpoints[from].step} first.`;
  if (text === null) return `This must be ${WANTED[place[3]]}.`;
  if (text.length > sheet.longest) return `This is longer than ${sheet.longest} characters.`;
  const others = [...changes.values()].map((change) => change.place).filter((other) => other[0] !== place[0] || other[1] !== place[1]);
  if (others.length >= sheet.most) return `A file holds at most ${sheet.most} changes.`;
  const around = others.find((other) => place[0] === "edit" && other[0] === "edit" && (isInside(other[1], place[1]) || isInside(place[1], other[1])));
  if (around) return `There is a change of ${around[2]} already, which overlaps with this one: remove it first.`;
  return place[0] === "edit" && input.value === input.dataset.initial ? "This is the value as it is." : "";
}

function add() {
  const place = offered[get("place").selectedIndex];
  const input = get("value");
  const text = typed(place[3], input.value);
  const problem = problemOf(place, input, text);
  get("problem").textContent = problem;
  if (problem) return input.focus();
  from = shown;
  changes.set(`${place[0]} ${place[1]}`, { place, text });
  return showChanges();
}

function showChanges() {
  const rows = [...changes].map(([key, { place, text }]) => {
    const remove = make("button", { type: "button", textContent: "Remove", ariaLabel: `Remove the change of ${place[2]}` });
    remove.addEventListener("click", () => {
      changes.delete(key);
      if (!changes.size) from = null;
      showChanges();
      get("place").focus();
    });
    return make("li", {}, `${place[2]}: ${place[4] ? `${short(place[4])} → ` : ""}${short(text)} `, remove);
  });
  get("changes").replaceChildren(...rows);
  get("download").disabled = !changes.size;
}

function download() {
  const of = (change) => [...changes.values()].filter(({ place }) => place[0] === change);
  const edits = of("edit").map(({ place, text }) => `{"path": ${JSON.stringify(place[1])}, "before": ${JSON.stringify(place[4])}, "value": ${text}}`);
  const answers = of("answer").map(({ place, text }) => `{"request": ${JSON.stringify(place[1])}, "value": ${text}}`);
  const fields = { format: sheet.format, run: sheet.checkpoints[from].run, checkpoint: from, name: oneLine(get("name").value) };
  const file = `${JSON.stringify(fields, null, 1).slice(0, -2)},\n "edits": [${edits.join(", ")}],\n "answers": [${answers.join(", ")}]\n}\n`;
  const link = make("a", { href: URL.createObjectURL(new Blob([file], { type: "application/json" })), download: "answer.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

document.addEventListener("superstep", ({ detail }) => {
  shown = sheet.frames[detail];
  const checkpoint = sheet.checkpoints[shown];
  offered = (checkpoint?.places ?? []).map((number) => sheet.places[number]).reverse(); // questions first
  get("where").textContent = offered.length ? `Changes at superstep ${checkpoint.step}.` : "Nothing can be changed at this superstep; go back or forward.";
  get("form").hidden = !offered.length;
  get("place").replaceChildren(...offered.map((place) => make("option", { textContent: place[2] })));
  showPlace();
});
get("place").addEventListener("change", showPlace);
get("add").addEventListener("click", add);
get("download").addEventListener("click", download);
// The keys of the stepper must not act while somebody types here.
document.querySelector(".abs-answer").addEventListener("keydown", (event) => event.stopPropagation());
