import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { Element, names, page } from "./scripts.mjs";

const FILES = ["look/static/dom.js", "forms/static/parts.js"];
const wanted = "arrange, choices, labelText, noneBox, sizeText, typingPause";
const { arrange, choices, labelText, noneBox, sizeText, typingPause } = names(wanted, FILES, { document: page });

test("what is typed is sent once, after a pause", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const send = mock.fn();
  const pause = typingPause(send);
  pause.later();
  t.mock.timers.tick(200);
  pause.later();
  t.mock.timers.tick(299);
  assert.equal(send.mock.callCount(), 0);
  assert.equal(pause.waits(), true);
  t.mock.timers.tick(1);
  assert.equal(send.mock.callCount(), 1);
  assert.equal(pause.waits(), false);
});

test("what waits is sent at once on demand, or not at all", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const send = mock.fn();
  const pause = typingPause(send);
  pause.now();
  assert.equal(send.mock.callCount(), 0);
  pause.later();
  pause.now();
  assert.equal(send.mock.callCount(), 1);
  pause.later();
  assert.equal(pause.stop(), true);
  t.mock.timers.tick(1000);
  assert.equal(send.mock.callCount(), 1);
});

test("elements are put in order, those in place are not touched, others are removed", () => {
  const holder = new Element("div");
  const [a, b, c, d] = ["a", "b", "c", "d"].map((tag) => new Element(tag));
  holder.append(a, b, c);
  arrange(holder, [a, c, d]);
  assert.deepEqual(holder.children, [a, c, d]);
  assert.equal(a.holder, undefined);
});

test("of choices one is read, put and focused", () => {
  const chosen = mock.fn();
  const made = choices("id", ["left", "right"], "look", chosen);
  assert.deepEqual(made.read(), { text: "" });
  const inputs = made.main.children.map((line) => line.children[0]);
  for (const [at, input] of inputs.entries()) input.value = String(at);
  made.put({ option: 1 });
  assert.deepEqual(inputs.map((input) => input.checked), [false, true]);
  assert.deepEqual(made.read(), { option: 1 });
  inputs[0].heard.change();
  assert.deepEqual(chosen.mock.calls[0].arguments, [0]);
  made.put({});
  assert.deepEqual(made.read(), { text: "" });
});

test("a field without a value has a box for that, others have none", () => {
  const ticked = mock.fn();
  assert.equal(noneBox({ none: null }, ticked), null);
  const { input } = noneBox({ none: { on: true, label: "no value" } }, ticked);
  assert.equal(input.checked, true);
  input.heard.change();
  assert.deepEqual(ticked.mock.calls[0].arguments, [true]);
});

test("labels say what is optional, sizes have units", () => {
  assert.equal(labelText({ label: "Day", optional: true }), "Day (optional)");
  assert.equal(labelText({ label: "Day" }), "Day");
  assert.deepEqual([1023, 1024, 1536, 1024 * 1024].map(sizeText), ["1023 bytes", "1.0 KB", "1.5 KB", "1.0 MB"]);
});
