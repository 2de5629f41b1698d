"""Processes that share a run (`pytest -n auto`), of tests and of notebooks: each takes a whole file."""

from __future__ import annotations

from typing import Any

import pytest

# Files that take long, or share a browser or a server that is kept while the next file needs it too. They come first,
# so that all processes end together.
FIRST = ("tests/browser/", "notebooks/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # files are taken in the order below
    return LoadFileScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(
            key=lambda item: next((at for at, name in enumerate(FIRST) if item.nodeid.startswith(name)), len(FIRST))
        )
