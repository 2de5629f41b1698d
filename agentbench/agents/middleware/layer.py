"""`AgentMiddlewareLayer`: agent middleware for any agent class."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any

from agentbench.agents.arguments import describe
from agentbench.agents.middleware.contexts import AgentContext, chat_middleware, function_middleware
from agentbench.agents.middleware.sorting import flat_middleware, run_pipeline, sort_middleware, with_stream_hooks
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.stream import ResponseStream

_ARGUMENTS = (
    "session",
    "tools",
    "options",
    "compaction_strategy",
    "tokenizer",
    "function_invocation_kwargs",
    "client_kwargs",
)

_Chain = Sequence[Callable[..., Any]]


class AgentMiddlewareLayer:
    """A mixin that adds agent middleware to the next class: a `RawAgent`, or any class with a `run` method.

    `Agent` already supports agent middleware, so the mixin does nothing before it. Chat and function middleware is
    passed to the client as `client_kwargs["middleware"]`: first the agent's, then the run's.

    Args:
        middleware: The middleware for every run, outermost first.
        *args, **kwargs: Arguments for the next class.

    Raises:
        MiddlewareException: `middleware` contains an object that is not middleware, or whose kind is unclear.

    Example:
        class Guarded(AgentMiddlewareLayer, RawAgent):
            pass


        agent = Guarded(EchoChatClient(), middleware=[])
    """

    def __init__(self, *args: Any, middleware: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sort_middleware(middleware)
        self.middleware: list[Any] = flat_middleware(middleware)

    def run(self, messages: Any = None, *, stream: bool = False, middleware: Any = None, **arguments: Any) -> Any:
        """Call `run` of the next class inside the middleware. Other arguments are passed on.

        Returns:
            An awaitable of the response, or of `None` if a middleware ends the run without one. With `stream=True`, a
            stream.
        """
        run: Callable[..., Any] = super().run  # type: ignore[misc]
        if getattr(super(), "RUNS_MIDDLEWARE", False):
            return run(messages, stream=stream, middleware=middleware, **arguments)
        return run_with_middleware(self, run, messages, arguments, stream=stream, middleware=middleware)


def run_with_middleware(
    agent: Any,
    run: Callable[..., Any],
    messages: Any,
    arguments: Mapping[str, Any],
    *,
    stream: bool,
    middleware: Any = None,
) -> Any:
    """Call `run` inside the middleware of the agent and of the run. Return an awaitable or a stream."""
    chain, for_client = _split([*agent.middleware, *flat_middleware(middleware)])
    if for_client:
        kwargs = dict(arguments.get("client_kwargs") or {})
        kwargs["middleware"] = [*for_client, *flat_middleware(kwargs.get("middleware"))]
        arguments = {**arguments, "client_kwargs": kwargs}
    if not chain:
        present = {name: value for name, value in arguments.items() if value is not None}
        return run(messages, **({"stream": True} if stream else {}), **present)
    named: dict[str, Any] = {name: arguments.get(name) for name in _ARGUMENTS}
    for name in ("options", "function_invocation_kwargs", "client_kwargs"):
        named[name] = dict(named[name] or {})  # copies, so that a middleware does not change the caller's dicts
    others = {name: value for name, value in arguments.items() if name not in _ARGUMENTS}
    context = AgentContext(agent=agent, messages=normalize_messages(messages), stream=stream, kwargs=others, **named)
    if not stream:
        return _respond(chain, context, run)
    return _stream(chain, context, run)


@contextmanager
def _raising_errors_of(agent: Any) -> Iterator[None]:
    """Convert errors of middleware like the agent converts errors of its runs."""
    try:
        yield
    except Exception as error:
        error_to_raise = getattr(agent, "error_to_raise", None)
        raised = error if error_to_raise is None else error_to_raise(error)
        if raised is error:
            raise
        raise raised from error


async def _respond(chain: _Chain, context: AgentContext, inner: Callable[..., Any]) -> Any:
    response: Any = None

    async def innermost() -> None:
        nonlocal response
        result = inner(context.messages, **_inner_arguments(context))
        context.result = response = await result if isawaitable(result) else result

    with _raising_errors_of(context.agent):
        await run_pipeline(chain, context, innermost)
    result = context.result
    if result is response or result is None or (hasattr(result, "messages") and not isinstance(result, ChatResponse)):
        return result
    message = (
        f"A middleware set context.result to {describe(result)}. Expected an AgentResponse, such as "
        "AgentResponse(text='...')."
    )
    raise TypeError(message)


def _stream(chain: _Chain, context: AgentContext, inner: Callable[..., Any]) -> ResponseStream[Any, Any]:
    """Return the stream of a run inside its middleware. The middleware starts when the first update is requested."""
    stream: ResponseStream[Any, Any] | None = None

    async def innermost() -> None:
        result = inner(context.messages, stream=True, **_inner_arguments(context))
        if hasattr(result, "__aiter__"):
            is_own = isinstance(result, ResponseStream)
            context.result = result if is_own else ResponseStream(result, finalizer=AgentResponse.from_updates)
        else:
            context.result = ResponseStream.from_awaitable(result)

    async def updates() -> AsyncIterator[Any]:
        nonlocal stream
        try:
            with _raising_errors_of(context.agent):
                await run_pipeline(chain, context, innermost)
                if context.result is None:
                    return
                stream = with_stream_hooks(context.result, context)
                async for update in stream:
                    yield update
        finally:
            if stream is not None:
                await stream.aclose()

    async def final(_: object) -> Any:
        return AgentResponse() if stream is None else await stream.get_final_response()

    return ResponseStream(updates(), finalizer=final)


def _inner_arguments(context: AgentContext) -> dict[str, Any]:
    """Return the arguments for the next class. Unset ones are omitted, because it may not accept all of them."""
    present = {name: value for name in _ARGUMENTS if (value := getattr(context, name)) is not None and value != {}}
    return {**present, **context.kwargs}


def _split(middleware: Sequence[Any]) -> tuple[list[Callable[..., Any]], list[Any]]:
    """Return the agent middleware as callables, and the other middleware, which the client sorts itself."""
    chain: list[Callable[..., Any]] = []
    for_client: list[Any] = []
    for one in middleware:
        kinds = sort_middleware(one)
        chain.extend(kinds.agent)
        if not kinds.agent:
            for_client.append(one)
            continue
        # An object of several kinds is split, because the client does not accept agent middleware.
        for_client += [_of_one_kind(call, chat_middleware) for call in kinds.chat]
        for_client += [_of_one_kind(call, function_middleware) for call in kinds.function]
    return chain, for_client


def _of_one_kind(call: Callable[..., Any], kind: Callable[[Any], Any]) -> Any:
    async def process(context: Any, call_next: Any) -> None:
        await call(context, call_next)

    return kind(process)
