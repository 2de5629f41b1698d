"""All places for records and parts do the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentbench.checkpoints.file_storage.backend import FileBackend
from agentbench.checkpoints.parts.backend import StorageBackend
from tests.checkpoints.backend_contract import BackendContract, OpenBackend
from tests.checkpoints.plain_backend import PlainBackend


def plain(request: pytest.FixtureRequest) -> Callable[[], StorageBackend]:
    backend = PlainBackend()
    return lambda: backend


def folder(request: pytest.FixtureRequest) -> Callable[[], StorageBackend]:
    path: Path = request.getfixturevalue("tmp_path")
    return lambda: FileBackend(str(path))


def redis(request: pytest.FixtureRequest) -> Callable[[], StorageBackend]:
    pytest.importorskip("redis", reason="redis is not installed")
    from agentbench.checkpoints.redis_storage.backend import RedisBackend

    url = request.getfixturevalue("redis_url")
    return lambda: RedisBackend(url, prefix="agentbench")


def sqlite(request: pytest.FixtureRequest) -> Callable[[], StorageBackend]:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    from agentbench.checkpoints.sql_storage.backend import SQLBackend

    path: Path = request.getfixturevalue("tmp_path")
    return lambda: SQLBackend(path / "some" / "folder" / "checkpoints.db")


def postgresql(request: pytest.FixtureRequest) -> Callable[[], StorageBackend]:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    from agentbench.checkpoints.sql_storage.backend import SQLBackend

    url = request.getfixturevalue("postgres_url")
    return lambda: SQLBackend(url)


@pytest.fixture(params=[plain, folder, sqlite, postgresql, redis], ids=lambda kind: kind.__name__)
def open_backend(request: pytest.FixtureRequest) -> Iterator[OpenBackend]:
    opened: list[StorageBackend] = []
    make: Callable[[], StorageBackend] = request.param(request)

    def open_one() -> StorageBackend:
        opened.append(make())
        return opened[-1]

    yield open_one
    for backend in opened:
        backend.close()


class TestEveryBackend(BackendContract):
    def id_of(self, backend: StorageBackend, text: str) -> str:
        if isinstance(backend, FileBackend):  # whose ids are names of files
            return text.encode("utf-8", "surrogatepass").hex()
        return super().id_of(backend, text)
