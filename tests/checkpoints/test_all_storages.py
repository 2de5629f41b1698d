"""Every storage does what the one in memory does, whatever is asked of it and in whatever order."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from agentbench._clock import CountingIds, TickingClock
from agentbench.checkpoints.access import list_lineage
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.parts.content_storage import ContentAddressedStorage
from agentbench.checkpoints.redis import RedisCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.exceptions import CheckpointNotFoundError, WorkflowBusyError
from agentbench.testing import storage_suite
from tests.checkpoints.plain_backend import PlainBackend, PlainStorage
from tests.parts.errors import raises
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

T = TypeVar("T")
Open = Callable[[], ContentAddressedStorage]

CHAINS = ("flow", "flow/thread 1", "flöw\n'\"%_*:{}")
chains = st.sampled_from(CHAINS)
places = st.integers(0, 30)
"""Which of the checkpoints that there are, or were, in the order of saving."""


class StorageMachine(RuleBasedStateMachine):
    """Does the same with a storage and with the one in memory, and compares what both answer."""

    open: Open

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.model = InMemoryCheckpointStorage()
        self.numbers = itertools.count(1)
        self.clock, self.ids = (TickingClock(), TickingClock()), (CountingIds(), CountingIds())
        self.ever: list[str] = []
        self.talk: list[str] = []

    @initialize()
    def begin(self) -> None:
        self.storage = type(self).open()
        for chain in self.call(self.storage.list_workflow_names()):
            self.call(self.storage.delete_chain(chain))

    def teardown(self) -> None:
        self.storage.close()
        self.loop.close()

    def call(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self.loop.run_until_complete(wait())

    def both(self, work: Callable[[Any], Awaitable[Any]]) -> tuple[Any, Any]:
        return tuple(self.outcome(work, storage) for storage in (self.model, self.storage))

    def outcome(self, work: Callable[[Any], Awaitable[Any]], storage: Any) -> Any:
        try:
            return without_bytes(self.call(work(storage)))
        except (CheckpointNotFoundError, WorkflowBusyError) as error:
            return type(error)

    def compare(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        expected, found = self.both(work)
        assert found == expected
        return found

    def one_of(self, place: int) -> str:
        return self.ever[place % len(self.ever)] if self.ever else "never there"

    def made(self, chain: str, checkpoint_id: str, seq: int, grows: int, run: str | None) -> WorkflowCheckpoint:
        number = next(self.numbers)
        self.talk = [*self.talk, *(f"{number}.{each} ".ljust(90, "x") for each in range(grows))]
        metadata: dict[str, Any] = {"graph_signature": {"start": "a", "executors": {"a": "m.A"}}, "note": {number: "n"}}
        if seq:
            metadata["seq"] = seq
        if run:
            metadata["run_id"] = run
        return WorkflowCheckpoint(
            chain,
            "hash",
            checkpoint_id=checkpoint_id,
            previous_checkpoint_id=self.ever[-1] if self.ever else None,
            timestamp=f"2026-01-01T00:00:{number % 7:02d}.000000+00:00",
            messages={"a": [(number, "waiting")] * (number % 3)},
            state={"talk": list(self.talk), "many": {each: each for each in range(number % 40)}, "long": "w" * 2000},
            iteration_count=number,
            metadata=metadata,
        )

    @rule(chain=chains, seq=st.integers(0, 12), grows=st.integers(0, 40), run=st.sampled_from([None, "r1", "r2"]))
    def save(self, chain: str, seq: int, grows: int, run: str | None) -> None:
        checkpoint = self.made(chain, f"cp {len(self.ever)}", seq, grows, run)
        self.compare(lambda storage: storage.save(checkpoint))
        self.ever.append(checkpoint.checkpoint_id)

    @rule(place=places, chain=chains, seq=st.integers(1, 12))
    def save_again(self, place: int, chain: str, seq: int) -> None:
        checkpoint = self.made(chain, self.one_of(place), seq, 3, "r3")
        self.compare(lambda storage: storage.save(checkpoint))

    @rule(chain=chains, off=st.sampled_from([0, 0, 1]))
    def move_on(self, chain: str, off: int) -> None:
        latest = self.call(self.model.get_latest(workflow_name=chain))
        head = latest.metadata.get("seq", 0) if latest else 0
        checkpoint = self.made(chain, f"cp {len(self.ever)}", head + 1, 1, None)
        if self.compare(lambda storage: storage.save_if_head(checkpoint, head + off)) == checkpoint.checkpoint_id:
            self.ever.append(checkpoint.checkpoint_id)

    @rule(place=places, chain=st.one_of(st.none(), chains), edited=st.booleans(), with_history=st.booleans())
    def fork(self, place: int, chain: str | None, edited: bool, with_history: bool) -> None:
        original, sources = self.one_of(place), iter(zip(self.clock, self.ids, strict=True))

        def work(storage: Any) -> Awaitable[Any]:
            clock, ids = next(sources)
            return fork_checkpoint(
                storage,
                original,
                workflow_name=chain,
                state_updates={"talk": ["edited"]} if edited else None,
                with_history=with_history,
                clock=clock,
                ids=ids,
            )

        found = self.compare(work)
        if found is not CheckpointNotFoundError:
            self.ever.append(found.checkpoint_id)

    @rule(place=places)
    def delete(self, place: int) -> None:
        self.compare(lambda storage: storage.delete(self.one_of(place)))

    @rule(chain=chains, keep=st.integers(1, 6))
    def prune(self, chain: str, keep: int) -> None:
        self.compare(lambda storage: storage.prune(workflow_name=chain, keep=keep))

    @rule(chain=chains)
    def delete_chain(self, chain: str) -> None:
        self.compare(lambda storage: storage.delete_chain(chain))

    @rule()
    def open_again(self) -> None:
        self.storage.close()
        self.storage = type(self).open()

    @rule(place=places)
    def load(self, place: int) -> None:
        self.compare(lambda storage: storage.load(self.one_of(place)))

    @rule(place=places)
    def follow_back(self, place: int) -> None:
        self.compare(lambda storage: list_lineage(storage, self.one_of(place)))

    @rule(
        chain=st.one_of(st.none(), chains),
        run=st.sampled_from([None, "r1", "r3"]),
        place=st.one_of(st.none(), places),
        limit=st.sampled_from([None, 0, 1, 3]),
    )
    def list_infos(self, chain: str | None, run: str | None, place: int | None, limit: int | None) -> None:
        before = None if place is None else self.one_of(place)

        async def facts(storage: Any) -> Any:
            infos = await storage.list_infos(workflow_name=chain, run_id=run, before=before, limit=limit)
            return [
                (each, each.seq, each.run_id, each.iteration, each.n_messages, each.metadata["note"]) for each in infos
            ]

        self.compare(facts)

    @invariant()
    def the_same_checkpoints_in_the_same_order(self) -> None:
        if not hasattr(self, "storage"):
            return
        assert self.call(self.storage.list_workflow_names()) == self.call(self.model.list_workflow_names())
        for chain in CHAINS:
            self.compare(methodcaller("list_checkpoint_ids", workflow_name=chain))
        self.compare(lambda storage: storage.get_latest(workflow_name="flow"))

    @invariant()
    def each_is_what_was_saved(self) -> None:
        if hasattr(self, "storage") and next(self.numbers) % 5 == 0:  # dear, and a loss stays a loss
            for chain in CHAINS:
                self.compare(methodcaller("list_checkpoints", workflow_name=chain))


def without_bytes(answer: Any) -> Any:
    """Checkpoints without the note of how many bytes they took: in memory they take none."""
    if isinstance(answer, list):
        return list(map(without_bytes, answer))
    if isinstance(answer, WorkflowCheckpoint):
        sizes = {key: size for key, size in answer.metadata.get("sizes", {}).items() if key != "bytes"}
        return replace(answer, metadata={**answer.metadata, "sizes": sizes})
    return answer


def drive(open_storage: Open, examples: int) -> None:
    machine = type("Machine", (StorageMachine,), {"open": staticmethod(open_storage)})
    quick = settings(
        max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=quick)


Make = Callable[..., Any]


def plain(_: pytest.FixtureRequest) -> Make:
    backend = PlainBackend()
    return lambda **options: PlainStorage(backend, **options)


def folder(request: pytest.FixtureRequest) -> Make:
    path: Path = request.getfixturevalue("tmp_path")
    return lambda **options: FileCheckpointStorage(path / "checkpoints", **options)


def pickles(request: pytest.FixtureRequest) -> Make:
    return partial(folder(request), codec="pickle")


def sqlite(request: pytest.FixtureRequest) -> Make:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    path: Path = request.getfixturevalue("tmp_path")
    return lambda **options: SQLCheckpointStorage(path / "checkpoints.db", **options)


def postgresql(request: pytest.FixtureRequest) -> Make:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    url = request.getfixturevalue("postgres_url")
    return lambda **options: SQLCheckpointStorage(url, **options)


def redis(request: pytest.FixtureRequest) -> Make:
    pytest.importorskip("redis", reason="redis is not installed")
    url = request.getfixturevalue("redis_url")
    return lambda **options: RedisCheckpointStorage(url, **options)


@pytest.fixture(params=[plain, folder, pickles, sqlite, postgresql, redis], ids=lambda kind: kind.__name__)
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Opens a storage at one place; again, one more at the same place."""
    opened: list[Any] = []
    open_one: Make = request.param(request)

    def open_and_note(**options: Any) -> Any:
        opened.append(open_one(**options))
        return opened[-1]

    yield open_and_note
    for storage in opened:
        storage.close()


async def test_each_does_what_the_published_suite_says(make: Make) -> None:
    storage = make()
    for check in storage_suite.checks():
        for chain in await storage.list_workflow_names():
            await storage.delete_chain(chain)
        # In pickles every value keeps its type.
        if "pickle" not in repr(storage) or check.name != "values_that_json_lacks_are_restored_exactly_or_rejected":
            assert await check(lambda: storage), str(check)


async def test_each_removes_old_checkpoints_as_new_ones_come(make: Make) -> None:
    storage = make(keep_last=3)
    for seq in range(1, 41):
        for chain in ("flow", "other"):
            metadata = {"seq": seq}
            each = WorkflowCheckpoint(chain, "hash", checkpoint_id=f"{chain}-{seq}", metadata=metadata)
            each.state["text"] = f"{seq} " * 1000
            await storage.save(each)
    for chain in ("flow", "other"):
        ids = [f"{chain}-{seq}" for seq in (38, 39, 40)]
        assert await storage.list_checkpoint_ids(workflow_name=chain) == ids
        assert (await make().load(ids[0])).state == {"text": "38 " * 1000}


def test_each_opens_again_and_sees_what_others_at_its_place_save_on_any_event_loop(make: Make) -> None:
    storage, other = make(), make()

    def each(seq: int) -> WorkflowCheckpoint:
        return WorkflowCheckpoint("flow", "hash", checkpoint_id=f"cp-{seq}", metadata={"seq": seq})

    asyncio.run(storage.save(each(1)))
    storage.close()
    storage.close()
    asyncio.run(other.save_if_head(each(2), 1))
    with pytest.raises(WorkflowBusyError):
        asyncio.run(storage.save_if_head(each(3), 1))
    asyncio.run(storage.save_if_head(each(3), 2))
    assert asyncio.run(other.list_checkpoint_ids(workflow_name="flow")) == ["cp-1", "cp-2", "cp-3"]
    assert asyncio.run(storage.get_latest(workflow_name="flow")).checkpoint_id == "cp-3"


def test_nothing_to_keep_is_refused() -> None:
    for kind in (PlainStorage, InMemoryCheckpointStorage):
        with raises(ValueError, "keep_last", "0"):
            kind(keep_last=0)
        for wrong in ("3", 2.5, True):
            with raises(TypeError, "keep_last", repr(wrong)):
                kind(keep_last=wrong)  # type: ignore[arg-type]


def test_the_layer_over_backends_is_like_the_one_in_memory() -> None:
    backends: list[PlainBackend] = []

    def open_storage() -> ContentAddressedStorage:
        if not backends:
            backends.append(PlainBackend())
        return PlainStorage(backends[0])

    drive(open_storage, 60)


def test_a_folder_is_like_the_one_in_memory(tmp_path: Path) -> None:
    drive(lambda: FileCheckpointStorage(tmp_path / "checkpoints"), 40)


def test_an_sqlite_file_is_like_the_one_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    drive(lambda: SQLCheckpointStorage(tmp_path / "checkpoints.db"), 40)


def test_postgresql_is_like_the_one_in_memory(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()
    drive(lambda: SQLCheckpointStorage(url), 15)


def test_redis_is_like_the_one_in_memory(redis_server: RedisServer) -> None:
    pytest.importorskip("redis")
    redis_server.clear()
    drive(lambda: RedisCheckpointStorage(redis_server.url), 25)
