"""What of a request is compared, and what must not get into a file."""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.clients.cassette.request import (
    Matcher,
    Redaction,
    SecretFinder,
    contains_secret,
    plain_message,
    plain_options,
    plain_tools,
    redact_secrets,
)
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.settings import SecretString


def as_sent(messages: list[Message], options: dict[str, Any], *, model: str | None) -> dict[str, Any]:
    return {
        "messages": [plain_message(message) for message in messages],
        "tools": plain_tools(options.get("tools")),
        "options": plain_options(options, model=model),
    }


def matcher(match: Any = None) -> Matcher:
    return Matcher(match, Redaction(()))


def key(messages: list[Message], **options: Any) -> str:
    """The key that is made message by message; equal exactly where the whole requests are."""
    request = as_sent(messages, options, model=None)
    made = MATCHER.key(request)
    form = json.dumps(MATCHER.canonical(request), sort_keys=True)
    assert SEEN.setdefault(form, made) == made
    assert list(SEEN.values()).count(made) == 1
    return made


MATCHER = matcher()
SEEN: dict[str, str] = {}


def call(call_id: str, arguments: Any = '{"a": 1}') -> Content:
    return Content.from_function_call(call_id, "add", arguments=arguments)


class Fruit(pydantic.BaseModel):
    name: str
    weight_g: float = 1.0


ASKED = [Message("user", ["What is 2+3?"])]


def test_ids_times_usage_and_private_properties_are_not_compared() -> None:
    cases: list[Any] = [
        [Message("user", ["What is 2+3?"], message_id="m-7", timestamp=3.0, usages={"input_token_count": 1})],
        [Message("user", ["What is 2+3?"], additional_properties={"_attribution": "x", "colour": "red"})],
        [Message("user", [Content.from_text("What is 2+3?", additional_properties={"_note": 1})])],
        [Message("user", [Content.from_text("What is 2+3?", raw_representation=object())])],
        [Message("user", ["What is 2+3?", Content.from_usage({"input_token_count": 3})])],
    ]
    for other in cases:
        assert key(other) == key(ASKED)


def test_role_author_and_contents_are_compared() -> None:
    cases: list[Any] = [
        [Message("user", ["What is 2+4?"])],
        [Message("system", ["What is 2+3?"])],
        [Message("user", ["What is 2+3?"], author_name="Ann")],
        [Message("user", [Content.from_text("What is 2+3?", additional_properties={"note": 1})])],
        [Message("user", ["What is", "2+3?"])],
        [*ASKED, *ASKED],
    ]
    for other in cases:
        assert key(other) != key(ASKED)


def test_ids_of_calls_are_compared_by_first_appearance() -> None:
    def turn(one: str, two: str, first: str, second: str) -> list[Message]:
        results = [Content.from_function_result(first, result="1"), Content.from_function_result(second, result="2")]
        return [Message("assistant", [call(one), call(two)]), Message("tool", results)]

    assert key(turn("a", "b", "a", "b")) == key(turn("x-1", "x-2", "x-1", "x-2"))
    assert key(turn("a", "b", "a", "b")) != key(turn("a", "b", "b", "a"))


def test_arguments_of_calls_are_compared_as_what_they_say() -> None:
    cases: list[Any] = [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}'),
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1.0}', '{"a": 1}'),
        ("", {}),
    ]
    for left, right in cases:
        assert key([Message("assistant", [call("c", left)])]) == key([Message("assistant", [call("c", right)])])
    assert key([Message("assistant", [call("c", "{")])]) != key([Message("assistant", [call("c", "{{")])])


def test_options_that_mean_the_same_are_equal() -> None:
    cases: list[Any] = [
        ({"temperature": 0}, {"temperature": 0.0}),
        ({"logit_bias": {"a": 1, "b": 2}}, {"logit_bias": {"b": 2, "a": 1}}),
        ({"tool_choice": "auto"}, {"tool_choice": {"mode": "auto"}}),
        ({"user": "ann", "metadata": {"k": "v"}}, {}),
        ({"temperature": None}, {}),
        ({"stop": ["a"]}, {"stop": ("a",)}),
        ({"response_format": Fruit}, {"response_format": Fruit.model_json_schema()}),
        ({"extra_headers": {"X-Trace": "1"}, "api_key": "sk"}, {}),
    ]
    for left, right in cases:
        assert key(ASKED, **left) == key(ASKED, **right)


def test_every_other_option_is_compared() -> None:
    cases: list[Any] = [
        ({"temperature": 0.1}, {}),
        ({"seed": 1}, {"seed": 2}),
        ({"store": True}, {"store": 1}),
        ({"stop": ["a", "b"]}, {"stop": ["b", "a"]}),
        ({"tool_choice": {"mode": "required", "required_function_name": "f"}}, {"tool_choice": "required"}),
        ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
        ({"model": "big"}, {"model": "small"}),
        ({"conversation_id": "c1"}, {}),
        ({"instructions": "Be brief."}, {}),
        ({"response_format": Fruit}, {"response_format": {"type": "object"}}),
    ]
    for left, right in cases:
        assert key(ASKED, **left) != key(ASKED, **right)


def test_the_model_of_the_client_counts_where_the_options_name_none() -> None:
    def key_with(of_client: str | None, /, **options: Any) -> str:
        return MATCHER.key(as_sent(ASKED, options, model=of_client))

    assert key_with("big") == key_with(None, model="big") == key_with("small", model="big")
    assert key_with("small") != key_with("big")


def test_a_hosted_tool_is_compared_and_written_without_its_secrets() -> None:
    hosted = {
        "type": "mcp",
        "server_url": "https://example.org",
        "headers": {"Authorization": "Bearer abc"},
        "connection": {"API-Key": "k", "accessToken": "t", "Password": "p", "name": "n", "max_tokens": 3},
    }
    assert plain_tools([hosted]) == [
        {"type": "mcp", "server_url": "https://example.org", "connection": {"name": "n", "max_tokens": 3}}
    ]
    assert key(ASKED, tools=[hosted]) == key(ASKED, tools=[{**hosted, "headers": {"Authorization": "Bearer xyz"}}])


def test_a_format_may_have_a_field_that_is_named_like_a_secret() -> None:
    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    assert plain_options({"response_format": schema}, model=None) == {"response_format": schema}


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


def test_values_of_options_are_written_as_json() -> None:
    cases: list[Any] = [
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (Colour.RED, "red"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (Point(1), {"x": 1}),
        (Fruit(name="fig"), {"name": "fig", "weight_g": 1.0}),
        ({1: "a"}, {"1": "a"}),
        (SecretString("sk-1"), "•••"),
        (int, {"class": "builtins.int"}),
    ]
    for value, plain in cases:
        assert plain_options({"stop": value}, model=None) == {"stop": plain}


def test_changes_by_match_stay_out_of_what_was_read() -> None:
    contents = [{"type": "function_call", "call_id": "c", "arguments": {"a": [1]}, "items": [["x"], {"k": ["y"]}]}]
    read = {
        "messages": [{"role": "user", "contents": contents, "more": {"k": [1]}}],
        "tools": [{"n": [1]}],
        "options": {},
    }
    before = copy.deepcopy(read)

    def empty(value: Any) -> Any:
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            empty(item)
        if isinstance(value, (dict, list)):
            value.clear()
        return value

    matcher(empty).canonical(read)
    assert read == before


def test_calls_are_numbered_across_messages() -> None:
    def talk(*call_ids: str) -> list[Message]:
        return [Message("assistant", [call(call_id)]) for call_id in call_ids]

    assert key(talk("a", "b", "a")) == key(talk("x", "a", "x"))
    assert len({key(talk(*ids)) for ids in ("aaa", "aab", "aba", "abb", "abc")}) == 5


def test_secret_entries_of_older_cassettes_are_not_compared() -> None:
    old = as_sent(ASKED, {}, model=None)
    old["options"]["client_secret"] = "x"
    old["tools"] = [{"type": "mcp", "cookie": "x"}]
    assert MATCHER.key(old) == key(ASKED, tools=[{"type": "mcp", "cookie": "y"}])


class Slotted:
    __slots__ = ("key", "unset")

    def __init__(self, key: object) -> None:
        self.key = key


class Sdk:
    def __init__(self, key: str) -> None:
        self.api_key = key
        self.base_url = "https://example.org/v1"


class Client:
    def __init__(self) -> None:
        self.settings = {"key": SecretString("one"), "nested": [(SecretString("two"),)]}
        self.slotted = Slotted(SecretString("three"))
        self.sdk = Sdk("plain-text-key")
        self.itself = self
        self.empty = SecretString("")
        self.headers = {"X-Tenant": "value-of-a-header", "X-Team": "a"}


def test_secrets_are_found_wherever_a_client_holds_them() -> None:
    assert SecretFinder()(Client()) == {"one", "two", "three", "plain-text-key", "value-of-a-header"}


async def test_secrets_of_calls_that_a_client_recorded_are_found_in_each_of_them() -> None:
    client, find = ScriptedChatClient(["a", "b"]), SecretFinder()
    for number in (1, 2):
        key = SecretString(f"key-{number}")
        message = Message("user", ["x"], additional_properties={"api_key": f"of-a-message-{number}"})
        await client.get_response([message], client_kwargs={"key": key})
        every = range(1, number + 1)
        assert find(client) == {f"{kind}-{each}" for kind in ("key", "of-a-message") for each in every}


def test_short_plain_text_is_no_secret_under_any_name() -> None:
    assert SecretFinder()(Sdk("x")) == set()


def test_pydantic_secrets_count_too() -> None:
    pydantic = pytest.importorskip("pydantic")
    assert SecretFinder()([pydantic.SecretStr("hidden")]) == {"hidden"}


@given(secret=st.text(min_size=1, max_size=12), around=st.text(max_size=5), times=st.integers(0, 3))
def test_a_secret_is_found_however_often_it_is_quoted(secret: str, around: str, times: int) -> None:
    text = around + secret + around
    for _ in range(times):
        text = json.dumps({"text": text}, ensure_ascii=False)
    assert contains_secret(text, [secret])


@given(secret=st.text(alphabet='XYZ"\\/é\n', min_size=1, max_size=12), times=st.integers(0, 3))
def test_no_secret_is_left_in_a_masked_text(secret: str, times: int) -> None:
    text = f"<{secret}> and <{secret}>"
    for _ in range(times):
        text = json.dumps(text)
    assert not contains_secret(redact_secrets(text, [secret]), [secret])


def test_redaction_replaces_text_and_patterns_in_values_not_in_keys() -> None:
    redaction = Redaction(["Ann", re.compile(r"\d{4}")])
    value = {"Ann": ["Ann was born in 1984", {"x": "no", "n": 1984}]}
    assert redaction.value(value) == {"Ann": ["[redacted] was born in [redacted]", {"x": "no", "n": 1984}]}


def test_words_that_say_what_something_is_stay() -> None:
    redaction = Redaction(["text", "user", "stop"])
    message = {"role": "user", "contents": [{"type": "text", "text": "user text"}], "finish_reason": "stop"}
    assert redaction.value(message) == {
        "role": "user",
        "contents": [{"type": "text", "text": "[redacted] [redacted]"}],
        "finish_reason": "stop",
    }
    assert redaction.value({"type": "my text"}) == {"type": "my [redacted]"}


@given(st.text(alphabet="ab[redacted] "))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    redaction = Redaction([re.compile(r"[a-d]+"), "e"])
    assert redaction.text(redaction.text(text)) == redaction.text(text)


def test_redact_takes_text_and_patterns_only() -> None:
    cases: list[Any] = [[3], [None], [re.compile(b"x")]]
    for patterns in cases:
        with pytest.raises(TypeError):
            Redaction(patterns)


def text_updates(*pieces: str) -> list[dict[str, Any]]:
    return [{"contents": [{"type": "text", "text": piece}]} for piece in pieces]


def texts(updates: list[dict[str, Any]]) -> list[str]:
    return [update["contents"][0]["text"] for update in updates]


def test_what_lies_across_pieces_of_a_stream_is_replaced_too() -> None:
    assert texts(Redaction("Ann").updates(text_updates("Hi ", "Ann", "!"))) == ["Hi ", "[redacted]", "!"]
    sent = text_updates("Hi A", "n", "n!")
    assert "".join(texts(Redaction("Ann").updates(sent))) == "Hi [redacted]!"
    assert texts(sent) == ["Hi A", "n", "n!"]


def test_arguments_are_redacted_call_by_call() -> None:
    def piece(call_id: str, arguments: str) -> dict[str, Any]:
        return {"contents": [{"type": "function_call", "call_id": call_id, "arguments": arguments}]}

    sent = [piece("c1", '{"who": "A'), piece("", 'nn"}'), piece("c2", '{"who": "A'), piece("", 'dam"}')]
    redacted = Redaction("Ann").updates(sent)
    arguments = [update["contents"][0]["arguments"] for update in redacted]
    assert arguments == ['{"who": "[redacted]"}', "", '{"who": "A', 'dam"}']


@given(st.lists(st.text(alphabet="An ", max_size=4), max_size=6))
def test_no_redacted_text_survives_in_a_stream(pieces: list[str]) -> None:
    whole = "".join(texts(Redaction("Ann").updates(text_updates(*pieces))))
    assert "Ann" not in whole
    assert whole == "".join(pieces).replace("Ann", "[redacted]")
