"""Optional packages: there, missing, broken."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from agentbench._extras import require
from agentbench.exceptions import MissingExtraError


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return tmp_path


def test_a_missing_package_is_reported_with_its_extra_and_purpose() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_package.part", extra="notebook", purpose="tabulate a run")
    assert (caught.value.extra, caught.value.package) == ("notebook", "no_such_package")
    assert "tabulate a run" in str(caught.value)


def test_a_missing_part_of_an_installed_package_counts_as_missing() -> None:
    with pytest.raises(MissingExtraError) as caught:
        require("json.no_such_part", extra="notebook", purpose="read")
    assert caught.value.package == "json.no_such_part"


@pytest.mark.parametrize("missing", ["no_such_dependency", "agentbench_test_needy_dependency"])
def test_a_package_that_lacks_something_itself_keeps_its_own_error(packages: Path, missing: str) -> None:
    (packages / "agentbench_test_needy.py").write_text(f"import {missing}\n", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match=missing) as caught:
        require("agentbench_test_needy", extra="notebook", purpose="read")
    assert not isinstance(caught.value, MissingExtraError)
    assert caught.traceback[-1].path.name == "agentbench_test_needy.py"  # type: ignore[union-attr]
