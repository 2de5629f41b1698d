import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { names } from "./scripts.mjs";

const { Part } = names("Part", ["runtime/static/one_widget.js"]);

test("changes of a part are said together, values that are not new are not", () => {
  const say = mock.fn();
  const part = new Part("w1", { height: 320, breaks: ["a"] }, say);
  part.set("breaks", ["a"]);
  part.set("height", 400);
  part.save_changes();
  part.save_changes();
  const [first, second] = say.mock.calls.map((call) => call.arguments[0]);
  assert.deepEqual(first, { kind: "set", part: "w1", state: { height: 400 } });
  assert.deepEqual(second.state, {});
  assert.equal(part.get("height"), 400);
});

test("listeners hear of changes and messages until they are taken off", () => {
  const part = new Part("w1", { svg: "" }, () => {});
  const [changed, told] = [mock.fn(), mock.fn()];
  part.on("change:svg", changed);
  part.on("msg:custom", told);
  assert.equal(part.take({ svg: "<svg/>" }), true);
  assert.equal(part.take({ svg: "<svg/>" }), false);
  part.emit("msg:custom", { kind: "draw" }, ["bytes"]);
  part.off("change:svg", changed);
  part.take({ svg: "" });
  assert.equal(changed.mock.callCount(), 1);
  assert.deepEqual(told.mock.calls[0].arguments, [{ kind: "draw" }, ["bytes"]]);
});

test("a message of a part travels with its buffers", () => {
  const say = mock.fn();
  new Part("w1", {}, say).send({ kind: "file" }, undefined, ["bytes"]);
  assert.deepEqual(say.mock.calls[0].arguments, [{ kind: "message", part: "w1", content: { kind: "file" } }, ["bytes"]]);
});
