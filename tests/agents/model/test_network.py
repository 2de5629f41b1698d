from __future__ import annotations

import logging

import pytest

from agentbench.agents.model.network import is_offline, needs_network, require_network
from agentbench.exceptions import ChatClientException
from tests.parts.errors import raises


class Remote:
    NEEDS_NETWORK = True

    def __init__(self, url: str) -> None:
        self.url = url

    def service_url(self) -> str:
        return self.url


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), (" YES ", True), ("", False), ("no", False)],
)
def test_the_switch_is_read_at_each_question(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", value)
    assert is_offline() is expected
    monkeypatch.delenv("AGENTBENCH_OFFLINE")
    assert is_offline() is False


def test_an_unknown_word_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "certainly")
    with caplog.at_level(logging.WARNING, logger="agentbench"):
        assert (is_offline(), is_offline()) == (False, False)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["AGENTBENCH_OFFLINE is 'certainly'"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:11434/v1", False),
        ("http://models.localhost/v1", False),
        ("https://api.example.org/v1", True),
        ("https://localhost.example.org", True),
        ("http://[broken", True),
    ],
)
def test_what_is_on_this_machine_is_let_through(url: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")
    client = Remote(url)

    assert needs_network(client) is expected
    if expected:
        with raises(ChatClientException, "Remote ", "AGENTBENCH_OFFLINE"):
            require_network(client)
    else:
        require_network(client)
