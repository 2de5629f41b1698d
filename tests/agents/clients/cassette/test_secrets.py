"""What must not get into a file."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.clients.cassette.secrets import (
    Redaction,
    SecretFinder,
    contains_secret,
    redact_secrets,
)
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.messages.message import Message
from agentbench.settings import SecretString


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
