import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { names, page } from "./scripts.mjs";

const FILES = ["look/static/dom.js", "stepping/static/stepper_base.js", "stepping/static/stepper_top.js"];
const wanted = "enabled, makeMailbox, makeSmallButton, makeWatch, take, write";
const { enabled, makeMailbox, makeSmallButton, makeWatch, take, write } = names(wanted, FILES, { document: page });

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

test("each running agent has a field, which keeps its text as long as the agent runs and is sent once", () => {
  const post = mock.fn();
  const mailbox = makeMailbox(post);
  mailbox.update([["writer", "writer"]]);
  const [form] = mailbox.el.children;
  const [field] = form.children;
  field.value = "With rhymes.";
  mailbox.update([["writer", "writer"], ["critic", "critic"]]);
  assert.equal(mailbox.el.children[0], form);
  assert.equal(mailbox.el.children.length, 2);
  assert.equal(field.value, "With rhymes.");
  const submit = { preventDefault: mock.fn() };
  form.heard.submit(submit);
  form.heard.submit(submit);
  assert.equal(submit.preventDefault.mock.callCount(), 2);
  assert.deepEqual(post.mock.calls.map((call) => call.arguments), [
    [{ kind: "enqueue", executor: "writer", text: "With rhymes." }],
  ]);
  mailbox.update([]);
  assert.equal(mailbox.el.children.length, 0);
});
