"""A Redis client that blocks, from whatever a user has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.checkpoints.backend_contract import put, record
from tests.parts.errors import raises
from tests.servers.process import ServerProcess, answers, find_program, free_port

redis = pytest.importorskip("redis", reason="redis is not installed")

from agentbench.checkpoints.redis_storage.backend import RedisBackend  # noqa: E402  needs redis


@pytest.fixture
def backend(redis_url: str) -> Iterator[RedisBackend]:
    made = RedisBackend(redis_url, prefix="agentbench")
    yield made
    made.close()


def as_decoding_client(url: str) -> Any:
    return redis.Redis.from_url(url, decode_responses=True)


def as_decoding_client_of_the_newer_protocol(url: str) -> Any:
    return redis.Redis.from_url(url, decode_responses=True, protocol=3)


def as_client_of_another_encoding(url: str) -> Any:
    return redis.Redis.from_url(url, decode_responses=True, encoding="ascii")


def as_asyncio_client(url: str) -> Any:
    return redis.asyncio.Redis.from_url(url, decode_responses=True)


def as_asyncio_client_by_host(url: str) -> Any:
    return redis.asyncio.Redis(host="127.0.0.1", port=int(url.split(":")[2].split("/")[0]))


@pytest.mark.parametrize(
    "make",
    [
        str,
        redis.Redis.from_url,
        as_decoding_client,
        as_decoding_client_of_the_newer_protocol,
        as_client_of_another_encoding,
        as_asyncio_client,
        as_asyncio_client_by_host,
    ],
)
def test_a_url_and_every_kind_of_client_reach_the_same_records(
    redis_url: str, backend: RedisBackend, make: Callable[[str], Any]
) -> None:
    client = make(redis_url)
    other = RedisBackend(client, prefix="agentbench")
    put(other, record("\ud800é", chain="\0*"), "text")

    assert backend.get("\ud800é") == other.latest("\0*") == record("\ud800é", chain="\0*")
    assert other.chains() == ["\0*"]
    assert other.delete("\0*", ["\ud800é"], sweep=True) == 1
    other.close()
    if isinstance(client, redis.Redis):
        client.close()


async def test_the_settings_of_an_asyncio_client_are_taken_over(redis_url: str, server: Any) -> None:
    server.execute_command("ACL", "SETUSER", "tester", "on", ">secret", "~*", "+@all")
    client = redis.asyncio.Redis.from_url(redis_url.replace("//", "//tester:secret@").replace("/0", "/7"))
    backend = RedisBackend(client, prefix="agentbench")
    put(backend, record("a"))

    assert await client.hkeys("{agentbench}:contents:flow") == [b"a"]
    assert await client.acl_whoami() == "tester"
    assert any(each["user"] == "tester" and each["db"] == "7" for each in server.client_list())
    await client.connection_pool.disconnect()
    backend.close()


def test_a_client_that_was_handed_in_stays_open_and_one_made_here_is_closed(redis_url: str, server: Any) -> None:
    own = RedisBackend(f"{redis_url}?client_name=own", prefix="own")
    given_client = redis.Redis.from_url(redis_url, client_name="given")
    given = RedisBackend(given_client, prefix="given")
    for each in (own, given):
        put(each, record("a"))

    def names() -> set[str]:
        return {each["name"] for each in server.client_list()}

    assert {"own", "given"} <= names()
    own.close()
    given.close()
    while "own" in names():  # the server learns of it a moment later
        time.sleep(0.01)
    assert "given" in names()
    assert own.ids("flow") == given.ids("flow") == ["a"], "closed ones open again"
    own.close()
    given_client.close()


def test_a_unix_socket_is_reached_by_url_and_by_asyncio_client() -> None:
    process = ServerProcess("redis-socket")
    path = process.folder / "socket"
    command = [find_program("redis-server"), "--bind", "127.0.0.1", "--port", str(process.port), "--save", ""]
    process.start([*command, "--unixsocket", path], lambda: answers(process.port, b"PING\r\n", b"+PONG"))
    try:
        by_url = RedisBackend(f"unix://{path}?db=3", prefix="agentbench")
        by_client = RedisBackend(redis.asyncio.Redis(unix_socket_path=str(path), db=3), prefix="agentbench")
        put(by_url, record("a"))
        assert by_client.ids("flow") == ["a"]
        assert by_client.place == by_url.place == f"unix://{path}?db=3"
        by_url.close()
        by_client.close()
    finally:
        process.remove()


@pytest.mark.nightly
def test_a_cluster_keeps_a_whole_storage_on_one_node() -> None:
    process = ServerProcess("redis-cluster")

    def is_ready() -> bool:
        told = b"CLUSTER ADDSLOTSRANGE 0 16383\r\n"
        if answers(process.port, told, b"+OK") or answers(process.port, told, b"-ERR Slot 0 is already busy"):
            return answers(process.port, b"GET x\r\n", b"$-1")
        return False

    command = [find_program("redis-server"), "--bind", "127.0.0.1", "--port", str(process.port), "--save", ""]
    process.start([*command, "--cluster-enabled", "yes", "--cluster-port", str(free_port())], is_ready)
    try:
        client = redis.RedisCluster(host="127.0.0.1", port=process.port)
        backend = RedisBackend(client, prefix="agentbench")
        put(backend, record("a", needs=("one",)), "one", "two")
        put(backend, record("a", 2, chain="d"), "one")
        put(backend, record("b", 3, chain="d"), "one")
        assert backend.delete("d", ["a"], sweep=True) == 1
        assert (backend.chains(), backend.ids("d")) == (["d"], ["b"])
        assert len({client.keyslot(key) for key in client.scan_iter()}) == 1
        client.close()
    finally:
        process.remove()


@pytest.mark.parametrize("wrong", [5, None, redis.Redis, object()], ids=["number", "None", "class", "object"])
def test_what_is_no_client_is_refused_at_once(wrong: Any) -> None:
    with raises(TypeError, "'redis://localhost:6379/0'", "URL", "redis.Redis"):
        RedisBackend(wrong, prefix="agentbench")


def test_asyncio_clients_that_find_their_server_otherwise_are_refused() -> None:
    sentinel = redis.asyncio.Sentinel([("127.0.0.1", 1)]).master_for("mine")
    with raises(TypeError, "server"):
        RedisBackend(sentinel, prefix="agentbench")
    with raises(TypeError, "RedisCluster"):
        RedisBackend(redis.asyncio.RedisCluster("127.0.0.1", 1), prefix="agentbench")


def test_a_url_that_cannot_be_read_is_refused_without_repeating_it() -> None:
    cases: list[str] = ["redis://:hush/hush@host", "redis://u:hush@host:hush", "http://u:hush@host", "hush", ""]
    for url in cases:
        with raises(ValueError, "URL") as caught:
            RedisBackend(url, prefix="agentbench")
        assert "hush" not in str(caught.value)
        assert caught.value.__context__ is None


def test_tls_is_used_for_an_asyncio_client() -> None:
    client = redis.asyncio.Redis.from_url("rediss://:hush@localhost:6380/2?ssl_cert_reqs=none")
    assert RedisBackend(client, prefix="lab").place == "rediss://localhost:6380/2"
