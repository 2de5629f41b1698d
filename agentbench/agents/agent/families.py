"""An error of a chat client that leaves an agent is caught as the agent's error, too: one class of both families."""

from __future__ import annotations

from typing import Any

from agentbench.exceptions import (
    AgentContentFilterException,
    AgentException,
    AgentFrameworkException,
    AgentInvalidAuthException,
    AgentInvalidRequestException,
    AgentInvalidResponseException,
    ChatClientContentFilterException,
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
)

_AGENTS_SIDE: dict[type[ChatClientException], type[AgentException]] = {
    ChatClientInvalidAuthException: AgentInvalidAuthException,
    ChatClientInvalidRequestException: AgentInvalidRequestException,
    ChatClientInvalidResponseException: AgentInvalidResponseException,
    ChatClientContentFilterException: AgentContentFilterException,
}

# The class of a client -> the class of both families that stands in for it; `None`: it has no twin among the agents'.
_OF_BOTH: dict[type[ChatClientException], type[ChatClientException] | None] = {}


def in_both_families(error: ChatClientException) -> ChatClientException:
    """The error as one that `except` clauses of either family catch.

    Args:
        error: What a chat client raised.

    Returns:
        An error of a private class that derives from the class of `error` and from the matching `Agent...` class, with
        the same arguments, facts and traceback, to be raised from `error`; `error` itself where no class matches (rate
        limits, missing cassettes) or where it is of both families already.
    """
    cls = type(error)
    if cls not in _OF_BOTH:
        _OF_BOTH[cls] = _class_of_both(cls)
    both = _OF_BOTH[cls]
    return error if both is None else _as(both, error.args, error.__dict__).with_traceback(error.__traceback__)


def _class_of_both(cls: type[ChatClientException]) -> type[ChatClientException] | None:
    if issubclass(cls, AgentException):
        return None
    for client_side, agent_side in _AGENTS_SIDE.items():
        if issubclass(cls, client_side):
            facts = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
            return type(cls.__name__, (cls, agent_side), {**facts, "__reduce__": _reduce, "_client_side": cls})
    return None


def _as(cls: type[ChatClientException], args: tuple[object, ...], facts: dict[str, Any]) -> ChatClientException:
    # Not through the constructor: it would log the error once more.
    made = cls.__new__(cls)
    made.args = args
    made.__dict__.update(facts)
    return made


def _reduce(error: Any) -> tuple[Any, ...]:
    _, (_, args, facts) = AgentFrameworkException.__reduce__(error)
    return _restore, (error._client_side, args, facts)  # noqa: SLF001 - of the class made above


def _restore(cls: type[ChatClientException], args: tuple[object, ...], facts: dict[str, Any]) -> ChatClientException:
    return in_both_families(_as(cls, args, facts))
