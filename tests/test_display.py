"""Views are found by name, on first display, and are never in the way of the object."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentbench._display import Displayable, call_view, drawn_by
from agentbench.exceptions import MissingExtraError


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module of views, importable as `views_for_test`."""
    module = types.ModuleType("views_for_test")
    monkeypatch.setitem(sys.modules, "views_for_test", module)
    return module


@drawn_by("views_for_test:card")
@dataclass(frozen=True, slots=True)
class Card(Displayable):
    title: str


def test_an_object_shows_its_view_beside_its_plain_text(views: types.ModuleType) -> None:
    views.card = lambda card: {"text/html": f"<b>{card.title}</b>"}  # type: ignore[attr-defined]
    assert Card("hi")._repr_mimebundle_() == {"text/plain": "Card(title='hi')", "text/html": "<b>hi</b>"}


def test_without_the_extra_the_plain_text_is_the_whole_view(views: types.ModuleType) -> None:
    def card(_: Card) -> dict[str, Any]:
        raise MissingExtraError("notebook", "graphviz")

    views.card = card  # type: ignore[attr-defined]
    assert Card("hi")._repr_mimebundle_() == {"text/plain": "Card(title='hi')"}


@pytest.mark.filterwarnings("default")  # IPython warns about the failure; that is its way to be loud
def test_a_view_that_fails_does_not_hide_the_object(
    views: types.ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    views.card = lambda card: card.no_such_field  # type: ignore[attr-defined]
    bundle, _ = formatters.DisplayFormatter().format(Card("hi"))
    assert bundle["text/plain"] == "Card(title='hi')"
    assert "no_such_field" in "".join(capsys.readouterr())


def test_a_missing_package_of_the_notebook_is_reported_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agentbench_test_view.py").write_text("import ipywidgets\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(MissingExtraError, match=r"ipywidgets.*agentbench\[notebook\]"):
        call_view("agentbench_test_view:stepper")
