"""What a middleware is handed: the call as it stands, to be read and changed before and after it goes on."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentbench.messages.content.content import Content

RUN_INVOCATIONS = "run_invocations"
"""Key in `FunctionInvocationContext.metadata`: how often each tool was called in this run, by the tool's name.

Whoever drives the tools of a run puts one dict there for all of its calls; a tool counts its own calls in it.
"""

INNER_APPROVALS = "inner_approvals"
"""Key in `FunctionInvocationContext.metadata`: `InnerApprovals`, if the tool asked for some when it was called."""


class InnerApprovals(NamedTuple):
    """What a tool asked a person about calls that it wants to make itself, with the answers; it is called once more.

    Attributes:
        requests: As the tool raised them, in a `UserInputRequiredException`.
        answers: Responses to some or all of them, approved or not.
    """

    requests: tuple[Content, ...]
    answers: tuple[Content, ...]


class AgentContext:
    """One run of an agent, as agent middleware sees it.

    Attributes:
        agent: The agent that runs.
        messages: The messages of this run; what is in this list when the run goes on is what the agent gets.
        session: The session, if any.
        tools: Tools given to this run alone.
        options: Options of this run.
        stream: Whether updates are streamed.
        compaction_strategy: The strategy of this run, if any.
        tokenizer: The tokenizer of this run, if any.
        metadata: Shared between the middleware of this run.
        result: `None` until there is one; then an `AgentResponse`, or a `ResponseStream` when streaming.
        kwargs: Everything else that the run was given.
        client_kwargs: Handed on to the model's client.
        function_invocation_kwargs: Handed on to the tools.
        stream_transform_hooks: Called with every streamed update; what they return replaces it, unless it is `None`.
        stream_result_hooks: Called with the response at the end of the stream; likewise.
        stream_cleanup_hooks: Called without arguments when the stream ends, fails or is given up.
    """

    __slots__ = (
        "agent",
        "client_kwargs",
        "compaction_strategy",
        "function_invocation_kwargs",
        "kwargs",
        "messages",
        "metadata",
        "options",
        "result",
        "session",
        "stream",
        "stream_cleanup_hooks",
        "stream_result_hooks",
        "stream_transform_hooks",
        "tokenizer",
        "tools",
    )

    def __init__(  # noqa: PLR0913 - one argument for each thing that a run can be given
        self,
        *,
        agent: Any,
        messages: Sequence[Any] | None = None,
        session: Any = None,
        tools: Any = None,
        options: Mapping[str, Any] | None = None,
        stream: bool = False,
        compaction_strategy: Any = None,
        tokenizer: Any = None,
        metadata: MutableMapping[str, Any] | None = None,
        result: Any = None,
        kwargs: MutableMapping[str, Any] | None = None,
        client_kwargs: MutableMapping[str, Any] | None = None,
        function_invocation_kwargs: MutableMapping[str, Any] | None = None,
        stream_transform_hooks: Sequence[Any] | None = None,
        stream_result_hooks: Sequence[Any] | None = None,
        stream_cleanup_hooks: Sequence[Any] | None = None,
    ) -> None:
        self.agent: Any = agent
        self.messages: Any = [] if messages is None else messages
        self.session: Any = session
        self.tools: Any = tools
        self.options: Any = {} if options is None else options
        self.stream = stream
        self.compaction_strategy: Any = compaction_strategy
        self.tokenizer: Any = tokenizer
        self.metadata: MutableMapping[str, Any] = {} if metadata is None else metadata
        self.result: Any = result
        self.kwargs: MutableMapping[str, Any] = {} if kwargs is None else kwargs
        self.client_kwargs: MutableMapping[str, Any] = {} if client_kwargs is None else client_kwargs
        self.function_invocation_kwargs: MutableMapping[str, Any] = (
            {} if function_invocation_kwargs is None else function_invocation_kwargs
        )
        self.stream_transform_hooks: MutableSequence[Any] = list(stream_transform_hooks or ())
        self.stream_result_hooks: MutableSequence[Any] = list(stream_result_hooks or ())
        self.stream_cleanup_hooks: MutableSequence[Any] = list(stream_cleanup_hooks or ())

    def __repr__(self) -> str:
        agent = getattr(self.agent, "name", None) or type(self.agent).__name__
        return f"AgentContext(agent={agent!r}, {_state(self.messages, stream=self.stream, result=self.result)})"


class ChatContext:
    """One call of a model, as chat middleware sees it.

    Attributes:
        client: The client of the model.
        messages: What the model gets; a change here is what it sees.
        options: Options of this call.
        stream: Whether updates are streamed.
        metadata: Shared between the middleware of this call.
        result: `None` until there is one; then a `ChatResponse`, or a `ResponseStream` when streaming.
        kwargs: Everything else that the call was given.
        function_invocation_kwargs: Handed on to the tools.
        stream_transform_hooks: Called with every streamed update; what they return replaces it, unless it is `None`.
        stream_result_hooks: Called with the response at the end of the stream; likewise.
        stream_cleanup_hooks: Called without arguments when the stream ends, fails or is given up.
    """

    __slots__ = (
        "client",
        "function_invocation_kwargs",
        "kwargs",
        "messages",
        "metadata",
        "options",
        "result",
        "stream",
        "stream_cleanup_hooks",
        "stream_result_hooks",
        "stream_transform_hooks",
    )

    def __init__(  # noqa: PLR0913 - one argument for each thing that a call can be given
        self,
        client: Any,
        messages: Sequence[Any] | None = None,
        options: Mapping[str, Any] | None = None,
        stream: bool = False,
        metadata: MutableMapping[str, Any] | None = None,
        result: Any = None,
        kwargs: MutableMapping[str, Any] | None = None,
        function_invocation_kwargs: MutableMapping[str, Any] | None = None,
        stream_transform_hooks: Sequence[Any] | None = None,
        stream_result_hooks: Sequence[Any] | None = None,
        stream_cleanup_hooks: Sequence[Any] | None = None,
    ) -> None:
        self.client: Any = client
        self.messages: Any = [] if messages is None else messages
        self.options: Any = {} if options is None else options
        self.stream = stream
        self.metadata: MutableMapping[str, Any] = {} if metadata is None else metadata
        self.result: Any = result
        self.kwargs: MutableMapping[str, Any] = {} if kwargs is None else kwargs
        self.function_invocation_kwargs: MutableMapping[str, Any] = (
            {} if function_invocation_kwargs is None else function_invocation_kwargs
        )
        self.stream_transform_hooks: MutableSequence[Any] = list(stream_transform_hooks or ())
        self.stream_result_hooks: MutableSequence[Any] = list(stream_result_hooks or ())
        self.stream_cleanup_hooks: MutableSequence[Any] = list(stream_cleanup_hooks or ())

    def __repr__(self) -> str:
        state = _state(self.messages, stream=self.stream, result=self.result)
        return f"ChatContext(client={type(self.client).__name__}, {state})"


class FunctionInvocationContext:
    """One call of a tool, as function middleware sees it, and as the tool itself gets it if it has such a parameter.

    Attributes:
        function: The tool.
        arguments: What it is called with, by parameter; validated again if a middleware changes it.
        session: The session of the run, if any.
        metadata: Shared between the middleware of this call. Holds `call_id`; `approval_response` when a person
            approved the call; `inner_approvals` when it is called again with answers to what it asked itself.
        result: `None` until the tool ran; then its result as a list of `Content`.
        kwargs: What the run was given for its tools, by name; the model does not see it.
    """

    __slots__ = ("arguments", "function", "kwargs", "metadata", "result", "session")

    def __init__(
        self,
        function: Any,
        arguments: Any,
        session: Any = None,
        metadata: MutableMapping[str, Any] | None = None,
        result: Any = None,
        kwargs: MutableMapping[str, Any] | None = None,
    ) -> None:
        self.function: Any = function
        self.arguments: Any = arguments
        self.session: Any = session
        self.metadata: MutableMapping[str, Any] = {} if metadata is None else metadata
        self.result: Any = result
        self.kwargs: MutableMapping[str, Any] = {} if kwargs is None else kwargs

    def __repr__(self) -> str:
        name = getattr(self.function, "name", None) or repr(self.function)
        names = ", ".join(map(str, self.arguments)) if isinstance(self.arguments, Mapping) else "..."
        return f"FunctionInvocationContext({name}({names}), {_outcome(self.result)})"


def _state(messages: Any, *, stream: bool, result: object) -> str:
    count = len(messages) if hasattr(messages, "__len__") else "?"
    return f"messages={count}, stream={stream}, {_outcome(result)}"


def _outcome(result: object) -> str:
    return "no result yet" if result is None else f"result={type(result).__name__}"
