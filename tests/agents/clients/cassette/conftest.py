from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording is what the tests of cassettes are about; the services that they record are on this machine."""
    monkeypatch.delenv("AGENTBENCH_OFFLINE")
