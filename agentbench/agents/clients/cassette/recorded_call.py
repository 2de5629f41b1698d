"""One model call of a run: recorded, or waiting for permission to be sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from agentbench._display import shorten
from agentbench.agents.clients.cassette.lines import StoredCall
from agentbench.agents.clients.cassette.request import Plain, prompt_of

NewCalls = Literal["ask", "allow", "refuse"] | int
"""What happens to a request that was not recorded; a number allows so many, and refuses the next."""


@dataclass(frozen=True, eq=False)
class RecordedCall:
    """A model call of a run: the executor that made it, the superstep, and the call as in a cassette.

    Example:
        >>> run.recording.recorded
        [<superstep 0, classify: <call 1: 'a late parcel' -> 'refund'>>]
    """

    executor_id: str
    superstep: int
    call: StoredCall

    def __repr__(self) -> str:
        return f"<superstep {self.superstep}, {self.executor_id}: {self.call!r}>"


@dataclass(eq=False)
class NewCall:
    """A request to a model that was not recorded and waits for permission to be sent.

    Attributes:
        executor_id: The executor that makes the call; empty for a condition.
        request: The request, with `messages`, `tools` and `options` as plain values, masked.
        prompt: The text of the last user message.

    Example:
        redone = await run.redo(new_calls="ask")
        await redone.result()
        if redone.new_call:
            print(redone.new_call.prompt)
            redone.allow_new_calls("this")
    """

    executor_id: str
    request: Plain
    is_allowed: bool = field(default=False, repr=False)

    @property
    def prompt(self) -> str:
        """The text of the last user message of the request."""
        return prompt_of(self.request)

    def __repr__(self) -> str:
        return f"<new call of {self.executor_id or 'a condition'}: {shorten(self.prompt)}>"


def check_new_calls(new_calls: Any) -> Any:
    """Return the argument `new_calls`; `ValueError` if it is none of the possible values."""
    if new_calls in ("ask", "allow", "refuse") or (type(new_calls) is int and new_calls >= 0):
        return new_calls
    msg = f"new_calls is {new_calls!r}; expected 'ask', 'allow', 'refuse', or the number of calls to allow."
    raise ValueError(msg)
