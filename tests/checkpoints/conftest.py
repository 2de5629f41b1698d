from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def server(redis_url: str) -> Iterator[Any]:
    """A client of Redis of the test's own."""
    import redis

    with redis.Redis.from_url(redis_url) as client:
        yield client
