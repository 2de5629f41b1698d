"""Concurrent processing of items, with a limit, a progress bar and a file to resume from."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias, TypeVar

from agentbench._display import call_view
from agentbench._files.private_file import open_private, write_all
from agentbench._limits import require_limit
from agentbench.agents.tools.collection import normalize_tools, split_mcp_tools
from agentbench.exceptions import MissingExtraError
from agentbench.messages.inputs import normalize_messages
from agentbench.serialization.plain import to_plain

_T = TypeVar("_T")
_R = TypeVar("_R")


async def map_items(
    function: Callable[[_T], Awaitable[_R]], items: Sequence[_T], *, limit: int, name: str, progress: bool | None
) -> list[_R]:
    """Await a function of each item and return the results in order. The first error cancels the others.

    Args:
        function: Called with each item.
        items: The items.
        limit: The maximum number of concurrent calls.
        name: The name of the progress bar.
        progress: Whether to show a progress bar; by default only in notebooks.

    Raises:
        ValueError: The limit is below 1.
    """
    require_limit("max_concurrency", limit, least=1)
    results: dict[int, _R] = {}
    waiting = enumerate(items)

    async def work(advance: Callable[[], None]) -> None:
        for index, item in waiting:
            results[index] = await function(item)
            advance()

    with _bar(name, len(items), progress) as advance:
        workers = [asyncio.ensure_future(work(advance)) for _ in range(min(limit, len(items)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    return [results[index] for index in range(len(items))]


def _bar(name: str, total: int, progress: bool | None) -> AbstractContextManager[Callable[[], None]]:
    if progress or (progress is None and "ipykernel" in sys.modules):
        try:
            bar: Any = call_view("agentbench.notebook.progress_bar.progress:item_progress", name, total)
        except MissingExtraError:
            pass
        else:
            return bar  # type: ignore[no-any-return]
    return nullcontext(lambda: None)


Path: TypeAlias = str | os.PathLike[str]


class ResumeFile:
    """A file with answers and scores, each a line of JSON with a key. Only the current user can read the file.

    Args:
        path: The path of the file, which may not exist yet; `None` stores nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = None if path is None else os.path.abspath(os.fspath(path))
        self._known: dict[str, Any] = {}
        self._broken_line = False
        if self._path is not None and os.path.exists(self._path):
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")
            self._broken_line = bool(lines.pop())  # the last writer was interrupted, so this entry is computed again
            for line in filter(None, lines):
                try:
                    key, value = json.loads(line)
                except ValueError:
                    continue
                self._known[key] = value

    def get(self, key: str) -> Any:
        """Return the stored value; `None` if there is none."""
        return self._known.get(key)

    def put(self, key: str, value: Any) -> None:
        """Append a value with its key."""
        if self._path is None:
            return
        line = json.dumps([key, value], ensure_ascii=False, default=str).encode() + b"\n"
        if self._broken_line:
            line, self._broken_line = b"\n" + line, False
        descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            write_all(descriptor, line, self._path)
        finally:
            os.close(descriptor)


def digest(*parts: Any) -> str:
    """Return a hash of values. Values that are not JSON are hashed by their text."""
    return hashlib.sha256(json.dumps(to_plain(parts), sort_keys=True).encode()).hexdigest()


def as_list(values: Any, single: tuple[type, ...]) -> list[Any]:
    """Return one or more values as a list, empty for `None`. An instance of the classes `single` is one value."""
    if values is None:
        return []
    return [values] if isinstance(values, single) else list(values)


def per_query(name: str, values: Any, single: tuple[type, ...], queries: Sequence[Any]) -> list[Any]:
    """Return a value for each query, `None` if there are no values; raise ValueError if the numbers differ."""
    if values is None:
        return [None] * len(queries)
    listed = as_list(values, single)
    if len(listed) != len(queries):
        msg = f"{name} has {len(listed)} values for {len(queries)} queries; expected one for each query."
        raise ValueError(msg)
    return listed


def repeat(queries: list[_T], times: int) -> list[_T]:
    """Return the list repeated a number of times."""
    require_limit("num_repetitions", times, least=1)
    return queries * times


def function_tools(agent: Any) -> list[Any]:
    """Return the function tools of an agent, including those of its connected MCP servers."""
    tools = (getattr(agent, "default_options", None) or {}).get("tools")
    own, servers = split_mcp_tools(normalize_tools(tools))
    servers += getattr(agent, "mcp_tools", None) or []
    return own + [function for server in servers if server.is_connected for function in server.functions]


def repeated_keys(kind: str, name: object, queries: Iterable[Any]) -> Iterator[str]:
    """Yield the key of each query in a resume file. Repetitions of a query have different keys."""
    seen: Counter[str] = Counter()
    for query in queries:
        content = [message.to_dict() for message in normalize_messages(query)]
        plain = digest(kind, name, content)
        seen[plain] += 1
        yield digest(plain, seen[plain])
