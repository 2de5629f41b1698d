import assert from "node:assert/strict";
import { test } from "node:test";

import { names, page } from "./scripts.mjs";

const { node, itemAt } = names("node, itemAt", ["look/static/dom.js"], { document: page });

test("attributes are set, left out or flags, functions hear events, strings are text", () => {
  const pressed = () => {};
  const made = node("button", { type: "button", hidden: true, title: null, disabled: false, at: 0, onclick: pressed }, "<b>", "!");
  assert.deepEqual(made.attributes, { type: "button", hidden: "", at: "0" });
  assert.deepEqual(made.children, ["<b>", "!"]);
  assert.equal(made.heard.click, pressed);
});

test("arrows go to the next item and wrap around, Home and End to the ends, other keys nowhere", () => {
  const items = ["a", "b", "c"];
  assert.equal(itemAt("ArrowRight", items, "a"), "b");
  assert.equal(itemAt("ArrowDown", items, "c"), "a");
  assert.equal(itemAt("ArrowLeft", items, "a"), "c");
  assert.equal(itemAt("ArrowUp", items, "b"), "a");
  assert.equal(itemAt("Home", items, "c"), "a");
  assert.equal(itemAt("End", items, "a"), "c");
  assert.equal(itemAt("x", items, "a"), undefined);
});
