"""A checkpoint storage in a Redis server.

A checkpoint lasts as long as the server keeps its data. Configure it to write an append-only file (`appendonly yes`),
and not to evict keys that never expire (`maxmemory-policy noeviction`, the default, or a `volatile-` policy).

All keys begin with the prefix in braces, so that in a cluster they are on one node; different prefixes are spread over
several nodes. Names and ids are UTF-8. The keys of the prefix `agentbench` are:

- `{agentbench}:chains`, sorted set: the names of the chains.
- `{agentbench}:index`, hash: by checkpoint id its chain and its entry in the chain's order.
- `{agentbench}:generation`, string: a counter, raised when a chain is gone together with all of its parts.
- `{agentbench}:order:NAME`, sorted set: the order of a chain. An entry is sequence number, time, number of the saving
  and id, written so that the order of the bytes is the order of the checkpoints. All scores are 0: they are
  floating-point numbers, exact up to 2**53 only, and sequence numbers are of any size.
- `{agentbench}:heads:NAME`, hash: by checkpoint id its run and what a list shows.
- `{agentbench}:contents:NAME`, hash: by checkpoint id what else it holds, with references to parts.
- `{agentbench}:parts:NAME`, hash: by part id the texts that the checkpoints of a chain share.
- `{agentbench}:meta:NAME`, hash: `version` counts the savings, `generation` is raised when parts were removed.

Every write is a script that runs in the server as one step and needs one round trip. Unneeded parts are determined
by the client; they are removed only if no one has saved to the chain in the meantime.
"""

from __future__ import annotations

from agentbench.checkpoints.parts.content_storage import ContentAddressedStorage
from agentbench.checkpoints.redis_storage.backend import RedisBackend
from agentbench.checkpoints.redis_storage.client import RedisClient


class RedisCheckpointStorage(ContentAddressedStorage):
    """A storage in a Redis server (5.0 or newer), for several processes and machines at once.

    Nothing is sent before the first use. After an outage the server is used again. Data that it lost in a restart (it
    may write to disk only now and then) does not count as stored: the next checkpoint is saved in full.

    Args:
        url_or_client: `redis://[[user]:password@]host[:port][/database]`, `rediss://...` with TLS, `unix://path`; or a
            `redis.Redis` or `redis.RedisCluster`, which is used unchanged and not closed; or a `redis.asyncio.Redis`,
            whose connection settings are used.
        prefix: The prefix of its keys. Storages with different prefixes do not see each other.
        keep_last: How many checkpoints of each chain to keep; `None` keeps all.

    Raises:
        MissingExtraError: The package redis is not installed.
        NotInBrowserError: This Python runs in a browser.
        ValueError: The URL is not that of a Redis server, the prefix is empty or contains a brace, or `keep_last` is
            less than 1.
        TypeError: `url_or_client` is neither a URL nor a client.

    Example:
        >>> storage = RedisCheckpointStorage("redis://localhost:6379/0")
        >>> storage
        RedisCheckpointStorage('redis://localhost:6379/0', prefix='agentbench')
    """

    def __init__(
        self, url_or_client: str | RedisClient, *, prefix: str = "agentbench", keep_last: int | None = None
    ) -> None:
        backend = RedisBackend(url_or_client, prefix=prefix)
        super().__init__(backend, keep_last=keep_last)
        self._ab_place, self._ab_prefix = backend.place, prefix

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._ab_place!r}, prefix={self._ab_prefix!r})"
