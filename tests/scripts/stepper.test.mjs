import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { names, page } from "./scripts.mjs";

const FILES = ["look/static/dom.js", "stepping/static/stepper_base.js"];
const { enabled, makeSmallButton, makeWatch, take, write } = names("enabled, makeSmallButton, makeWatch, take, write", FILES, {
  document: page,
});

test("a watch tells whether a value differs from the one before", () => {
  const changed = makeWatch();
  assert.deepEqual([[1], [1], [2], [1]].map(changed), [true, false, true, true]);
});

test("a button that is off keeps its place: it says so, and is not disabled", () => {
  const button = makeSmallButton("Fold", () => {}, { "aria-disabled": "true" });
  assert.equal(enabled(button), false);
  assert.equal(button.getAttribute("disabled"), null);
  assert.equal(enabled(makeSmallButton("Fold", () => {})), true);
  assert.match(button.getAttribute("class"), /abs-button abs-small/);
});

test("text is written only where it changes, so that a screen reader is not interrupted", () => {
  const written = mock.fn();
  const el = { get textContent() { return "ready"; }, set textContent(text) { written(text); } };
  write(el, "ready");
  write(el, "done");
  assert.deepEqual(written.mock.calls.map((call) => call.arguments), [["done"]]);
});

test("a key that a panel takes reaches nothing else", () => {
  const event = { preventDefault: mock.fn(), stopPropagation: mock.fn() };
  take(event);
  assert.equal(event.preventDefault.mock.callCount() + event.stopPropagation.mock.callCount(), 2);
});
