"""Expect errors by class and facts, so that their sentences can be improved without changing tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def raises(
    error: type[BaseException] | tuple[type[BaseException], ...], *facts: object
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Expect an error of a class whose text mentions all facts: names, numbers, or what to type instead."""
    with pytest.raises(error) as caught:
        yield caught
    missing = [str(fact) for fact in facts if str(fact) not in str(caught.value)]
    assert not missing, f"{str(caught.value)!r} does not mention {missing}"
