"""`RunContext` and `@step`: how a workflow function and its steps use the run."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import re
import textwrap
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.writer import JsonWriter
from agentbench.workflows.events.events import WorkflowEvent

if TYPE_CHECKING:
    from agentbench.workflows.functional.execution import FunctionExecution


class ContextFunction:
    """An async function with an optional context parameter, which is named `ctx` or annotated `RunContext`.

    Raises:
        TypeError: The function is not async.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        if not inspect.iscoroutinefunction(function):
            name = getattr(function, "__name__", function)
            msg = f"{what} {name!r} is not an async function. Define it with async def; pass a name as name='...'."
            raise TypeError(msg)
        self.function = function
        parameters = list(inspect.signature(function).parameters.values())
        found = (i for i, p in enumerate(parameters) if p.name == "ctx" or _names_context(p.annotation))
        self._place = next(found, None)
        self._context = None if self._place is None else parameters[self._place]
        self.parameters = [p for p in parameters if p is not self._context]
        """The parameters that callers fill."""

    def call(self, context: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call it with these arguments, adding the context in its place."""
        if self._context is None or self._place is None:
            return self.function(*args, **kwargs)
        if self._context.kind is not inspect.Parameter.KEYWORD_ONLY and len(args) >= self._place:
            return self.function(*args[: self._place], context, *args[self._place :], **kwargs)
        return self.function(*args, **kwargs, **{self._context.name: context})


def _names_context(annotation: object) -> bool:
    return re.search(r"\bRunContext\b", str(annotation)) is not None  # a text if annotations are not evaluated


def fingerprint(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Return a digest of arguments that is the same in every process; None if some cannot be stored."""
    try:
        text = JsonWriter().write([list(args), dict(kwargs)])
    except (UnstorableValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


_CONTAINERS = (bytearray, deque, dict, list, set)


def can_change_in_place(value: object) -> bool:
    """Return whether `change_in_place` can change a value."""
    return isinstance(value, _CONTAINERS) or hasattr(value, "__dict__")


def change_in_place(value: Any, changed: Any) -> None:
    """Replace the content of a container or an object by that of another one of its class."""
    if isinstance(value, (list, bytearray)):
        value[:] = changed
    elif isinstance(value, deque):
        value.clear()
        value.extend(changed)
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(changed)
    else:
        vars(value).clear()
        vars(value).update(vars(changed))


def code_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's code, ignoring comments, layout, decorators and the docstring."""
    try:
        definition: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        body = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
        text = "\n".join(map(ast.unparse, [definition.args, *body]))
    except (OSError, SyntaxError, TypeError):  # no source, as for exec()
        code = inspect.unwrap(function).__code__
        text = repr((code.co_code, code.co_names, [c for c in code.co_consts if not inspect.iscode(c)]))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


# ---- the context


ACTIVE: ContextVar[RunContext | None] = ContextVar("agentbench_run_context", default=None)
"""The context of the function or step that is running."""


class RunPending(BaseException):
    """Ends a function that needs a response. Not an `Exception`, so that the function does not catch it by accident."""


class RunContext:
    """What a workflow function and its steps can request from the run: a person's response, events, state.

    A function gets it in a parameter named `ctx`, or annotated with this class. Elsewhere call `get_run_context()`.

    Example:
        >>> @workflow
        ... async def publish(draft: str, ctx: RunContext) -> str:
        ...     approved = await ctx.request_info(draft, bool)
        ...     return draft if approved else "withdrawn"
    """

    __slots__ = ("_execution", "calls", "prefix", "requests")

    def __init__(self, execution: FunctionExecution, prefix: str = "") -> None:
        self._execution = execution
        self.prefix = prefix
        """Prefix of the keys of steps that are called inside a step."""
        self.calls: Counter[str] = Counter()
        """How often each step was called in this context."""
        self.requests = 0
        """How many requests without an explicit id were made in this context."""

    @property
    def execution(self) -> FunctionExecution:
        """The run, for steps."""
        return self._execution

    async def request_info(
        self,
        request_data: Any = None,
        response_type: Any = object,
        *,
        request_id: str | None = None,
        data: Any = None,
    ) -> Any:
        """Return the response to a request, for example to a person.

        If there is no response yet, the run ends here with the request pending. `run(responses={request_id: ...})` then
        calls the function again, and this call returns the response; results of steps are cached.

        Args:
            request_data: The data that the person needs.
            response_type: The type of the response.
            request_id: The request's id; by default `auto::0`, `auto::1` and so on, in the order of the calls.
            data: Another name for `request_data`.

        Raises:
            ValueError: Another request of this run has the same id.
        """
        if request_id is None:
            request_id = self._execution.next_request_id()
            self.requests += 1
        return self._execution.request(request_id, data if request_data is None else request_data, response_type)

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event to the observers of the run."""
        self._execution.log.append(event)

    def get_state(self, key: str, default: Any = None) -> Any:
        """Return a value of the run's state."""
        return self._execution.run.state.get(key, default)

    def set_state(self, key: str, value: Any) -> None:
        """Write a value to the run's state, which checkpoints include. ValueError: the key begins with `_`."""
        if key.startswith("_"):
            msg = f"State key {key!r} is reserved: the engine uses keys that start with '_'. Use another name."
            raise ValueError(msg)
        self._execution.run.state.set(key, value)

    def is_streaming(self) -> bool:
        """Whether the run was started with `stream=True`."""
        return self._execution.run.streaming

    def get_runtime_tools(self) -> list[Any]:
        """Return the tools of `run(tools=[...])`, to pass them on to agents.

        Example:
            >>> async def answer(question: str) -> str:
            ...     ctx = get_run_context()
            ...     return (await agent.run(question, tools=ctx.get_runtime_tools())).text
        """
        return list(self._execution.run.tools)


def get_run_context() -> RunContext | None:
    """Return the context of the workflow function or step that is currently running, or None.

    Example:
        >>> async def note(text: str) -> None:
        ...     ctx = get_run_context()
        ...     if ctx is not None:
        ...         await ctx.add_event(WorkflowEvent("custom", text))
    """
    return ACTIVE.get()


# ---- steps


ResultT = TypeVar("ResultT")

ReplayKey = str | Callable[..., object]

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+>")
"""The end of a default `repr()`: the address of the object."""


class StepWrapper(Generic[ResultT]):
    """An async function as a step of workflow functions; usually created by `@step`.

    Inside a run, its result is cached: when the workflow function is called again, to continue after a response or from
    a checkpoint, the step is not called again. Outside a run it is just the function.

    Args:
        func: The function, with any parameters; one named `ctx` or annotated `RunContext` gets the context.
        name: The name in events and checkpoints; by default the function's name.
        replay_key: The name of its recorded result, see `step`.

    Raises:
        TypeError: The function is not async, or the key is neither a text nor a function that is not async.

    Example:
        >>> async def fetch_page(address: str) -> str:
        ...     return f"The page at {address}"
        >>> fetch = StepWrapper(fetch_page, name="fetch")
    """

    __name__: str

    def __init__(
        self,
        func: Callable[..., Coroutine[Any, Any, ResultT]],
        *,
        name: str | None = None,
        replay_key: ReplayKey | None = None,
    ) -> None:
        given: object = replay_key
        is_async = inspect.iscoroutinefunction(given)
        if is_async or not (given is None or isinstance(given, str) or callable(given)):
            which = "an async function" if is_async else repr(given)
            msg = f"replay_key is {which}; expected a text, or a function of the step's arguments that is not async."
            raise TypeError(msg)
        self._function = ContextFunction(func, "Step")
        self.replay_key = replay_key
        functools.update_wrapper(self, func)
        self.name: str = name or func.__name__

    async def __call__(self, *args: Any, **kwargs: Any) -> ResultT:
        """Return the result of the function, or the cached result of the same call."""
        context = ACTIVE.get()
        result: ResultT
        if context is None:
            result = await self._function.function(*args, **kwargs)
        else:
            # A step gets its own context, even if it was passed the context of its caller.
            args = tuple(value for value in args if not isinstance(value, RunContext))
            kwargs = {name: value for name, value in kwargs.items() if not isinstance(value, RunContext)}
            label = self._label(args, kwargs)
            result = await context.execution.run_step(self.name, label, self._function, context, args, kwargs)
        return result

    def _label(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return the name of the recorded result of a call, which has to be the same in every process."""
        if self.replay_key is None or isinstance(self.replay_key, str):
            return self.replay_key or self.name
        key = self.replay_key(*args, **kwargs)
        text = str(key)
        is_set = isinstance(key, (set, frozenset))  # its order differs between processes
        if is_set or (not isinstance(key, str) and _ADDRESS.search(text)):
            msg = (
                f"The replay_key of step {self.name!r} returned {text}, whose text differs between processes, so its "
                "recorded result would never be found. Return a text, a number, or a tuple of these."
            )
            raise TypeError(msg)
        return f"{self.name}[{text}]"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an instance, like a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"StepWrapper({self.name!r})"


@overload
def step(func: Callable[..., Coroutine[Any, Any, ResultT]]) -> StepWrapper[ResultT]: ...
@overload
def step(
    func: None = None, *, name: str | None = None, replay_key: ReplayKey | None = None
) -> Callable[[Callable[..., Coroutine[Any, Any, ResultT]]], StepWrapper[ResultT]]: ...
def step(
    func: Callable[..., Any] | None = None, *, name: str | None = None, replay_key: ReplayKey | None = None
) -> Any:
    """Create a step of a workflow function: `@step` or `@step(name="...")`.

    The recorded result of a call is found by the name of the step and the number of the call. With a `replay_key` it is
    found by that key, so the calls may come in another order. If all steps that a workflow function names have one, its
    checkpoints also fit after its code was changed; then give its requests ids, too.

    Args:
        func: An async function.
        name: The name in events and checkpoints; by default the function's name.
        replay_key: The name of the recorded result, which stays the same if the function is renamed; or a function of
            the step's arguments, whose result distinguishes the calls: a text, a number, or a tuple of these. For a
            method it gets the instance first, as the method does: `lambda self, text: text`.

    Raises:
        TypeError: The function is not async, or the key is neither a text nor a function. By the call: the function
            returned a key whose text differs between processes, such as an object with the default `repr()`.

    Example:
        >>> @step
        ... async def summarize(text: str) -> str:
        ...     return (await agent.run(f"Summarize: {text}")).text
    """
    if func is None:
        return lambda f: StepWrapper(f, name=name, replay_key=replay_key)
    return StepWrapper(func, name=name, replay_key=replay_key)
