"""Convert errors of chat clients so that `except` clauses for agent errors catch them too."""

from __future__ import annotations

from typing import Any

from agentbench._signatures.class_cache import cached_on_class
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
    restore_error,
)

_AGENT_CLASSES: dict[type[ChatClientException], type[AgentException]] = {
    ChatClientInvalidAuthException: AgentInvalidAuthException,
    ChatClientInvalidRequestException: AgentInvalidRequestException,
    ChatClientInvalidResponseException: AgentInvalidResponseException,
    ChatClientContentFilterException: AgentContentFilterException,
}


def as_agent_error(error: ChatClientException) -> ChatClientException:
    """Convert a client error to a class that is also an agent error; return it unchanged if there is none."""
    cls: Any = type(error)
    derived = _derived_class(cls)
    if derived is None:
        return error
    return restore_error(derived, error.args, error.__dict__).with_traceback(error.__traceback__)


@cached_on_class
def _derived_class(cls: type[ChatClientException]) -> type[ChatClientException] | None:
    """Return a class derived from a client error and the matching agent error; `None` if there is none."""
    if issubclass(cls, AgentException):
        return None
    for client_class, agent_class in _AGENT_CLASSES.items():
        if issubclass(cls, client_class):
            names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
            return type(cls.__name__, (cls, agent_class), {**names, "__reduce__": _reduce, "_client_class": cls})
    return None


def _reduce(error: Any) -> tuple[Any, ...]:
    _, (_, args, attributes) = AgentFrameworkException.__reduce__(error)
    return _restore, (error._client_class, args, attributes)  # noqa: SLF001 - of the class derived above


def _restore(
    cls: type[ChatClientException], args: tuple[object, ...], attributes: dict[str, Any]
) -> ChatClientException:
    return as_agent_error(restore_error(cls, args, attributes))
