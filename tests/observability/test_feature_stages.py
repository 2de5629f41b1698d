"""Experimental features are marked, and warn at their first use if that is switched on."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any, Protocol

import pytest

from agentbench import (
    ExperimentalFeature,
    FileHistoryProvider,
    ReleaseCandidateFeature,
    SkillsProvider,
    create_harness_agent,
    evaluate_agent,
    evaluate_workflow,
    workflow,
)
from agentbench.exceptions import ExperimentalWarning
from agentbench.observability import experimental
from agentbench.observability.feature_stages import STAGE_WARNINGS, _warned


@pytest.fixture
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STAGE_WARNINGS, "1")
    _warned.clear()


def warnings_of(use: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    return [each for each in caught if each.category is ExperimentalWarning]


@pytest.mark.parametrize(
    ("member", "feature"),
    [
        (evaluate_agent, "EVALS"),
        (evaluate_workflow, "EVALS"),
        (FileHistoryProvider, "FILE_HISTORY"),
        (workflow, "FUNCTIONAL_WORKFLOWS"),
        (create_harness_agent, "HARNESS"),
        (SkillsProvider, "SKILLS"),
    ],
)
def test_experimental_features_are_marked(member: Any, feature: str) -> None:
    assert (member.__feature_stage__, member.__feature_id__) == ("experimental", ExperimentalFeature(feature))
    assert member.__doc__.endswith(f"Experimental ({feature}): this may change in any version.")
    assert not list(ReleaseCandidateFeature)


def test_nothing_warns_by_default(tmp_path: Any) -> None:
    assert issubclass(ExperimentalWarning, FutureWarning)
    assert warnings_of(lambda: FileHistoryProvider(tmp_path)) == []


@pytest.mark.usefixtures("switched_on")
def test_the_first_use_in_a_process_warns_at_the_line_of_the_user() -> None:
    mark = experimental(feature_id=ExperimentalFeature.SKILLS)

    def define() -> Any:
        return mark(lambda: 1)

    assert warnings_of(define) == []
    (warning,) = warnings_of(define())
    assert warning.filename == __file__
    assert warnings_of(define()) == []

    async def later() -> int:
        return 2

    _warned.clear()
    run = mark(later)
    assert len(warnings_of(lambda: asyncio.run(run()))) == 1


@pytest.mark.usefixtures("switched_on")
@pytest.mark.parametrize("use", [lambda cls: cls(3), lambda cls: type("Sub", (cls,), {})])
def test_classes_warn_when_they_are_instantiated_or_subclassed(use: Any) -> None:
    class Store:
        def __init__(self, size: int) -> None:
            self.size = size

    cls = experimental(feature_id=ExperimentalFeature.FIDES)(Store)
    assert len(warnings_of(lambda: use(cls))) == 1
    assert cls(3).size == 3


def test_protocols_stay_as_they_are() -> None:
    class Reads(Protocol):
        def read(self) -> str: ...

    assert not hasattr(experimental(feature_id=ExperimentalFeature.EVALS)(Reads), "__feature_stage__")
