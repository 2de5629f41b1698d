"""A server that speaks the protocol, and an environment that says nothing of one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.servers.openai_server import OpenAIServer


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("OPENAI_", "AGENTBENCH_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running
