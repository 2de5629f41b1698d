"""Agent middleware around the runs of any agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

from agentbench.agents.arguments import describe
from agentbench.agents.middleware.bases import chat_middleware, function_middleware
from agentbench.agents.middleware.contexts import AgentContext
from agentbench.agents.middleware.pipeline import run_pipeline, with_stream_hooks
from agentbench.agents.middleware.sorting import flat_middleware, sort_middleware
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.stream import ResponseStream

_ASKED = (
    "session",
    "tools",
    "options",
    "compaction_strategy",
    "tokenizer",
    "function_invocation_kwargs",
    "client_kwargs",
)

_Chain = Sequence[Callable[..., Any]]


class AgentMiddlewareRuns:
    """Puts agent middleware around the runs of the class it is mixed over: `Agent` is made with it.

    Chat and function middleware among what is given travels on as `client_kwargs["middleware"]`: the agent's, then the
    run's.

    Args:
        *args: For the class below.
        middleware: Of every run, outermost first.
        **kwargs: For the class below.

    Raises:
        MiddlewareException: If something given is no middleware, or its kind cannot be told.
    """

    def __init__(self, *args: Any, middleware: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sort_middleware(middleware)
        self.middleware: list[Any] = flat_middleware(middleware)

    def run(  # noqa: PLR0913 - the given signature
        self,
        messages: Any = None,
        *,
        stream: bool = False,
        session: Any = None,
        middleware: Any = None,
        tools: Any = None,
        options: Mapping[str, Any] | None = None,
        compaction_strategy: Any = None,
        tokenizer: Any = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run the agent below with its middleware around it; `middleware` is that of this run alone.

        Returns:
            What the agent below returns, or what a middleware puts in its place: an awaitable, `None` being its result
            where a middleware ends the run without one; with `stream=True` a stream.

        Raises:
            MiddlewareException: If something given is no middleware, or its kind cannot be told.
        """
        chain, for_client = _split([*self.middleware, *flat_middleware(middleware)])
        if for_client:
            client_kwargs = dict(client_kwargs or {})
            client_kwargs["middleware"] = [*for_client, *flat_middleware(client_kwargs.get("middleware"))]
        given = {
            "session": session,
            "tools": tools,
            "options": options,
            "compaction_strategy": compaction_strategy,
            "tokenizer": tokenizer,
            "function_invocation_kwargs": function_invocation_kwargs,
            "client_kwargs": client_kwargs,
        }
        below: Callable[..., Any] = super().run  # type: ignore[misc]
        if not chain:
            present = {name: value for name, value in given.items() if value is not None}
            return below(messages, **({"stream": True} if stream else {}), **present, **kwargs)
        for name in ("options", "function_invocation_kwargs", "client_kwargs"):
            given[name] = dict(given[name] or {})  # a middleware may add to them, and the caller's stay as they are
        context = AgentContext(agent=self, messages=normalize_messages(messages), stream=stream, kwargs=kwargs, **given)
        if not stream:
            return _answered(chain, context, below)
        streamed = _Streamed(chain, context, below)
        return ResponseStream(streamed.updates(), finalizer=streamed.final)


class AgentMiddlewareLayer(AgentMiddlewareRuns):
    """Puts agent middleware around the runs of the class that comes next: a `RawAgent`, or any class with a `run`.

    A class of its own, so that it may also stand before `Agent`, where it adds nothing. The arguments are those of
    `AgentMiddlewareRuns`.
    """


async def _answered(chain: _Chain, context: AgentContext, below: Callable[..., Any]) -> Any:
    of_agent: Any = None

    async def innermost() -> None:
        nonlocal of_agent
        result = below(context.messages, **_given(context))
        context.result = of_agent = await result if isawaitable(result) else result

    await run_pipeline(chain, context, innermost)
    if context.result is not of_agent:
        _check_result(context.result)
    return context.result


def _check_result(result: object) -> None:
    """Refuse what is no response of an agent, ours or another library's.

    Raises:
        TypeError: A middleware set something else.
    """
    if result is None or (hasattr(result, "messages") and not isinstance(result, ChatResponse)):
        return
    message = (
        f"The result that a middleware set for the run is {describe(result)}. Expected an AgentResponse, such as "
        "AgentResponse(text='...')."
    )
    raise TypeError(message)


class _Streamed:
    """A stream with middleware around it, which runs at the first pull."""

    def __init__(self, chain: _Chain, context: AgentContext, below: Callable[..., Any]) -> None:
        self._chain, self._context, self._below = chain, context, below
        self._stream: ResponseStream[Any, Any] | None = None

    async def updates(self) -> AsyncIterator[Any]:
        context = self._context

        async def innermost() -> None:
            result = self._below(context.messages, stream=True, **_given(context))
            context.result = result if isinstance(result, ResponseStream) else _stream_of(result)

        stream: ResponseStream[Any, Any] | None = None
        try:
            await run_pipeline(self._chain, context, innermost)
            if context.result is None:
                return
            self._stream = stream = with_stream_hooks(context.result, context)
            async for update in stream:
                yield update
        except Exception as error:
            tell = getattr(context.agent, "error_to_raise", None)
            told = error if tell is None else tell(error)
            if told is error:
                raise
            raise told from error
        finally:
            if stream is not None:
                await stream.aclose()

    async def final(self, _: object) -> Any:
        return AgentResponse() if self._stream is None else await self._stream.get_final_response()


def _given(context: AgentContext) -> dict[str, Any]:
    """What the run below is called with; what has no value is left out, since it may take fewer arguments."""
    present = {name: value for name in _ASKED if (value := getattr(context, name)) is not None and value != {}}
    return {**present, **context.kwargs}


def _stream_of(result: Any) -> ResponseStream[Any, Any]:
    """What an agent of another library streams, as a stream of ours."""
    if hasattr(result, "__aiter__"):
        return ResponseStream(result, finalizer=AgentResponse.from_updates)
    return ResponseStream.from_awaitable(result)


def _split(middleware: Sequence[Any]) -> tuple[list[Callable[..., Any]], list[Any]]:
    """The agent middleware, ready to be called, and the rest for the client, which sorts it itself."""
    chain: list[Callable[..., Any]] = []
    for_client: list[Any] = []
    for one in middleware:
        kinds = sort_middleware(one)
        chain.extend(kinds.agent)
        if not kinds.agent:
            for_client.append(one)
            continue
        # Of several kinds at once: the client takes no agent middleware.
        for_client += [_alone(call, chat_middleware) for call in kinds.chat]
        for_client += [_alone(call, function_middleware) for call in kinds.function]
    return chain, for_client


def _alone(call: Callable[..., Any], kind: Callable[[Any], Any]) -> Any:
    async def process(context: Any, call_next: Any) -> None:
        await call(context, call_next)

    return kind(process)
