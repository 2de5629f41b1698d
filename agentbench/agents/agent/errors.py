"""Errors of a chat client that `except` clauses for agents catch, too."""

from __future__ import annotations

from functools import cache
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

_AGENT_CLASSES: dict[type[ChatClientException], type[AgentException]] = {
    ChatClientInvalidAuthException: AgentInvalidAuthException,
    ChatClientInvalidRequestException: AgentInvalidRequestException,
    ChatClientInvalidResponseException: AgentInvalidResponseException,
    ChatClientContentFilterException: AgentContentFilterException,
}


def as_agent_error(error: ChatClientException) -> ChatClientException:
    """Return an error of a chat client as one that is also an error of the agent, of a class derived from both.

    Returns `error` itself if no `Agent...` class matches (rate limits, missing cassettes) or it is an agent's already.
    """
    cls: Any = type(error)
    derived = _derived_class(cls)
    return error if derived is None else _new(derived, error.args, error.__dict__).with_traceback(error.__traceback__)


@cache
def _derived_class(cls: type[ChatClientException]) -> type[ChatClientException] | None:
    """Return a class derived from that of a client's error and its agent's class; `None` if agents have none."""
    if issubclass(cls, AgentException):
        return None
    for client_class, agent_class in _AGENT_CLASSES.items():
        if issubclass(cls, client_class):
            names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
            return type(cls.__name__, (cls, agent_class), {**names, "__reduce__": _reduce, "_client_class": cls})
    return None


def _new(cls: type[ChatClientException], args: tuple[object, ...], attributes: dict[str, Any]) -> ChatClientException:
    # Not through the constructor: it would log the error once more.
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(attributes)
    return error


def _reduce(error: Any) -> tuple[Any, ...]:
    _, (_, args, attributes) = AgentFrameworkException.__reduce__(error)
    return _restore, (error._client_class, args, attributes)  # noqa: SLF001 - of the class derived above


def _restore(
    cls: type[ChatClientException], args: tuple[object, ...], attributes: dict[str, Any]
) -> ChatClientException:
    return as_agent_error(_new(cls, args, attributes))
