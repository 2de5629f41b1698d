from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recording is what the tests of cassettes are about; the services that they record are on this machine."""
    monkeypatch.delenv("AGENTBENCH_OFFLINE")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talk.jsonl"
