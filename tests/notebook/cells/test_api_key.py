"""The field for an API key: the key reaches the service, and nothing that is stored or shown."""

from __future__ import annotations

import json
import pickle
from typing import Any

import ipywidgets
import pytest

from agentbench.checkpoints import encode_checkpoint_value
from agentbench.exceptions import SettingNotFoundError
from agentbench.notebook import ApiKey
from agentbench.openai import OpenAIChatClient
from tests.notebook.test_form_page import Page
from tests.servers import openai_wire as wire
from tests.servers.openai_server import OpenAIServer, reply

KEY = "sk-nobody-reads-this"


def enter(key: ApiKey, text: str) -> Page:
    """Type a key and press the button, as a page does."""
    page = Page(key)  # type: ignore[arg-type]  # both have a widget
    page.say("reopen")
    page.say("press", action="submit", raw={"value": {"text": text}})
    return page


async def test_a_client_made_before_sends_the_key_that_was_entered_last() -> None:
    pytest.importorskip("openai")
    key = ApiKey("OpenAI")
    with OpenAIServer() as server:
        server.answer(reply(wire.completion()), reply(wire.completion()))
        async with OpenAIChatClient("m", base_url=server.url, api_key=key) as client:
            with pytest.raises(SettingNotFoundError):
                await client.get_response("x")
            for text in ("sk-first", f" {KEY}\n"):
                enter(key, text)
                await client.get_response("x")
    assert [each.headers["authorization"] for each in server.requests] == ["Bearer sk-first", f"Bearer {KEY}"]


@pytest.mark.parametrize("text", ["", "  ", "sk-a key"])
def test_a_text_that_is_no_key_is_refused_and_the_key_before_stays(text: str) -> None:
    key = ApiKey()
    enter(key, KEY)
    assert enter(key, text).status()["live"]
    assert key() == KEY


def test_a_key_is_in_no_saved_widget_no_answer_to_the_page_and_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    key = ApiKey()
    page = enter(key, KEY)
    page.say("ready")
    client = OpenAIChatClient("m", api_key=key)
    shown = [key, vars(key), key.text, key._repr_mimebundle_(), client, vars(client), vars(client._ab_connection)]
    told = json.dumps([ipywidgets.Widget.get_manager_state(), page.heard]) + repr(shown) + capsys.readouterr().out
    assert KEY not in told + json.dumps(client.to_dict())
    assert "memory only" in key.text


@pytest.mark.parametrize("store", [pickle.dumps, encode_checkpoint_value], ids=["pickle", "checkpoint"])
def test_a_key_cannot_be_stored(store: Any) -> None:
    key = ApiKey()
    enter(key, KEY)
    for value in (key, {"state": [key]}, OpenAIChatClient("m", api_key=key)):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - each way of storing has its own
            store(value)
        assert KEY not in repr(caught.value)
