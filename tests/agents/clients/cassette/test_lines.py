"""The lines of a cassette."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentbench.agents.clients.cassette.client import CassetteChatClient
from agentbench.agents.clients.cassette.lines import BadLineError, CassetteLines, header_line
from agentbench.exceptions import CassetteMissError
from agentbench.messages.response import ChatResponse
from tests.agents.clients.cassette.conversations import ask
from tests.parts.errors import raises

DATA = Path(__file__).parent / "data"
HEADER = header_line(client="OpenAIChatClient", model="small")


def message(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "contents": [{"type": "text", "text": text}]}


def request(*texts: str, tools: list[Any] | None = None, **options: Any) -> dict[str, Any]:
    return {"messages": [message(text) for text in texts], "tools": tools or [], "options": options}


def write(read: CassetteLines, asked: dict[str, Any], **answer: Any) -> list[str]:
    lines = read.lines_for(asked, answer or {"response": {"type": "chat_response"}})
    for line in lines:
        read.read(line.encode())
    return lines


def new_lines() -> CassetteLines:
    read = CassetteLines()
    read.read(HEADER.encode())
    return read


@given(st.text())
@example("Grüße 你好")
@example("\ud83d")
def test_any_text_survives_as_one_line(text: str) -> None:
    read = new_lines()
    lines = write(read, request(text))
    assert read.calls[0].request == request(text)
    assert all("\n" not in line for line in lines)
    assert all(line.encode() for line in lines)


def test_a_name_means_the_nearest_line_above_as_after_a_merge() -> None:
    ours, theirs = new_lines(), new_lines()
    lines = [*write(ours, request("ours")), *write(theirs, request("theirs"))]
    merged = new_lines()
    for line in lines:
        merged.read(line.encode())
    assert [call.prompt for call in merged.calls] == ["ours", "theirs"]
    added = [json.loads(line) for line in write(merged, request("ours", "theirs"))]
    assert added[0]["message"] == "m2"
    assert added[1] == {**added[1], "call": 2, "messages": ["m2", "m1"]}


def test_a_bad_line_is_refused_and_changes_nothing() -> None:
    cases: list[Any] = [
        ("{", "it is not JSON"),
        ("[]", "list"),
        ("{}", "(none)"),
        ('{"other": 1}', "the keys other; expected a message, tools or a call"),
        ('{"message": 1, "role": "user", "contents": []}', "the keys message, role, contents; expected a message"),
        (
            '{"message": "m1", "role": "user", "contents": ["x"]}',
            "the keys message, role, contents; expected a message",
        ),
        ('{"call": 1, "messages": ["m9"], "response": {}}', "'m9'"),
        ('{"call": 1, "messages": [], "tools": "t9", "response": {}}', "'t9'"),
        ('{"call": 1, "messages": []}', "call 1 needs either a list of updates or a response"),
    ]
    for line, reason in cases:
        read = new_lines()
        with raises(BadLineError, reason):
            read.read(line.encode())
        assert (read.count, read.calls) == (1, [])


JUNK = [
    None,
    True,
    3,
    -1.5,
    float("nan"),
    10**30,
    "x",
    "\ud800",
    [],
    [1],
    ["a"],
    {},
    {"type": "text"},
    {"a": {"type": 5}},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths to all values within a value."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield from places(item, (*path, key))


@given(st.data())
def test_a_damaged_cassette_is_read_or_its_line_is_named(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["loop.jsonl", "talk.jsonl"]))
    written = [json.loads(line) for line in (DATA / name).read_bytes().splitlines()]
    index = data.draw(st.integers(0, len(written) - 1))
    *way, last = data.draw(st.sampled_from([path for path in places(written[index]) if path]))
    holder = written[index]
    for key in way:
        holder = holder[key]
    if isinstance(holder, dict) and data.draw(st.booleans()):
        del holder[last]
    else:
        holder[last] = data.draw(st.sampled_from(JUNK))
    with TemporaryDirectory() as folder:
        path = Path(folder, "c.jsonl")
        path.write_text("".join(f"{json.dumps(line)}\n" for line in written))
        try:
            client = CassetteChatClient(path)
        except ValueError as error:
            reason = str(error)
            assert f"{path}, line {index + 1}" in reason or "no line above has that name" in reason
            return
        for call in client.recorded_calls:
            assert repr(call).startswith("<call ")
            assert isinstance(call.to_response(), ChatResponse)
        with pytest.raises(CassetteMissError):
            asyncio.run(ask(client, "never sent before"))


def test_a_first_line_of_another_kind_is_refused() -> None:
    cases: list[Any] = [
        ('{"cassette": 2}', "format 2"),
        ('{"tape": 1}', 'first line has no "cassette"'),
    ]
    for line, reason in cases:
        with raises(BadLineError, reason):
            CassetteLines().read(line.encode())


def test_a_call_shows_its_prompt_and_its_answer() -> None:
    read = new_lines()
    said = [{"type": "text", "text": "Let me see."}]
    called = [{"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 1}'}]
    write(read, request("2+3?"), response={"messages": [{"role": "assistant", "contents": [*said, *called]}]})
    write(read, request("hi"), updates=[{"contents": said}, {"contents": [{"type": "usage"}]}])
    assert repr(read.calls[0]) == """<call 1: '2+3?' -> 'Let me see. add({"a": 1})'>"""
    assert repr(read.calls[1]) == "<call 2: 'hi' -> 'Let me see.'>"


def test_a_call_whose_arguments_came_in_pieces_is_displayed_in_one() -> None:
    read = new_lines()
    pieces = [("add", '{"a"'), ("", ": 1}"), ("sub", {"b": 2})]
    contents = [{"type": "function_call", "name": name, "arguments": arguments} for name, arguments in pieces]
    write(read, request("go"), updates=[{"contents": [content]} for content in contents])
    assert read.calls[0].answer == 'add({"a": 1}) sub({"b": 2})'
