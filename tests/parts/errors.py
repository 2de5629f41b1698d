"""`raises` and `warns` check a class and the facts of a text, so that its sentences may be improved."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import pytest

E = TypeVar("E", bound=BaseException)


def raises(kind: type[E] | tuple[type[E], ...], *facts: object, **attributes: Any) -> pytest.RaisesExc[E]:
    """Expect an error with these attributes, whose text holds every fact (a name, a number) in any order."""

    def check(error: E) -> bool:
        found = {name: getattr(error, name) for name in attributes}
        assert found == attributes
        return True

    return pytest.raises(kind, match=_all_of(facts) or None, check=check)


def warns(kind: type[Warning], *facts: object) -> pytest.WarningsRecorder:
    """Expect a warning whose text holds every fact in any order."""
    return pytest.warns(kind, match=_all_of(facts) or None)


def _all_of(facts: tuple[object, ...]) -> str:
    return "".join(rf"(?=[\s\S]*{_pattern(str(fact))})" for fact in facts)


def _pattern(fact: str) -> str:
    """A number is not found within a longer one."""
    return rf"(?<![\d.]){fact}(?!\.?\d)" if fact.isdigit() else re.escape(fact)
