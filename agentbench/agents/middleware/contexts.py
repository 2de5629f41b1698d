"""Contexts of middleware: one call, which middleware may read and change before and after it continues.

Middleware may set other attributes too; the library does not read them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from agentbench.exceptions import MiddlewareException

if TYPE_CHECKING:
    from agentbench.messages.content.content import Content

RUN_INVOCATIONS = "run_invocations"
"""The key in `FunctionInvocationContext.metadata` of the number of calls of each tool in this run, by tool name.

The tool loop sets one dict for all calls of a run; each tool counts its own calls in it.
"""

TOOLS_OF_RUN = "tools_of_run"
"""The key in `FunctionInvocationContext.metadata` of the `ToolsOfRun`, in which a call can add and remove tools."""

INNER_APPROVALS = "inner_approvals"
"""The key in `FunctionInvocationContext.metadata` of `InnerApprovals`, if an earlier call requested approvals."""

ROUNDS = "rounds"
"""The key in `AgentContext.metadata` of the rounds of a loop, for its predicates and messages."""


class InnerApprovals(NamedTuple):
    """The approval requests of a tool and a person's answers, for calling the tool again.

    Attributes:
        requests: The requests in the `UserInputRequiredException` of the tool.
        answers: The responses to some or all of them, approved or not.
    """

    requests: tuple[Content, ...]
    answers: tuple[Content, ...]


class ToolsOfRun(Protocol):
    """The tools that the model is offered in a run."""

    offered: list[Any]

    def add(self, tools: Any) -> None:
        """Offer further tools."""

    def remove(self, tools: Any) -> None:
        """Stop offering tools, which are passed themselves or by name."""


class _Context:
    messages: Any
    stream: bool
    result: Any

    def __post_init__(self) -> None:
        """Replace each `None` by an empty value, and copy the hooks to lists, so that middleware may append to them."""
        for name in ("options", "metadata", "kwargs", "client_kwargs", "function_invocation_kwargs"):
            if getattr(self, name, ()) is None:
                setattr(self, name, {})
        if self.messages is None:
            self.messages = []
        for name in ("stream_transform_hooks", "stream_result_hooks", "stream_cleanup_hooks"):
            setattr(self, name, list(getattr(self, name) or ()))

    def _state(self) -> str:
        count = len(self.messages) if hasattr(self.messages, "__len__") else "?"
        return f"messages={count}, stream={self.stream}, {_outcome(self.result)}"


@dataclass(eq=False, kw_only=True)
class AgentContext(_Context):
    """One agent run, for agent middleware. You may change all attributes; the arguments have the same names.

    Attributes:
        agent: The agent that runs.
        messages: The input. The agent gets the list with the changes of the middleware.
        session: The session, if any.
        tools: The additional tools of this run.
        options: The options of this run.
        stream: Whether updates are streamed.
        compaction_strategy: The strategy of this run, if any.
        tokenizer: The tokenizer of this run, if any.
        metadata: Values that the middleware of this run share.
        result: The result of the run: `None` before the run, then an `AgentResponse`, or a `ResponseStream` when
            streaming.
        kwargs: All other keyword arguments of the run.
        client_kwargs: Keyword arguments for the chat client.
        function_invocation_kwargs: Keyword arguments for the tools.
        stream_transform_hooks: Functions that are called with every streamed update. A result that is not `None`
            replaces the update.
        stream_result_hooks: Functions that are called with the response at the end of the stream. A result that is not
            `None` replaces the response.
        stream_cleanup_hooks: Functions that are called without arguments when the stream ends, fails or is closed.

    Example:
        @agent_middleware
        async def log(context: AgentContext, call_next):
            await call_next()
            print(len(context.messages), context.result.text)
    """

    agent: Any
    messages: Any = field(default_factory=list)
    session: Any = None
    tools: Any = None
    options: Any = field(default_factory=dict)
    stream: bool = False
    compaction_strategy: Any = None
    tokenizer: Any = None
    metadata: MutableMapping[str, Any] = field(default_factory=dict)
    result: Any = None
    kwargs: MutableMapping[str, Any] = field(default_factory=dict)
    client_kwargs: MutableMapping[str, Any] = field(default_factory=dict)
    function_invocation_kwargs: MutableMapping[str, Any] = field(default_factory=dict)
    stream_transform_hooks: MutableSequence[Any] = field(default_factory=list)
    stream_result_hooks: MutableSequence[Any] = field(default_factory=list)
    stream_cleanup_hooks: MutableSequence[Any] = field(default_factory=list)

    def __repr__(self) -> str:
        agent = getattr(self.agent, "name", None) or type(self.agent).__name__
        return f"AgentContext(agent={agent!r}, {self._state()})"


@dataclass(eq=False)
class ChatContext(_Context):
    """One model call, for chat middleware. You may change all attributes; the arguments have the same names.

    Attributes:
        client: The chat client.
        messages: The messages for the model, which gets the list with the changes of the middleware.
        options: The options of this call.
        stream: Whether updates are streamed.
        metadata: Values that the middleware of this call share.
        result: The result of the call: `None` before the call, then a `ChatResponse`, or a `ResponseStream` when
            streaming.
        kwargs: All other keyword arguments of the call.
        function_invocation_kwargs: Keyword arguments for the tools.
        stream_transform_hooks, stream_result_hooks, stream_cleanup_hooks: As in `AgentContext`.

    Example:
        @chat_middleware
        async def cool(context: ChatContext, call_next):
            context.options["temperature"] = 0.0
            await call_next()
    """

    client: Any
    messages: Any = field(default_factory=list)
    options: Any = field(default_factory=dict)
    stream: bool = False
    metadata: MutableMapping[str, Any] = field(default_factory=dict)
    result: Any = None
    kwargs: MutableMapping[str, Any] = field(default_factory=dict)
    function_invocation_kwargs: MutableMapping[str, Any] = field(default_factory=dict)
    stream_transform_hooks: MutableSequence[Any] = field(default_factory=list)
    stream_result_hooks: MutableSequence[Any] = field(default_factory=list)
    stream_cleanup_hooks: MutableSequence[Any] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"ChatContext(client={type(self.client).__name__}, {self._state()})"


class FunctionInvocationContext:
    """One tool call, for function middleware, and for the tool itself if it has a parameter of this type.

    You may change all attributes; the arguments have the same names.

    Attributes:
        function: The tool.
        arguments: The arguments by parameter name. They are validated again if a middleware changes them.
        session: The session of the run, if any.
        metadata: Values that the middleware of this call share. Contains `call_id`, `approval_response` if a person
            approved the call, and `inner_approvals` if the tool is called again with answers to its own requests.
        result: The result of the tool as a list of `Content`; `None` before the call.
        kwargs: The `function_invocation_kwargs` of the run; the model does not see them.

    Example:
        @tool
        def greet(context: FunctionInvocationContext) -> str:
            return f"Hello, {context.kwargs['user']}."


        response = await agent.run("Greet me.", function_invocation_kwargs={"user": "Ada"})
    """

    def __init__(
        self,
        function: Any,
        arguments: Any,
        session: Any = None,
        metadata: MutableMapping[str, Any] | None = None,
        result: Any = None,
        kwargs: MutableMapping[str, Any] | None = None,
    ) -> None:
        self.function, self.arguments, self.session, self.result = function, arguments, session, result
        self.metadata: MutableMapping[str, Any] = {} if metadata is None else metadata
        self.kwargs: MutableMapping[str, Any] = {} if kwargs is None else kwargs

    @property
    def tools(self) -> list[Any]:
        """The tools that the model is offered from the next call on; empty outside of a run of an agent or client."""
        tools_of_run = self.metadata.get(TOOLS_OF_RUN)
        return [] if tools_of_run is None else list(tools_of_run.offered)

    def add_tools(self, tools: Any) -> None:
        """Offer further tools to the model, for the rest of the run. It can call them from its next answer on.

        If the run waits for a person, the tools are still there when the answer continues it with the same session
        object in the same process. They are not stored: after a restart, a call of an added tool is one of an unknown
        tool.

        Args:
            tools: One tool or many: functions, tools, or servers that are connected.

        Raises:
            RuntimeError: This is not a call of a model in a run.
            TypeError: An item is not a tool.
            ValueError: Another tool has the same name, or a server is not connected.

        Example:
            def paint(colour: str) -> str:
                return f"The wall is {colour}."


            @tool
            def open_paint_box(context: FunctionInvocationContext) -> str:
                context.add_tools(paint)
                return "You can paint now."
        """
        self._tools_of_run().add(tools)

    def remove_tools(self, tools: Any) -> None:
        """Stop offering tools to the model, for the rest of the run. Tools that are not offered are ignored.

        Args:
            tools: One tool or many, or their names.

        Raises:
            RuntimeError: This is not a call of a model in a run.

        Example:
            @tool
            def close_paint_box(context: FunctionInvocationContext) -> str:
                context.remove_tools("paint")
                return "You cannot paint any more."
        """
        self._tools_of_run().remove(tools)

    def _tools_of_run(self) -> ToolsOfRun:
        tools_of_run: ToolsOfRun | None = self.metadata.get(TOOLS_OF_RUN)
        if tools_of_run is None:
            message = (
                "This call of a tool is not part of a run, so there is no model to offer tools to. Call add_tools and "
                "remove_tools while an agent or a client runs the tool."
            )
            raise RuntimeError(message)
        return tools_of_run

    def __repr__(self) -> str:
        name = getattr(self.function, "name", None) or repr(self.function)
        names = ", ".join(map(str, self.arguments)) if isinstance(self.arguments, Mapping) else "..."
        return f"FunctionInvocationContext({name}({names}), {_outcome(self.result)})"


def _outcome(result: object) -> str:
    return "no result yet" if result is None else f"result={type(result).__name__}"


# ---- classes and decorators


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

MiddlewareInput: TypeAlias = MiddlewareTypes | Sequence[MiddlewareTypes | Sequence[MiddlewareTypes]] | None
"""The type of `middleware=` arguments."""
