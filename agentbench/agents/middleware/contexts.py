"""The contexts of middleware: one call, to be read and changed before and after it continues.

They take further attributes; nothing here reads those.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, MutableSequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentbench.messages.content.content import Content

RUN_INVOCATIONS = "run_invocations"
"""Key in `FunctionInvocationContext.metadata`: how often each tool was called in this run, by the tool's name.

The tool loop puts one dict there for all calls of its run; a tool counts its own calls in it.
"""

INNER_APPROVALS = "inner_approvals"
"""Key in `FunctionInvocationContext.metadata`: `InnerApprovals`, if an earlier call of the tool requested approvals."""


class InnerApprovals(NamedTuple):
    """A tool's approval requests for its own calls, with a person's answers, for calling the tool again.

    Attributes:
        requests: From the `UserInputRequiredException` of the tool.
        answers: Responses to some or all of them, approved or not.
    """

    requests: tuple[Content, ...]
    answers: tuple[Content, ...]


class _Context:
    messages: Any
    stream: bool
    result: Any

    def __post_init__(self) -> None:
        """Make an empty value of each `None`, and lists of the hooks, which middleware may add to."""
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
    """One run of an agent, for agent middleware. All attributes may be changed; the arguments have the same names.

    Attributes:
        agent: The agent that runs.
        messages: The input; the agent gets the list as it is when the run continues.
        session: The session, if any.
        tools: Tools of this run only.
        options: Options of this run.
        stream: Whether updates are streamed.
        compaction_strategy: The strategy of this run, if any.
        tokenizer: The tokenizer of this run, if any.
        metadata: Shared between the middleware of this run.
        result: `None` until there is one; then an `AgentResponse`, or a `ResponseStream` when streaming.
        kwargs: All other keywords of the run.
        client_kwargs: For the model's client.
        function_invocation_kwargs: For the tools.
        stream_transform_hooks: Called with every streamed update; a result that is not `None` replaces it.
        stream_result_hooks: Called with the response at the end of the stream; a result that is not `None` replaces it.
        stream_cleanup_hooks: Called without arguments when the stream ends, fails or is closed.

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
    """One call of a model, for chat middleware. All attributes may be changed; the arguments have the same names.

    Attributes:
        client: The client of the model.
        messages: For the model, which gets the list as it is when the call continues.
        options: Options of this call.
        stream: Whether updates are streamed.
        metadata: Shared between the middleware of this call.
        result: `None` until there is one; then a `ChatResponse`, or a `ResponseStream` when streaming.
        kwargs: All other keywords of the call.
        function_invocation_kwargs: For the tools.
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
    """One call of a tool, for function middleware, and for the tool itself if it has a parameter of this type.

    All attributes may be changed; the arguments have the same names.

    Attributes:
        function: The tool.
        arguments: Its arguments, by parameter; validated again if a middleware changes them.
        session: The session of the run, if any.
        metadata: Shared between the middleware of this call. Holds `call_id`; `approval_response` when a person
            approved the call; `inner_approvals` when it is called again with answers to its own requests.
        result: `None` until the tool ran; then its result as a list of `Content`.
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

    def __repr__(self) -> str:
        name = getattr(self.function, "name", None) or repr(self.function)
        names = ", ".join(map(str, self.arguments)) if isinstance(self.arguments, Mapping) else "..."
        return f"FunctionInvocationContext({name}({names}), {_outcome(self.result)})"


def _outcome(result: object) -> str:
    return "no result yet" if result is None else f"result={type(result).__name__}"
