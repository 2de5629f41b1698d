"""The three kinds of middleware: base classes, decorators, and the types of `middleware=` arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from agentbench.agents.middleware.contexts import AgentContext, ChatContext, FunctionInvocationContext
from agentbench.exceptions import MiddlewareException

_F = TypeVar("_F", bound=Callable[..., Any])

CallNext: TypeAlias = Callable[[], Awaitable[None]]
"""Continues the call. It takes no arguments and returns nothing; the outcome is in `context.result`."""

MARK = "_agentbench_middleware_type"
"""The name of the attribute with the kind of a decorated function."""


class MiddlewareType(StrEnum):
    """The kind of call that a middleware wraps: an agent run, a tool call or a model call.

    Example:
        from agentbench import MiddlewareType

        assert [kind.value for kind in MiddlewareType] == ["agent", "function", "chat"]
    """

    AGENT = "agent"
    FUNCTION = "function"
    CHAT = "chat"


class AgentMiddleware(ABC):
    """Base class of middleware around agent runs. A subclass implements `process`.

    Example:
        class Greeting(AgentMiddleware):
            async def process(self, context, call_next):
                context.messages.insert(0, Message("system", ["Begin with a greeting."]))
                await call_next()
                print(context.result.text)


        agent = Agent(EchoChatClient(), middleware=[Greeting()])
    """

    @abstractmethod
    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        """Act before and after `await call_next()`, or set `context.result` instead of calling it.

        `call_next()` calls the next middleware and finally the agent. Call it again to retry.
        You may change everything in `context`. A `MiddlewareTermination` ends the run with its `result`.
        """


class ChatMiddleware(ABC):
    """Base class of middleware around model calls. A subclass implements `process`.

    Example:
        class Cool(ChatMiddleware):
            async def process(self, context, call_next):
                context.options["temperature"] = 0.0
                await call_next()


        agent = Agent(EchoChatClient(), middleware=[Cool()])
    """

    @abstractmethod
    async def process(self, context: ChatContext, call_next: CallNext) -> None:
        """Act before and after `await call_next()`, which finally calls the model; see `AgentMiddleware.process`."""


class FunctionMiddleware(ABC):
    """Base class of middleware around tool calls. A subclass implements `process`.

    Example:
        class Audit(FunctionMiddleware):
            async def process(self, context, call_next):
                print(context.function.name, context.arguments)
                await call_next()


        agent = Agent(EchoChatClient(), middleware=[Audit()])
    """

    @abstractmethod
    async def process(self, context: FunctionInvocationContext, call_next: CallNext) -> None:
        """Act before and after `await call_next()`, which finally calls the tool; see `AgentMiddleware.process`.

        A `MiddlewareTermination` ends the tool loop, with its `result` for this call.
        """


def agent_middleware(func: _F) -> _F:
    """Mark a function `(context, call_next)` as middleware around agent runs.

    Raises:
        MiddlewareException: The function is marked as another kind.

    Example:
        @agent_middleware
        async def log(context, call_next):
            await call_next()
            print(context.result.text)
    """
    return _mark(func, MiddlewareType.AGENT)


def chat_middleware(func: _F) -> _F:
    """Mark a function `(context, call_next)` as middleware around model calls.

    Raises:
        MiddlewareException: The function is marked as another kind.

    Example:
        @chat_middleware
        async def cool(context, call_next):
            context.options["temperature"] = 0.0
            await call_next()
    """
    return _mark(func, MiddlewareType.CHAT)


def function_middleware(func: _F) -> _F:
    """Mark a function `(context, call_next)` as middleware around tool calls.

    Raises:
        MiddlewareException: The function is marked as another kind.

    Example:
        @function_middleware
        async def audit(context, call_next):
            print(context.function.name, context.arguments)
            await call_next()
    """
    return _mark(func, MiddlewareType.FUNCTION)


def _mark(func: _F, kind: MiddlewareType) -> _F:
    before = getattr(func, MARK, kind)
    if before is not kind:
        message = f"{func!r} is already {before.value} middleware. Expected a single decorator: remove the others."
        raise MiddlewareException(message)
    setattr(func, MARK, kind)
    return func


AgentMiddlewareTypes: TypeAlias = AgentMiddleware | Callable[[AgentContext, CallNext], Awaitable[None]]
ChatMiddlewareTypes: TypeAlias = ChatMiddleware | Callable[[ChatContext, CallNext], Awaitable[None]]
FunctionMiddlewareTypes: TypeAlias = (
    FunctionMiddleware | Callable[[FunctionInvocationContext, CallNext], Awaitable[None]]
)
ChatAndFunctionMiddlewareTypes: TypeAlias = ChatMiddlewareTypes | FunctionMiddlewareTypes
MiddlewareTypes: TypeAlias = AgentMiddlewareTypes | ChatMiddlewareTypes | FunctionMiddlewareTypes

MiddlewareInput: TypeAlias = MiddlewareTypes | Sequence[MiddlewareTypes] | None
"""The type of `middleware=` arguments."""
