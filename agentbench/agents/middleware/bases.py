"""The three kinds of middleware: base classes, decorators and the types of what may be given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from agentbench.agents.middleware.contexts import AgentContext, ChatContext, FunctionInvocationContext
from agentbench.exceptions import MiddlewareException

_F = TypeVar("_F", bound=Callable[..., Any])

CallNext: TypeAlias = Callable[[], Awaitable[None]]
"""Goes on with the call. Takes nothing, returns nothing: the outcome stands in `context.result`."""

MARK = "_agentbench_middleware_type"
"""Name of the attribute that a decorated function carries its kind in."""


class MiddlewareType(str, Enum):
    """What a middleware stands around: a run of an agent, a call of a tool, a call of a model."""

    AGENT = "agent"
    FUNCTION = "function"
    CHAT = "chat"


class AgentMiddleware(ABC):
    """Stands around every run of an agent."""

    @abstractmethod
    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        """Act before and after `await call_next()`, or set `context.result` instead of calling it."""


class ChatMiddleware(ABC):
    """Stands around every call of a model."""

    @abstractmethod
    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        """Act before and after `await call_next()`, or set `context.result` instead of calling it."""


class FunctionMiddleware(ABC):
    """Stands around every call of a tool."""

    @abstractmethod
    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        """Act before and after `await call_next()`, or set `context.result` instead of calling it."""


def agent_middleware(func: _F) -> _F:
    """Mark a function `(context, call_next)` as middleware around the runs of an agent."""
    return _marked(func, MiddlewareType.AGENT)


def chat_middleware(func: _F) -> _F:
    """Mark a function `(context, call_next)` as middleware around the calls of a model."""
    return _marked(func, MiddlewareType.CHAT)


def function_middleware(func: _F) -> _F:
    """Mark a function `(context, call_next)` as middleware around the calls of tools."""
    return _marked(func, MiddlewareType.FUNCTION)


def _marked(func: _F, kind: MiddlewareType) -> _F:
    before = getattr(func, MARK, kind)
    if before is not kind:
        message = f"{func!r} is {before.value} middleware already. Expected one decorator: leave out the others."
        raise MiddlewareException(message)
    try:
        setattr(func, MARK, kind)
    except AttributeError as error:
        message = f"{func!r} cannot be marked as {kind.value} middleware. Expected a function."
        raise MiddlewareException(message) from error
    return func


AgentMiddlewareTypes: TypeAlias = AgentMiddleware | Callable[[AgentContext, CallNext], Awaitable[None]]
ChatMiddlewareTypes: TypeAlias = ChatMiddleware | Callable[[ChatContext, CallNext], Awaitable[None]]
FunctionMiddlewareTypes: TypeAlias = (
    FunctionMiddleware | Callable[[FunctionInvocationContext, CallNext], Awaitable[None]]
)
ChatAndFunctionMiddlewareTypes: TypeAlias = ChatMiddlewareTypes | FunctionMiddlewareTypes
MiddlewareTypes: TypeAlias = AgentMiddlewareTypes | ChatMiddlewareTypes | FunctionMiddlewareTypes

MiddlewareInput: TypeAlias = MiddlewareTypes | Sequence[MiddlewareTypes] | None
"""What a `middleware=` argument may be."""
