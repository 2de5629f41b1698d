"""Returns a blocking Redis client for a URL or a client of any kind."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final, Protocol

from agentbench._extras import NO_CONNECTIONS, not_in_browser, require

_TIMEOUTS: Final = {"socket_connect_timeout": 5.0, "socket_timeout": 30.0}
"""For clients created here, unless the URL overrides it (`?socket_timeout=...`)."""
_RETRIES: Final = 3
_SHARED_SETTINGS: Final = frozenset(
    {
        *("host", "port", "path", "db", "username", "password", "credential_provider", "client_name", "protocol"),
        *("socket_timeout", "socket_connect_timeout", "socket_keepalive", "health_check_interval"),
    }
)
"""Settings of an asyncio client that mean the same for a blocking one."""


class RedisClient(Protocol):
    """The required interface of a client: `redis.Redis`, `redis.RedisCluster` and converted `redis.asyncio.Redis`."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command and return the reply."""


def connect(url_or_client: str | RedisClient) -> tuple[RedisClient, str, bool]:
    """Return a blocking client, its address, and whether it was created here. Nothing is sent yet."""
    instead = "Use FileCheckpointStorage, or SQLCheckpointStorage with the path of a file."
    not_in_browser("Redis servers", reason=NO_CONNECTIONS, instead=instead)
    redis = require("redis", extra="redis", purpose="keep checkpoints in Redis")
    if isinstance(url_or_client, str):
        client = _client_for(redis, url_or_client)
        return client, _place_of(redis, client), True
    if isinstance(url_or_client, require("redis.asyncio", extra="redis", purpose="keep checkpoints in Redis").Redis):
        client = _blocking_twin(redis, url_or_client)
        return client, _place_of(redis, client), True
    command = getattr(url_or_client, "execute_command", None)
    if isinstance(url_or_client, type) or not callable(command) or inspect.iscoroutinefunction(command):
        kind = url_or_client if isinstance(url_or_client, type) else type(url_or_client)
        message = (
            f"url_or_client is of {kind.__module__}.{kind.__qualname__}; expected a URL such as "
            "'redis://localhost:6379/0', a redis.Redis, a redis.asyncio.Redis or a redis.RedisCluster."
        )
        raise TypeError(message)
    return url_or_client, _place_of(redis, url_or_client), False


def _client_for(redis: Any, url: str) -> Any:
    try:
        return redis.Redis.from_url(url, retry=_retry(), **_TIMEOUTS)
    except ValueError:
        message = (
            "This is not the URL of a Redis server. Expected redis://[[user]:password@]host[:port][/database], "
            "rediss://... or unix://path, with special characters in user and password quoted (urllib.parse.quote)."
        )
    raise ValueError(message)  # without the cause, which may quote a piece of the password


def _blocking_twin(redis: Any, client: Any) -> Any:
    """Return a blocking client with the connection settings of an asyncio client."""
    pool = client.connection_pool
    known: Mapping[str, Any] = pool.connection_kwargs
    settings = {key: value for key, value in known.items() if key in _SHARED_SETTINGS or key.startswith("ssl_")}
    asynchronous = require("redis.asyncio.connection", extra="redis", purpose="keep checkpoints in Redis")
    if "path" in settings:
        kind = redis.UnixDomainSocketConnection
    elif "host" in settings:
        kind = (
            redis.SSLConnection if issubclass(pool.connection_class, asynchronous.SSLConnection) else redis.Connection
        )
    else:
        message = (
            f"The client's {type(pool).__qualname__} names no server; expected a redis.asyncio.Redis created from a "
            "host or a URL. Pass a blocking client (redis.Redis) instead."
        )
        raise TypeError(message)
    return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=kind, retry=_retry(), **settings))


def _retry() -> Any:
    """Reconnect a few times, for a restarted server; give up within half a second if it stays down."""
    backoff = require("redis.backoff", extra="redis", purpose="keep checkpoints in Redis")
    retry = require("redis.retry", extra="redis", purpose="keep checkpoints in Redis")
    return retry.Retry(backoff.ExponentialBackoff(cap=0.2, base=0.02), _RETRIES)


def _place_of(redis: Any, client: Any) -> str:
    pool = getattr(client, "connection_pool", None)
    settings = getattr(pool, "connection_kwargs", {})
    if "path" in settings:
        return f"unix://{settings['path']}?db={settings.get('db') or 0}"
    if "host" in settings:
        scheme = "rediss" if issubclass(pool.connection_class, redis.SSLConnection) else "redis"  # type: ignore[union-attr]
        return f"{scheme}://{settings['host']}:{settings.get('port', 6379)}/{settings.get('db') or 0}"
    return type(client).__qualname__
