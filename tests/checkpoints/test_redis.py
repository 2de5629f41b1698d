"""The storage in a Redis server, as users meet it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from agentbench.checkpoints.redis import RedisCheckpointStorage
from agentbench.exceptions import MissingExtraError, WorkflowCheckpointException
from tests.parts.errors import raises
from tests.parts.storages import checkpoint, conversation
from tests.servers.redis import RedisServer


@pytest.fixture
def storage(redis_url: str) -> Iterator[RedisCheckpointStorage]:
    pytest.importorskip("redis", reason="redis is not installed")
    made = RedisCheckpointStorage(redis_url)
    yield made
    made.close()


@pytest.fixture
def server(storage: RedisCheckpointStorage, redis_url: str) -> Iterator[Any]:
    """A client of the test's own."""
    import redis

    with redis.Redis.from_url(redis_url) as client:
        yield client


def test_the_module_is_imported_without_redis() -> None:
    code = "import sys, agentbench.checkpoints.redis; sys.exit('redis' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_package_the_extra_is_named_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError) as caught:
        RedisCheckpointStorage("redis://localhost")
    assert caught.value.extra == "redis"


# ------------------------------------------------------------------------------------------------------ what is written


async def test_a_growing_conversation_is_not_written_again_at_each_checkpoint(
    storage: RedisCheckpointStorage, server: Any
) -> None:
    entries = conversation(200)
    sizes = []
    for seq in range(1, 201):
        await storage.save(checkpoint(seq, state={"conversation": entries[:seq]}))
        if seq % 100 == 0:
            lengths = [
                server.hstrlen("{agentbench}:parts:flow", each) for each in server.hkeys("{agentbench}:parts:flow")
            ]
            sizes.append(sum(lengths))

    assert sizes[1] < 2.5 * sizes[0] < 2.5 * 5 * 100 * 200
    assert (await storage.load("flow-150")).state == {"conversation": entries[:150]}


# ---------------------------------------------------------------------------------------------- several writers at once


FORKED = """
import asyncio, os, sys
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.redis import RedisCheckpointStorage

def save(seq):
    each = WorkflowCheckpoint("flow", "hash", checkpoint_id=f"flow-{seq}", metadata={"seq": seq})
    each.state["n"] = list(range(seq))
    asyncio.run(storage.save(each))

storage = RedisCheckpointStorage(sys.argv[1])
save(1)
child = os.fork()
for seq in range(2, 30):
    save(seq + 100 * (child == 0))
    assert asyncio.run(storage.get_latest(workflow_name="flow")) is not None
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
storage.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_storage_goes_on_in_a_forked_process(storage: RedisCheckpointStorage, redis_url: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED, redis_url], check=True)

    seqs = [1, *range(2, 30), *range(102, 130)]
    assert asyncio.run(storage.list_checkpoint_ids(workflow_name="flow")) == [f"flow-{seq}" for seq in seqs]
    for seq in seqs:
        assert asyncio.run(storage.load(f"flow-{seq}")).state == {"n": list(range(seq))}


# ------------------------------------------------------------------------------------------------------------- failures


async def test_a_server_that_is_gone_is_an_error_without_the_password_and_is_used_again_later(
    redis_server: RedisServer, redis_url: str, server: Any
) -> None:
    server.execute_command("ACL", "SETUSER", "somebody", "on", ">hush", "~*", "+@all")
    storage = RedisCheckpointStorage(redis_url.replace("//", "//somebody:hush@"))
    entries = conversation(50)
    await storage.save(checkpoint(1, state={"n": entries}))
    redis_server.stop()
    try:
        with raises(WorkflowCheckpointException, "'flow-2'", "RedisCheckpointStorage") as caught:
            await storage.save(checkpoint(2, state={"n": entries}))
        assert "Connection refused" in str(caught.value)
        assert "hush" not in "".join(traceback.format_exception(caught.value))
        assert "somebody" not in repr(storage)
        with raises(WorkflowCheckpointException, "'flow-1'", "RedisCheckpointStorage"):
            await storage.load("flow-1")
    finally:
        redis_server.start()
    server.execute_command("ACL", "SETUSER", "somebody", "on", ">hush", "~*", "+@all")

    await storage.save(checkpoint(2, state={"n": [*entries, "more"]}))
    assert (await storage.load("flow-1")).state == {"n": entries}
    assert (await storage.load("flow-2")).state == {"n": [*entries, "more"]}
    storage.close()


async def test_a_damaged_checkpoint_is_named_and_hides_no_other(
    storage: RedisCheckpointStorage, server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for seq in range(1, 4):
        await storage.save(checkpoint(seq, state={"n": conversation(20 * seq)}))
    server.hset("{agentbench}:heads:flow", "flow-1", b"null\n{")
    server.hset("{agentbench}:contents:flow", "flow-2", b"\xff")

    assert [info.checkpoint_id for info in await storage.list_infos(workflow_name="flow")] == ["flow-2", "flow-3"]
    assert "'flow-1'" in caplog.text
    for damaged in ("flow-1", "flow-2"):
        with raises(WorkflowCheckpointException, f"'{damaged}'"):
            await storage.load(damaged)
    assert (await storage.load("flow-3")).state == {"n": conversation(60)}
    assert await storage.delete("flow-1")
    assert await storage.delete("flow-2")
    assert (await storage.load("flow-3")).state == {"n": conversation(60)}


# ---------------------------------------------------------------------------------------------------------------- looks


async def test_a_repr_shows_server_and_prefix_and_nothing_secret(storage: RedisCheckpointStorage) -> None:
    class Mine(RedisCheckpointStorage):
        pass

    shown = Mine("rediss://somebody:hush@localhost:6380/2", prefix="lab")
    assert repr(shown) == "Mine('rediss://localhost:6380/2', prefix='lab')"
