"""What is special about Redis as a place for records and parts, on a real server."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.parts import part_id
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException
from tests.checkpoints.backend_contract import delete_chain
from tests.parts.errors import raises
from tests.servers.redis import RedisServer

redis = pytest.importorskip("redis", reason="redis is not installed")

from agentbench.checkpoints.redis_storage.backend import RedisBackend  # noqa: E402  needs redis
from agentbench.checkpoints.redis_storage.scripts import SWEEP  # noqa: E402

NOON = "2026-01-01T12:00:00.000000+00:00"


def record(checkpoint_id: str, seq: int = 1, *, chain: str = "c", needs: tuple[str, ...] = (), **changes: Any) -> Any:
    content = "[" + ",".join(f'"{name}"' for name in needs) + "]"
    return CheckpointRecord(checkpoint_id, chain, seq, changes.pop("timestamp", NOON), None, "{}", content, **changes)


def put(backend: RedisBackend, each: CheckpointRecord, *texts: str, expected_seq: int | None = None) -> None:
    parts = {part_id(text): text for text in texts}
    backend.put(each, parts, generation=backend.generation(each.workflow_name), expected_seq=expected_seq)


@pytest.fixture
def backend(redis_url: str) -> Iterator[RedisBackend]:
    made = RedisBackend(redis_url, prefix="agentbench")
    yield made
    made.close()


class Hooked:
    """A client that does something before a script is run, as somebody else would at that moment."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.before: dict[str, Callable[[], None]] = {}

    def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] == "EVALSHA" and (hook := self.before.get(args[1].decode())):
            hook()
        return self.client.execute_command(*args, **options)


# ---------------------------------------------------------------------------------------------------------------- order

TEXTS = st.text(st.characters(codec=None), max_size=3) | st.text("\0\1\2a", max_size=4)
SEQS = st.integers(0, 20) | st.integers(2**53 - 2, 2**53 + 2) | st.integers(0, 2**200)


@given(st.lists(st.tuples(SEQS, st.just(NOON) | TEXTS), max_size=8))
def test_records_are_in_order_of_number_then_time_then_saving(
    redis_server: RedisServer, keys: list[tuple[int, str]]
) -> None:
    redis_server.clear()
    backend = RedisBackend(redis_server.url, prefix="agentbench")
    for at, (seq, timestamp) in enumerate(keys):
        put(backend, record(f"id{at}", seq, timestamp=timestamp))

    expected = sorted(enumerate(keys), key=lambda item: item[1])
    found = backend.heads("c")
    backend.close()

    assert [(each.checkpoint_id, each.seq, each.timestamp) for each in found] == [
        (f"id{at}", seq, timestamp) for at, (seq, timestamp) in expected
    ]


def test_no_name_reaches_the_keys_of_another_chain(backend: RedisBackend) -> None:
    cases: list[str] = ["c:x", "*", "c*", "?", "c}:order:c", "", "\0", "order:c", "c\0"]
    for rival in cases:
        put(backend, record("mine", needs=(part_id("shared"),)), "shared")
        put(backend, record("theirs", chain=rival), "shared", "more")

        assert delete_chain(backend, rival) == 1
        assert backend.delete(rival, ["mine"], sweep=True) == 0
        assert backend.chains() == ["c"]
        assert backend.parts("c", [part_id("shared")]) == {part_id("shared"): "shared"}


def test_storages_of_different_prefixes_do_not_see_each_other(backend: RedisBackend, redis_url: str) -> None:
    other = RedisBackend(redis_url, prefix="agentbench:order")
    put(backend, record("a"))
    put(other, record("a", chain="d"))

    assert (backend.chains(), other.chains()) == (["c"], ["d"])
    delete_chain(other, "d")
    other.close()
    assert backend.ids("c") == ["a"]


def test_a_prefix_that_would_mix_with_others_is_refused() -> None:
    cases: list[str] = ["", "a}b", "{a"]
    for prefix in cases:
        with raises(ValueError, "without"):
            RedisBackend("redis://localhost", prefix=prefix)


def test_long_lists_come_without_a_gap(backend: RedisBackend) -> None:
    ids = [f"id{number}" for number in range(1100)]
    generation = backend.generation("c")
    for number, checkpoint_id in enumerate(ids):
        backend.put(record(checkpoint_id, number), {}, generation=generation)

    assert [each.checkpoint_id for each in backend.heads("c")] == ids
    assert [each.checkpoint_id for each in backend.heads("c", limit=700, before="id1050")] == ids[350:1050]
    assert backend.heads("c", limit=0) == []
    assert backend.delete("c", ids[:-1], sweep=True) == 1099
    assert backend.ids("c") == ids[-1:]


# ------------------------------------------------------------------------------------------------- one atomic step each


def test_a_usual_save_is_one_round_trip(server: Any) -> None:
    sent: list[Any] = []

    class Counted(Hooked):
        def execute_command(self, *args: Any, **options: Any) -> Any:
            sent.append(args)
            return super().execute_command(*args, **options)

    backend = RedisBackend(Counted(server), prefix="agentbench")
    put(backend, record("a"), "one")
    generation = backend.generation("c")
    sent.clear()
    backend.put(record("b", 2), {part_id("two"): "two"}, generation=generation, expected_seq=1)

    assert len(sent) == 1


def test_a_save_whose_answer_was_lost_is_not_taken_for_a_rival(server: Any) -> None:
    """A client that got no answer asks again: it cannot know that the first time was enough."""

    class AsksTwice(Hooked):
        def execute_command(self, *args: Any, **options: Any) -> Any:
            super().execute_command(*args, **options)
            return super().execute_command(*args, **options)

    put(RedisBackend(AsksTwice(server), prefix="agentbench"), record("a"), "one", expected_seq=0)
    backend = RedisBackend(server, prefix="agentbench")

    assert backend.ids("c") == ["a"]
    with raises(WorkflowBusyError, "1", "0"):
        put(backend, record("a"), expected_seq=0)


def test_scripts_that_the_server_forgot_are_sent_again(backend: RedisBackend, server: Any) -> None:
    put(backend, record("a"))
    server.script_flush()
    put(backend, record("b", 2))
    assert backend.ids("c") == ["a", "b"]


@pytest.mark.parametrize("rounds", [1, 7])
def test_of_simultaneous_rivals_exactly_one_moves_the_chain_on(redis_url: str, rounds: int) -> None:
    wins: list[str] = []
    begin = threading.Barrier(4)

    def compete(name: str) -> None:
        backend = RedisBackend(redis_url, prefix="agentbench")
        generation = backend.generation("c")
        for number in range(rounds):
            begin.wait()
            try:
                backend.put(record(f"{name}{number}", number + 1), {}, generation=generation, expected_seq=number)
                wins.append(f"{name}{number}")
            except WorkflowBusyError:
                pass
        backend.close()

    threads = [threading.Thread(target=compete, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    backend = RedisBackend(redis_url, prefix="agentbench")
    assert sorted(backend.ids("c")) == sorted(wins)
    assert len(wins) == rounds
    backend.close()


def test_a_record_that_moves_to_another_chain_takes_an_emptied_chain_away(backend: RedisBackend, server: Any) -> None:
    put(backend, record("a"), "one")
    put(backend, record("a", 5, chain="d"), "two")

    assert backend.chains() == ["d"]
    assert backend.parts("c", [part_id("one")]) == {}
    assert server.keys("*:c") == []


def test_a_record_saved_again_as_the_only_one_keeps_the_parts_that_it_relies_on(backend: RedisBackend) -> None:
    generation = backend.generation("c")
    needs = (part_id("one"),)
    backend.put(record("a", needs=needs), {part_id("one"): "one"}, generation=generation)
    backend.put(record("a", 2, needs=needs), {}, generation=generation)

    assert backend.parts("c", needs) == {part_id("one"): "one"}


# ---------------------------------------------------------------------------------------------------------- generations


def test_a_server_without_info_rights_will_do(redis_url: str, server: Any) -> None:
    server.execute_command("ACL", "SETUSER", "modest", "on", ">right", "~*", "+@all", "-info")
    backend = RedisBackend(redis_url.replace("//", "//modest:right@"), prefix="agentbench")
    put(backend, record("a"), "one")
    generation = backend.generation("c")
    backend.delete("c", [], sweep=True)

    with pytest.raises(StalePartsError):
        backend.put(record("b", 2), {}, generation=generation)
    put(backend, record("b", 2))
    assert backend.ids("c") == ["a", "b"]
    backend.close()


@pytest.mark.parametrize("lose", ["flush", "restart"])
def test_after_a_loss_of_data_no_save_relies_on_parts_that_were_there(
    redis_server: RedisServer, backend: RedisBackend, server: Any, lose: str
) -> None:
    put(backend, record("a", needs=(part_id("one"),)), "one")
    generation = backend.generation("c")
    if lose == "flush":
        server.flushall()
    else:  # a server that writes to disk now and then comes back with an earlier state: same chain, fewer parts
        server.delete("{agentbench}:parts:c")
        redis_server.stop()
        redis_server.start()

    with pytest.raises(StalePartsError):
        backend.put(record("b", 2, needs=(part_id("one"),)), {}, generation=generation)
    put(backend, record("b", 2, needs=(part_id("one"),)), "one")
    assert backend.parts("c", [part_id("one")]) == {part_id("one"): "one"}


# --------------------------------------------------------------------------------------------------------------- sweeps


def test_a_sweep_starts_again_after_a_save_meanwhile(server: Any, redis_url: str) -> None:
    rival = RedisBackend(redis_url, prefix="agentbench")
    client = Hooked(server)
    backend = RedisBackend(client, prefix="agentbench")
    generation = backend.generation("c")
    put(backend, record("old", needs=(part_id("one"),)), "one", "two", "three")
    saved = iter("abc")

    def save() -> None:
        if (name := next(saved, None)) is not None:  # relies on a part that only the one to be removed has needed
            rival.put(record(name, 2, needs=(part_id("two"),)), {}, generation=generation)

    client.before[SWEEP.sha] = save
    assert backend.delete("c", ["old"], sweep=True) == 1

    assert backend.ids("c") == ["a", "b", "c"]
    assert set(backend.parts("c", [part_id("one"), part_id("two"), part_id("three")])) == {part_id("two")}
    with pytest.raises(StalePartsError):
        rival.put(record("d", 3), {}, generation=generation)
    rival.close()


def test_a_sweep_that_is_never_alone_leaves_the_parts_to_the_next(server: Any, redis_url: str) -> None:
    rival = RedisBackend(redis_url, prefix="agentbench")
    client = Hooked(server)
    backend = RedisBackend(client, prefix="agentbench")
    put(backend, record("old"), "one")
    client.before[SWEEP.sha] = lambda: put(rival, record("new", 2))

    assert backend.delete("c", ["old"], sweep=True) == 1
    assert backend.ids("c") == ["new"]
    assert set(backend.parts("c", [part_id("one")])) == {part_id("one")}
    client.before.clear()
    assert backend.delete("c", [], sweep=True) == 0
    assert backend.parts("c", [part_id("one")]) == {}
    rival.close()


@pytest.mark.parametrize("seed", range(4))
def test_sweeps_amid_saves_never_remove_a_part_that_is_needed(redis_url: str, seed: int) -> None:
    """Two writers rely on parts that they know of, while a third one removes what is old."""
    done = threading.Event()
    stale: list[str] = []

    def write(name: str) -> None:
        random, backend = Random(f"{name}{seed}"), RedisBackend(redis_url, prefix="agentbench")
        known: dict[str, str] = {}
        generation = backend.generation("c")
        for number in range(5000):
            if number >= 150 and stale:
                break
            texts = {part_id(text): text for text in (f"text {random.randrange(30)}" for _ in range(4))}
            each = record(f"{name}{number}", number, needs=tuple(texts))
            try:
                backend.put(each, {key: texts[key] for key in texts if key not in known}, generation=generation)
                known |= texts
            except StalePartsError:
                stale.append(name)
                known, generation = {}, backend.generation("c")
                backend.delete("c", [f"{name}{number - 40}"], sweep=False)
        backend.close()

    def sweep() -> None:
        backend = RedisBackend(redis_url, prefix="agentbench")
        while not done.is_set():
            backend.delete("c", backend.ids("c")[:-20], sweep=True)
        backend.close()

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    sweeper = threading.Thread(target=sweep)
    for thread in (*writers, sweeper):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    sweeper.join()

    backend = RedisBackend(redis_url, prefix="agentbench")
    for checkpoint_id in backend.ids("c"):
        found = backend.get(checkpoint_id)
        assert found is not None
        needs = set(re.findall(r'"([^"]+)"', found.content))
        assert set(backend.parts("c", needs)) == needs
    assert stale, "the sweeps and the saves never met"
    backend.close()


# ------------------------------------------------------------------------------------------------------------- failures


@contextmanager
def setting(server: Any, name: str, value: Any) -> Iterator[None]:
    before = server.config_get(name)[name]
    server.config_set(name, value)
    try:
        yield
    finally:
        server.config_set(name, before)


def test_a_full_server_refuses_a_save_as_a_whole_and_keeps_what_it_has(backend: RedisBackend, server: Any) -> None:
    put(backend, record("a"), "one")
    put(backend, record("other", chain="d"), "one")
    kept = {key: server.dump(key) for key in server.scan_iter()}
    with setting(server, "maxmemory", 1):
        for each in (record("b", 2), record("a", 3), record("other", 4), record("new", chain="e")):
            with raises(redis.exceptions.OutOfMemoryError, "maxmemory"):
                put(backend, each, "two")
        assert backend.latest("c") == record("a")
        assert {key: server.dump(key) for key in server.scan_iter()} == kept
        assert backend.delete("d", ["other"], sweep=True) == 1, "room can be made"
    put(backend, record("b", 2), "two")
    assert backend.ids("c") == ["a", "b"]


def test_a_replica_is_read_and_not_written(backend: RedisBackend, server: Any) -> None:
    put(backend, record("a"), "one")
    generation = backend.generation("c")
    with setting(server, "replica-serve-stale-data", "yes"):
        server.replicaof("127.0.0.1", 1)
        try:
            with pytest.raises(redis.exceptions.ReadOnlyError):
                backend.put(record("b", 2), {}, generation=generation)
            assert backend.latest("c") == record("a")
        finally:
            server.replicaof("NO", "ONE")
    assert backend.ids("c") == ["a"]


def test_wrong_credentials_and_missing_rights_are_errors_of_redis(redis_url: str, server: Any) -> None:
    server.execute_command(
        "ACL", "SETUSER", "reader", "on", ">right", "~*", "+@read", "+@connection", "+evalsha", "+eval"
    )
    wrong = RedisBackend(redis_url.replace("//", "//reader:wrong@"), prefix="agentbench")
    reader = RedisBackend(redis_url.replace("//", "//reader:right@"), prefix="agentbench")

    with pytest.raises(redis.exceptions.AuthenticationError):
        wrong.chains()
    assert reader.chains() == []
    with pytest.raises(redis.exceptions.ResponseError):
        put(reader, record("a"))
    wrong.close()
    reader.close()


def test_a_server_that_does_not_answer_times_out(redis_url: str, server: Any) -> None:
    backend = RedisBackend(f"{redis_url}?socket_timeout=0.3", prefix="agentbench")
    put(backend, record("a"))
    server.client_pause(60_000, all=False)
    try:
        with pytest.raises(redis.exceptions.TimeoutError):
            put(backend, record("b", 2))
    finally:
        server.client_unpause()
    put(backend, record("c", 3))
    assert backend.ids("c") == ["a", "c"]
    backend.close()


# --------------------------------------------------------------------------------------------- foreign and damaged data


def keys_of_a_chain(name: str) -> list[str]:
    return [f"{{agentbench}}:{kind}:{name}" for kind in ("order", "heads", "contents", "parts", "meta")]


@pytest.mark.parametrize(
    "key", [*keys_of_a_chain("c"), *keys_of_a_chain("d"), "{agentbench}:chains", "{agentbench}:index"]
)
def test_a_key_of_another_type_refuses_a_save_before_anything_is_written(
    backend: RedisBackend, server: Any, key: str
) -> None:
    put(backend, record("a", chain="d"), "one")  # will have to move
    generation = backend.generation("c")
    server.delete(key)
    server.set(key, "foreign")
    before = {each: server.dump(each) for each in server.scan_iter()}

    with raises(WorkflowCheckpointException, "damaged"):
        backend.put(record("a"), {part_id("two"): "two"}, generation=generation)
    assert {each: server.dump(each) for each in server.scan_iter()} == before


def test_a_foreign_entry_in_an_order_hides_no_checkpoint(
    backend: RedisBackend, server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    put(backend, record("a"), "one")
    put(backend, record("b", 2), "one")
    server.zadd("{agentbench}:order:c", {"0 foreign": 0})

    assert backend.ids("c") == [each.checkpoint_id for each in backend.heads("c")] == ["a", "b"]
    assert "0 foreign" in caplog.text
    assert backend.get("a") == record("a")
    assert backend.delete("c", ["a"], sweep=True) == 1
    assert delete_chain(backend, "c") == 1
    assert server.keys() == [b"{agentbench}:generation"]


def test_a_foreign_entry_at_the_end_of_an_order_is_not_passed_off_as_the_latest(
    backend: RedisBackend, server: Any
) -> None:
    put(backend, record("a"))
    server.zadd("{agentbench}:order:c", {"foreign": 0})
    for use in (lambda: backend.latest("c"), lambda: put(backend, record("b", 2), expected_seq=1)):
        with raises(WorkflowCheckpointException, "order:c"):
            use()


@pytest.mark.parametrize("place", ["", "x" * 30, "0" * 16 + "00000fff"])
def test_a_damaged_place_of_a_checkpoint_concerns_no_other(backend: RedisBackend, server: Any, place: str) -> None:
    put(backend, record("a"))
    put(backend, record("b", 2))
    server.hset("{agentbench}:index", "a", place)

    with raises(WorkflowCheckpointException, "{agentbench}:index"):
        backend.get("a")
    assert backend.get("b") == record("b", 2)
    assert backend.ids("c") == ["a", "b"]


@pytest.mark.parametrize("field", ["heads", "contents"])
@pytest.mark.parametrize("text", [None, b"\xff\xfe", b"null\n\xff"])
def test_a_record_that_is_damaged_is_known_as_such_and_can_be_deleted(
    backend: RedisBackend, server: Any, field: str, text: bytes | None
) -> None:
    put(backend, record("a"))
    put(backend, record("b", 2))
    if text is None:
        server.hdel(f"{{agentbench}}:{field}:c", "a")
    else:
        server.hset(f"{{agentbench}}:{field}:c", "a", text)

    found = backend.get("a")
    assert found is not None
    assert (found.head if field == "heads" else found.content) == ""
    assert [each.checkpoint_id for each in backend.heads("c")] == ["a", "b"]
    assert backend.get("b") == record("b", 2)
    assert backend.delete("c", ["a"], sweep=True) == 1
