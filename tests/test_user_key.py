"""The key of a user: made once, private, and never in the working directory."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from agentbench._files.user_key import read_user_key, user_key
from tests.parts.errors import raises


def test_it_is_made_once_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_CONFIG_DIR", str(tmp_path / "config"))
    assert read_user_key() is None
    key = user_key()
    assert len(key) == 32
    assert (user_key(), read_user_key()) == (key, key)
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "config" / "user.key").stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the variable is one of Linux")
def test_it_is_in_the_configuration_folder_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTBENCH_CONFIG_DIR")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_key() == (tmp_path / "agentbench" / "user.key").read_bytes()
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    with raises(OSError, "AGENTBENCH_CONFIG_DIR"):
        user_key()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_CONFIG_DIR", str(tmp_path))
    (tmp_path / "other").write_bytes(bytes(32))
    (tmp_path / "user.key").symlink_to(tmp_path / "other")
    with raises(OSError):
        user_key()
