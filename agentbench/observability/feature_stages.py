"""Features that may still change: marks on their functions and classes, and a warning when they are first used.

The warning is off unless the environment variable `AGENTBENCH_STAGE_WARNINGS` is true when the feature is imported,
because it would appear in the output of notebooks.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, TypeVar

from agentbench._user_code import warn_user
from agentbench.exceptions import ExperimentalWarning
from agentbench.settings import read_flag

_T = TypeVar("_T", bound=Callable[..., Any])

STAGE_WARNINGS: Final = "AGENTBENCH_STAGE_WARNINGS"
_warned: set[str] = set()


class ExperimentalFeature(StrEnum):
    """The features that may change or disappear in any version.

    What belongs to such a feature has the attributes `__feature_stage__` and `__feature_id__`.

    Example:
        from agentbench import ExperimentalFeature, FileHistoryProvider

        assert FileHistoryProvider.__feature_id__ == ExperimentalFeature.FILE_HISTORY
    """

    EVALS = "EVALS"
    FIDES = "FIDES"
    FILE_HISTORY = "FILE_HISTORY"
    FUNCTIONAL_WORKFLOWS = "FUNCTIONAL_WORKFLOWS"
    HARNESS = "HARNESS"
    SKILLS = "SKILLS"


class ReleaseCandidateFeature(StrEnum):
    """The features that are complete and will change only to correct errors; at present there are none.

    Example:
        from agentbench import ReleaseCandidateFeature

        assert list(ReleaseCandidateFeature) == []
    """


def experimental(*, feature_id: ExperimentalFeature) -> Callable[[_T], _T]:
    """Mark a function or class as part of an experimental feature; protocols stay as they are.

    Args:
        feature_id: The feature.

    Example:
        from agentbench import ExperimentalFeature
        from agentbench.observability import experimental


        @experimental(feature_id=ExperimentalFeature.SKILLS)
        def load_skills(): ...


        assert load_skills.__feature_stage__ == "experimental"
    """

    def mark(target: Any) -> Any:
        if getattr(target, "_is_protocol", False):
            return target
        if read_flag(os.environ.get(STAGE_WARNINGS, "")):
            target = _add_warning(target, feature_id)
        target.__feature_stage__, target.__feature_id__ = "experimental", feature_id.value
        note = f"Experimental ({feature_id.value}): this may change in any version."
        target.__doc__ = f"{inspect.cleandoc(target.__doc__ or '')}\n\n{note}".strip()
        return target

    return mark


def _add_warning(target: Any, feature_id: ExperimentalFeature) -> Any:
    def warn() -> None:
        if feature_id not in _warned:
            _warned.add(feature_id)
            text = f"{target.__name__} belongs to the experimental feature {feature_id.value}, which may change."
            warn_user(text, ExperimentalWarning)

    if isinstance(target, type):
        return _warn_in_class(target, warn)
    if inspect.iscoroutinefunction(target):

        @functools.wraps(target)
        async def run(*args: Any, **kwargs: Any) -> Any:
            warn()
            return await target(*args, **kwargs)

        return run

    @functools.wraps(target)
    def call(*args: Any, **kwargs: Any) -> Any:
        warn()
        return target(*args, **kwargs)

    return call


def _warn_in_class(cls: Any, warn: Callable[[], None]) -> Any:
    initialize, announce = cls.__init__, vars(cls).get("__init_subclass__")

    @functools.wraps(initialize)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        warn()
        initialize(self, *args, **kwargs)

    def init_subclass(subclass: Any, /, **kwargs: Any) -> None:
        warn()
        if announce is None:
            super(cls, subclass).__init_subclass__(**kwargs)
        else:
            announce.__func__(subclass, **kwargs)

    cls.__init__, cls.__init_subclass__ = init, classmethod(init_subclass)
    return cls
