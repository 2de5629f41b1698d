"""Where a secret might be shown: in errors, and in logs of every level."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

LOUD = ("", "agentbench", "agentbench.openai", "openai", "httpx", "httpx2", "httpcore", "httpcore2", "asyncio")


@contextmanager
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in LOUD}
    for name in LOUD:
        logging.getLogger(name).setLevel(logging.DEBUG)
    caplog.handler.setLevel(logging.DEBUG)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def texts_of(error: BaseException | None) -> Iterator[str]:
    """Whatever an error, or one behind it, may be printed as."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield from (str(each), repr(each), repr(each.args), repr(vars(each)))
        yield "".join(traceback.format_exception(type(each), each, each.__traceback__))
        waiting += [each.__cause__, each.__context__, getattr(each, "inner_exception", None)]
