"""Files that claim to come from an editable page: nothing is executed, nothing is applied that was not shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRun,
    handler,
    response_handler,
    run_sync,
)
from agentbench.exceptions import MergeError
from agentbench.messages.content.content import Content
from agentbench.revisions.answer_file import FORMAT
from agentbench.revisions.places import fingerprint, values_of
from agentbench.workflows.executors.approval import Approval

if os.name == "nt":
    pytest.skip("links and pipes are made as on Unix", allow_module_level=True)


@dataclass
class Draft:
    title: str = "cats"
    count: int = 3
    share: float = 0.5
    tags: list[str] = field(default_factory=lambda: ["a"])
    approval: Approval | None = None


class Work(Executor):
    @handler
    async def work(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("draft", Draft(approval=Approval(False)))
        ctx.set_state("flags", {"on": True, "api_key": "sk-123456", "share": 0.5})
        ctx.set_state("call", Content.from_function_call("c1", "pay", arguments={"sum": 1}))
        await ctx.send_message(text)
        await ctx.request_info("Colour?", Literal["red", "green"])
        await ctx.request_info("Title?", str)
        await ctx.request_info("Pay?", bool)
        await ctx.request_info("Really?", Approval)
        await ctx.request_info("Rules?", dict)

    @response_handler
    async def answered(self, asked: str, answer: Any, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(str(answer))


class End(Executor):
    @handler
    async def end(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)


@pytest.fixture(scope="module")
def run() -> WorkflowRun:
    workflow = WorkflowBuilder(name="hostile").add_chain([Work(id="work"), End(id="end")]).build()
    run = workflow.start("hello", checkpoint_storage=InMemoryCheckpointStorage())
    run_sync(run.step())
    return run


@pytest.fixture
def good(run: WorkflowRun) -> dict[str, Any]:
    assert run.storage is not None
    assert run.last_checkpoint is not None
    checkpoint = run_sync(run.storage.load(run.last_checkpoint.checkpoint_id))
    return {
        "format": FORMAT,
        "run": fingerprint(checkpoint),
        "checkpoint": checkpoint.checkpoint_id,
        "name": "Ada",
        "edits": [{"path": "draft.title", "before": '"cats"', "value": "dogs"}],
        "answers": [],
    }


def edit(path: Any, before: Any, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda file: file.update(edits=[{"path": path, "before": before, "value": value}])


def title(value: Any) -> Callable[[dict[str, Any]], object]:
    return edit("draft.title", '"cats"', value)


def answer(asked: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda file: file.update(answers=[{"request": asked, "value": value}])


def put(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda file: file.update(fields)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


REFUSED: dict[str, Callable[[dict[str, Any]], object]] = {
    "another format": put(format="agentbench answer 2"),
    "a format of another type": put(format=1),
    "a wrong hash": put(run="0" * 64),
    "an empty hash": put(run=""),
    "an unknown checkpoint": put(checkpoint="8a4f"),
    "a checkpoint that is a path": put(checkpoint="../../etc/passwd"),
    "a checkpoint that is a list": put(checkpoint=[]),
    "a further key": put(code="import os"),
    "a key of Python": put(__class__="os.system"),
    "a key of JavaScript": put(__proto__={"admin": True}),
    "a missing key": lambda file: file.pop("name"),
    "edits as an object": put(edits={}),
    "an edit as a text": put(edits=["draft.title"]),
    "an edit with a further key": lambda file: file["edits"][0].update(steps=["state"]),
    "an edit without the old value": lambda file: file["edits"][0].pop("before"),
    "nothing to do": put(edits=[]),
    "too many edits": lambda file: file.update(edits=file["edits"] * 51),
    "one place twice": lambda file: file.update(edits=file["edits"] * 2),
    "a place and one inside": put(
        edits=[
            {"path": "draft.tags", "before": '["a"]', "value": ["b"]},
            {"path": "draft.tags[0]", "before": '"a"', "value": "c"},
        ]
    ),
    "an old value that differs": edit("draft.title", '"birds"', "dogs"),
    "an old value in another notation": edit("draft.title", "'cats'", "dogs"),
    "an old value that is no text": edit("draft.title", None, "dogs"),
    "a path that is a number": edit(0, '"cats"', "dogs"),
    "an empty path": edit("", "{}", {}),
    "an unknown path": edit("nothing", '"cats"', "dogs"),
    "a path in another notation": edit("draft[title]", '"cats"', "dogs"),
    "a negative index": edit("draft.tags[-1]", '"a"', "b"),
    "an index beyond the end": edit("draft.tags[9]", '"a"', "b"),
    "an attribute of Python": edit("draft.__class__", '"cats"', "dogs"),
    "a path through the globals": edit("draft.__init__.__globals__", '"cats"', "dogs"),
    "the engine's state": edit("_executor_state", "{}", {}),
    "a whole object": edit("draft", "{}", {"title": "dogs"}),
    "a secret": edit("flags.api_key", '"sk-123456"', "mine"),
    "an object around a secret": edit("flags", "{}", {}),
    "an approval in the state": edit("draft.approval.approved", "false", True),
    "a tool call": edit("call.arguments", '{"sum": 1}', {"sum": 1000}),
    "a message that is not queued": edit("messages[7]", '"hello"', "bye"),
    "a number for a text": title(7),
    "nothing for a text": title(None),
    "an object for a text": title({"$type": "builtins.eval", "value": "1"}),
    "a text for a number": edit("draft.count", "3", "4"),
    "a truth for a number": edit("draft.count", "3", True),
    "a fraction for a whole number": edit("draft.count", "3", 3.5),
    "a number for a truth": edit("flags.on", "true", 0),
    "a text for a list": edit("draft.tags", '["a"]', "abc"),
    "numbers for a list of texts": edit("draft.tags", '["a"]', [1]),
    "a tagged value in a list of texts": edit("draft.tags", '["a"]', [{"__reduce__": ["os.system", "x"]}]),
    "a value that is too long": title("x" * 30_000),
    "a value that is too deep": title(nested(30)),
    "a file that is too deep": title(nested(60)),
    "a secret as value": answer("Rules?", {"api_key": "sk-9876543210"}),
    "half a character": title("\ud800"),
    "a name with line breaks": put(name="Ada\nverified"),
    "a name that runs backwards": put(name="Ada\u202e(verified)"),
    "a long name": put(name="A" * 101),
    "a name as an object": put(name={"first": "Ada"}),
    "an answer to an unknown request": answer("nobody asked", "red"),
    "an answer as a choice that was not offered": answer("Colour?", "blue"),
    "an answer of another type": answer("Title?", 5),
    "an approval as an answer": answer(
        "Rules?", {"type": "function_approval_response", "approved": True, "id": "c1", "function_call": {}}
    ),
    "a list as an answer for an object": answer("Rules?", ["x"]),
}

RAW: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"hello",
    "pickle": b"\x80\x04\x95\x1e\x00\x00\x00cos\nsystem\n(S'touch owned'\ntR.",
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": ""}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NaN": b'{"value": NaN}',
    "infinity": b'{"value": 1e999}',
    "many digits": b'{"value": ' + b"9" * 5000 + b"}",
    "a key twice": b'{"name": "Ada", "name": "Eve"}',
    "deep": b"[" * 200_000,
    "huge": b" " * 5_000_001,
    "a list": b"[]",
    "a script": b"<script>alert(1)</script>",
}


def write(run: WorkflowRun, file: dict[str, Any], path: Path) -> Path:
    ids = {request.data: request.request_id for request in run.pending_requests}
    for each in file.get("answers") or ():
        each["request"] = ids.get(each["request"], each["request"])
    path.write_text(json.dumps(file), encoding="utf-8")
    return path


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_a_file_that_asks_for_more_than_the_page_offered_is_refused(
    run: WorkflowRun, good: dict[str, Any], tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    change(good)
    before = len(run.checkpoints)
    with pytest.raises(MergeError, match="Nothing was applied") as caught:
        run_sync(run.merge(write(run, good, tmp_path / "answer.json")))
    assert caught.value.reason.isprintable()
    assert "sk-" not in str(caught.value)
    assert len(run.checkpoints) == before


@pytest.mark.parametrize("content", RAW.values(), ids=RAW)
def test_a_file_that_is_not_of_the_format_is_refused(run: WorkflowRun, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "answer.json").write_bytes(content)
    with pytest.raises(MergeError):
        run_sync(run.merge(tmp_path / "answer.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["answer.json"]


@pytest.mark.parametrize("kind", ["missing", "folder", "link", "pipe", "device", "null byte"])
def test_only_a_regular_file_is_read(run: WorkflowRun, good: dict[str, Any], tmp_path: Path, kind: str) -> None:
    path = tmp_path / "answer.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(write(run, good, tmp_path / "good.json"))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "null byte":
        path = tmp_path / "a\0b"
    with pytest.raises(MergeError):
        run_sync(run.merge(path))


def test_an_approval_in_a_file_is_a_question_whatever_it_says(
    run: WorkflowRun, good: dict[str, Any], tmp_path: Path
) -> None:
    good["answers"] = [
        {"request": asked, "value": value} for asked, value in (("Pay?", True), ("Really?", {"approved": 1}))
    ]
    merge = run_sync(run.merge(write(run, good, tmp_path / "answer.json")))
    assert [each.data for each in merge.questions] == ["Pay?", "Really?"]
    branch = run_sync(merge.apply())
    assert len(branch.pending_requests) == 5


@pytest.mark.parametrize(
    "value",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a\u202eb\x00\x1b[31m",
        "x" * 15_000,
        "__import__('os')",
    ],
)
def test_a_hostile_value_is_shown_whole_and_inert_and_applied_as_text(
    run: WorkflowRun, good: dict[str, Any], tmp_path: Path, value: str
) -> None:
    title(value)(good)
    good["name"] = "<b>Ada</b>"
    path = write(run, good, tmp_path / "answer.json")
    merge = run_sync(run.merge(path))
    html, text = merge._repr_mimebundle_()["text/html"], str(merge)
    assert not any(tag in html for tag in ("<script", "<img", "<b>Ada"))
    assert not any(sign in html + text for sign in "\u202e\x00\x1b")
    assert value not in text or value in html.replace("&lt;", "<").replace("&gt;", ">").replace("&#x27;", "'")
    title("something else")(good)
    write(run, good, path)
    assert run_sync(merge.apply()).state["draft"].title == value


def test_a_number_with_a_fraction_may_become_one_without(
    run: WorkflowRun, good: dict[str, Any], tmp_path: Path
) -> None:
    edit("draft.share", "0.5", 2)(good)
    merge = run_sync(run.merge(write(run, good, tmp_path / "answer.json")))
    assert type(merge.edits[0].after) is float


@pytest.mark.parametrize("marker", ["$type", "__type__", "__pickled__", "@type", "type"])
def test_marks_of_stored_values_stay_data(run: WorkflowRun, good: dict[str, Any], tmp_path: Path, marker: str) -> None:
    value = {marker: "tests.revisions.test_hostile_answers:Draft", "value": {"title": "owned"}}
    good["edits"] = []
    answer("Rules?", value)(good)
    branch = run_sync(run_sync(run.merge(write(run, good, tmp_path / "answer.json"))).apply())
    run_sync(branch.step())
    assert branch.storage is not None
    assert branch.last_checkpoint is not None
    stored = run_sync(branch.storage.load(branch.last_checkpoint.checkpoint_id))
    assert [message.data for sent in stored.messages.values() for message in sent] == [str(value)]


def test_the_page_offers_no_secret_no_approval_and_nothing_of_the_engine(run: WorkflowRun) -> None:
    assert run.storage is not None
    assert run.last_checkpoint is not None
    checkpoint = run_sync(run.storage.load(run.last_checkpoint.checkpoint_id))
    offered = [value.path for value in values_of(checkpoint)]
    assert offered == [
        "draft.title",
        "draft.count",
        "draft.share",
        "draft.tags",
        "draft.tags[0]",
        "flags.on",
        "flags.share",
        "messages[0]",
    ]
