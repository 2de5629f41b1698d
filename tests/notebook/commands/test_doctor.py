"""What `doctor` tells, and what it must not tell."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import metadata
from types import ModuleType
from typing import Any

import pytest

from agentbench.exceptions import install_command
from agentbench.notebook import doctor
from agentbench.notebook.commands.doctor import Finding
from agentbench.notebook.runtime import settings


@pytest.fixture(autouse=True)
def settings_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_current", settings.Settings())


def module() -> ModuleType:
    return sys.modules["agentbench.notebook.commands.doctor"]


def found(topic: str) -> Finding:
    return next(finding for finding in doctor().findings if finding.topic == topic)


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only packages are asked for that the tests themselves need."""
    requirements = ['ipywidgets>=8.1; extra == "notebook"', "pandas>=2.2 ; extra == 'notebook'"]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)


@pytest.mark.usefixtures("complete")
def test_where_nothing_is_missing_no_problem_is_found() -> None:
    report = doctor()
    assert report.ok, report.text
    assert report.text.endswith("No problems found.")


def test_values_of_variables_and_paths_are_never_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("AGENTBENCH_SOMETHING", "hidden-value")
    text = doctor().text
    assert "OPENAI_API_KEY" in text
    assert "AGENTBENCH_SOMETHING" in text
    for hidden in ("sk-very-secret", "hidden-value", os.path.expanduser("~"), os.getcwd(), sys.prefix):
        assert hidden not in text


@pytest.mark.usefixtures("complete")
def test_a_missing_package_is_reported_with_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: _missing(name) if name == "pandas" else version(name)
    )  # fmt: skip
    report = doctor()
    assert [finding.topic for finding in report.problems] == ["pandas"]
    assert install_command("notebook") in report.text
    assert report.text.endswith("1 problem.")


def test_a_package_that_is_too_old_is_reported_with_the_needed_version(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    monkeypatch.setattr(metadata, "requires", lambda name: ['pandas>=2.2; extra == "notebook"'])
    monkeypatch.setattr(metadata, "version", lambda name: "1.5.3" if name == "pandas" else version(name))
    assert ">=2.2" in found("pandas").problem


def test_the_packages_of_storages_are_reported_and_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    requirements = ["SQLAlchemy>=2.0; extra == 'notebook'", "SQLAlchemy>=2.0; extra == 'sql'"]
    requirements += ["psycopg[binary]>=3.1; extra == 'postgres'", "redis>=5.0; extra == 'redis'"]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    monkeypatch.setattr(metadata, "version", lambda name: _missing(name) if name == "redis" else version(name))
    assert found("psycopg").found == version("psycopg")
    assert install_command("redis") in found("redis").found
    assert found("redis").problem == ""
    assert [found(name).sign for name in ("redis", "psycopg")] == ["–", "✓"]  # noqa: RUF001 - a dash
    topics = [finding.topic.lower() for finding in doctor().findings]
    assert topics.count("sqlalchemy") == 1


def test_a_renderer_that_is_set_and_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_RENDERER", "dot")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert found("renderer").problem != ""


@pytest.mark.usefixtures("complete")
def test_a_check_that_raises_is_a_finding_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise OSError("no such thing")

    monkeypatch.setattr(module(), "nest_state", broken)
    assert [finding.problem for finding in doctor().problems] == ["OSError: no such thing"]


def test_patched_tasks_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(asyncio.Task):  # type: ignore[type-arg]
        pass

    monkeypatch.setattr(asyncio, "Task", Slow)
    assert "Restart" in found("nest_asyncio").problem


def test_colab_is_reported_with_the_line_that_panels_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    assert "enable_custom_widget_manager" in found("front end").found


def _missing(name: str) -> Any:
    raise metadata.PackageNotFoundError(name)


def test_settings_are_reported_and_wrong_variables_named_without_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found("settings") == Finding("settings", "defaults")
    settings.configure(theme="dark", prices={"some-model": (1, 2)})
    monkeypatch.setenv("AGENTBENCH_LOOP", "sk-secret")
    told = found("settings")
    assert told.found == "theme=dark, prices"
    assert told.problem == "AGENTBENCH_LOOP is ignored. Input should be 'engine', 'kernel' or 'uvloop'."
    assert "sk-secret" not in doctor().text
