"""A Dask cluster of two processes on this machine, for the tests of a file."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="distributed is not installed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two workers with one thread each. A worker that a test kills is replaced."""
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # reports every worker that a test kills
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of distributed: sockets and processes that it closes late
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client


async def until_exists(path: Path) -> None:
    """Wait for a file that another process creates."""
    while not await asyncio.to_thread(path.exists):  # noqa: ASYNC110 - there is no other sign of it
        await asyncio.sleep(0.01)
