"""What code inside a node sends to the observers of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbench._secrets import masked_fields
from agentbench.stategraph.interrupts import QUESTIONS

StreamWriter = Callable[[Any], None]


@dataclass(frozen=True)
class TaskStep:
    """The start or the end of a `@task` function, as an event of the run."""

    id: str
    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    error: str | None = None
    is_ended: bool = False

    __repr__ = masked_fields


def get_stream_writer() -> StreamWriter:
    """Return a function that sends data to the observers of the run, such as a stream in the mode `custom`.

    Call it in a node, a tool, a task or an entrypoint; a parameter `writer` of an entrypoint gets the same function.

    Raises:
        RuntimeError: No graph is running here.

    Example:
        >>> def search(state: Trip) -> dict:
        ...     get_stream_writer()({"progress": "searching"})
        ...     return {"found": 3}
    """
    questions = QUESTIONS.get()
    if questions is None:
        message = "get_stream_writer() was called while no graph runs. Call it in a node, a tool or a task."
        raise RuntimeError(message)
    return questions.emit
