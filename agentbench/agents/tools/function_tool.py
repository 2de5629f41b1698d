"""A function that a model may call."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Set
from functools import partial
from types import CoroutineType
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

from agentbench._display import Displayable, drawn_by
from agentbench._limits import require_limit
from agentbench._workers import run_in_thread
from agentbench.agents.arguments import warn_of_near_misses
from agentbench.agents.middleware.contexts import RUN_INVOCATIONS, FunctionInvocationContext
from agentbench.agents.tools.counters import BoundTools, Counters
from agentbench.agents.tools.input_schema import InputModel, ValidArguments, schema_of
from agentbench.agents.tools.results import SKIP_PARSING, SkipParsing, parse_result
from agentbench.agents.tools.signature import NO_VALUE, ToolSignature, check_name, description_of, name_of
from agentbench.exceptions import ToolException, UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.observability.switches import is_tracing
from agentbench.observability.tool_reports import emitter_of
from agentbench.serialization.mixin import SerializationMixin

logger = logging.getLogger("agentbench")

ApprovalMode: TypeAlias = Literal["always_require", "never_require"]
ResultParser: TypeAlias = Callable[[Any], str | list[Content]] | SkipParsing

MCP_SERVER = "_mcp_server"
"""Key in the additional properties of a tool of an MCP server: name and address of the server."""

_PLAIN = frozenset({str, int, float, bool, dict, list, tuple, type(None)})
"""Exact types of results that are neither awaited nor iterated."""


@drawn_by("agentbench.notebook.cards.tool:tool")
class FunctionTool(SerializationMixin, Displayable):
    """A function that a model may call, with its name, description and schema.

    Args:
        func: The function, sync or async; a method, partial or callable object. Without a function, the tool is only
            declared, and the application answers the model's calls.
        name: Name of the tool; by default the function's.
        description: Description for the model; by default the function's docstring.
        approval_mode: `"always_require"` if a person has to approve each call; by default `"never_require"`.
        kind: Any tag, such as `"shell"`.
        max_invocations: Maximum number of calls until `reset()`.
        max_invocation_exceptions: Maximum number of failed calls until `reset()`.
        max_invocations_per_run: Maximum number of calls per agent run.
        additional_properties: Additional values that the application stores with the tool.
        input_model: A pydantic model class or JSON schema of the arguments, used instead of the signature.
        result_parser: Converts the function's result to text or contents; `SKIP_PARSING` keeps it unchanged.
        tags: Labels by which agents (`tools_tags=`) and tool nodes choose tools.
        provider: The service behind the tool, for information.
        capabilities: What the tool can do, such as `"writes files"`; approval forms show it.
        metadata: Another name for `additional_properties`.
        **kwargs: Stored as attributes; a name that looks like a misspelled argument causes a warning.

    Attributes:
        func: The function, or `None`.
        invocation_count: Calls since the last `reset()`. Methods are counted separately for each object.
        invocation_exception_count: Failed calls since the last `reset()`.

    Raises:
        TypeError: There is neither `func` nor `name`, `func` is not a function, `input_model` has no arguments,
            `metadata` and `additional_properties` are both given, a label has another type, or another keyword has the
            name of a method.
        ValueError: A limit is less than 1, the approval mode is unknown, the function has two context parameters, or
            the name has characters that services do not accept.

    Example:
        def get_weather(city: Annotated[str, "where"], days: int = 1) -> str:
            "Tell the weather."
            return f"Fog in {city} for {days} days."


        weather = FunctionTool(get_weather, approval_mode="always_require")
        print(weather.parameters())
        contents = await weather.invoke(city="Oslo")
    """

    type: ClassVar[str] = "function_tool"
    INJECTABLE: ClassVar[Collection[str]] = frozenset({"func"})
    DEFAULT_EXCLUDE: ClassVar[Collection[str]] = frozenset({"result_parser"})
    MAKES_OWN_SPANS: ClassVar[bool] = True

    _ab_is_plain = False  # made from a function that was passed as a tool

    def __init__(  # noqa: PLR0913 - the public signature
        self,
        func: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str = "",
        approval_mode: ApprovalMode | None = None,
        kind: str | None = None,
        max_invocations: int | None = None,
        max_invocation_exceptions: int | None = None,
        max_invocations_per_run: int | None = None,
        additional_properties: dict[str, Any] | None = None,
        input_model: InputModel = None,
        result_parser: ResultParser | None = None,
        tags: Iterable[str] | str = (),
        provider: str | None = None,
        capabilities: Iterable[str] | str = (),
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._ab_of_class = isinstance(func, classmethod)
        if isinstance(func, (staticmethod, classmethod)):
            func = func.__func__
        if func is None and not name:
            message = "A tool needs a function or a name. Expected FunctionTool(func) or FunctionTool(name='...')."
            raise TypeError(message)
        if isinstance(func, FunctionTool):
            message = f"{func!r} is already a tool. Use it, or make another tool from its function: {func.name}.func."
            raise TypeError(message)
        self.func = func
        self.name: str = check_name(name) if name else "" if func is None else name_of(func)
        self._ab_schema = schema_of(func, self.name, input_model)
        self.description = description or description_of(func)
        if approval_mode not in (None, "always_require", "never_require"):
            message = f"approval_mode={approval_mode!r} is unknown. Expected 'always_require', 'never_require' or None."
            raise ValueError(message)
        self.approval_mode = approval_mode or "never_require"
        self.kind = kind
        self.max_invocations, self.max_invocation_exceptions = max_invocations, max_invocation_exceptions
        self.max_invocations_per_run = max_invocations_per_run
        for limit in ("max_invocations", "max_invocation_exceptions", "max_invocations_per_run"):
            require_limit(limit, getattr(self, limit), least=1, none="no limit")
        if metadata is not None and additional_properties is not None:
            message = "metadata= and additional_properties= are the same field. Pass only one of them."
            raise TypeError(message)
        _require("metadata", metadata, Mapping, "a dictionary, such as metadata={'cost': 2},")
        self.additional_properties = metadata if additional_properties is None else additional_properties
        self.result_parser = result_parser
        _require("provider", provider, str, "a text, such as provider='GitHub',")
        self.tags, self.capabilities = as_labels("tags", tags), as_labels("capabilities", capabilities)
        self.provider = provider
        self._ab_signature: ToolSignature | None = self._ab_schema.signature
        self._ab_owner = None if self._ab_signature is None else self._ab_signature.owner
        self._ab_handoff: str | None = getattr(func, "__target_agent__", None)  # of `create_handoff_tool`
        self._ab_counters = Counters()
        self._ab_bound = BoundTools()
        if kwargs:
            warn_of_near_misses(type(self), kwargs)
        for attribute, value in kwargs.items():
            if callable(getattr(type(self), attribute, None)):
                mend = "Pass a schema as input_model={...}" if attribute == "parameters" else "Choose another name"
                message = f"{attribute}= would replace the method {attribute}() of the tool. {mend}."
                raise TypeError(message)
            setattr(self, attribute, value)

    # ------------------------------------------------------------------------------------------------------- properties

    @property
    def declaration_only(self) -> bool:
        """Whether the tool has no function, so that the application answers the calls."""
        return self.func is None

    @property
    def input_model(self) -> Any:
        """The pydantic model class of the arguments; `None` if a JSON schema describes them."""
        return self._ab_schema.get().model

    @property
    def invocation_count(self) -> int:
        """Calls since the last `reset()`."""
        return self._ab_counters.invocations

    @invocation_count.setter
    def invocation_count(self, count: int) -> None:
        self._ab_counters.invocations = count

    @property
    def invocation_exception_count(self) -> int:
        """Failed calls since the last `reset()`."""
        return self._ab_counters.exceptions

    @invocation_exception_count.setter
    def invocation_exception_count(self, count: int) -> None:
        self._ab_counters.exceptions = count

    def reset(self) -> None:
        """Set both counters to 0."""
        with self._ab_counters.lock:
            self._ab_counters.invocations = self._ab_counters.exceptions = 0

    def parameters(self) -> dict[str, Any]:
        """Return a copy of the JSON schema of the arguments.

        Raises:
            TypeError: The type of a parameter is unknown or has no JSON schema.
        """
        return self._ab_schema.get().json()

    def to_json_schema_spec(self) -> dict[str, Any]:
        """Return name, description and schema in the format of chat services."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters()}
        return {"type": "function", "function": function}

    def __str__(self) -> str:
        described = f", description={self.description}" if self.description else ""
        return f"FunctionTool(name={self.name}{described})"

    def __repr__(self) -> str:
        facts = [f"{self.name}({', '.join(self._ab_parameter_names())})"]
        if self.declaration_only:
            facts.append("declaration_only=True")
        if self.approval_mode != "never_require":
            facts.append(f"approval_mode={self.approval_mode!r}")
        if self.invocation_count:
            facts.append(f"invocation_count={self.invocation_count}")
        return f"FunctionTool({', '.join(facts)})"

    def _ab_parameter_names(self) -> list[str]:
        """Return the parameter names, optional ones with `=`, without loading pydantic."""
        model, signature = self._ab_schema.input_model, self._ab_signature
        if isinstance(model, Mapping):
            required = dict.fromkeys(model.get("properties") or (), False) | dict.fromkeys(
                model.get("required") or (), True
            )
        elif model is not None:
            required = {name: field.is_required() for name, field in model.model_fields.items()}
        else:
            required = {one.name: one.default is NO_VALUE for one in signature.parameters} if signature else {}
        return [name if is_required else f"{name}=" for name, is_required in required.items()]

    # ------------------------------------------------------------------------------------------------------- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with unchecked arguments, and return its result.

        Raises:
            ToolException: The tool is only declared, or a limit of calls is reached.
        """
        func = self._ab_callable()
        self._ab_count_call(None)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self._ab_count_exception(error)
            raise
        return self._ab_await_counted(result) if inspect.iscoroutine(result) else result

    async def _ab_await_counted(self, pending: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await pending
        except Exception as error:
            self._ab_count_exception(error)
            raise

    def _ab_count_call(self, metadata: Mapping[str, Any] | None) -> None:
        """Count one call, also in the context's `RUN_INVOCATIONS`; raise without counting if a limit is reached."""
        counters, in_run = self._ab_counters, None
        if metadata is not None and self.max_invocations_per_run is not None:
            in_run = metadata.get(RUN_INVOCATIONS)
        with counters.lock:
            if in_run is not None or self.max_invocations is not None or self.max_invocation_exceptions is not None:
                self._ab_check_limits(counters, in_run or {})
            counters.invocations += 1
            if in_run is not None:
                in_run[self.name] = in_run.get(self.name, 0) + 1

    def _ab_check_limits(self, counters: Counters, in_run: Mapping[str, int]) -> None:
        reset, wait = (
            "Call reset() on it, or raise the limit.",
            "It can be called again in the next run.",
        )
        for name, count, event, mend in (
            ("max_invocations", counters.invocations, "was called {} times", reset),
            ("max_invocation_exceptions", counters.exceptions, "failed {} times", reset),
            ("max_invocations_per_run", in_run.get(self.name, 0), "was called {} times in this run", wait),
        ):
            limit = getattr(self, name)
            if limit is not None and count >= limit:
                message = f"Tool {self.name!r} {event.format(count)}, but {name}={limit}. {mend}"
                raise ToolException(message)

    def _ab_count_exception(self, error: Exception) -> None:
        if not isinstance(error, UserInputRequiredException):  # a question is not a failure
            with self._ab_counters.lock:
                self._ab_counters.exceptions += 1

    def validate_arguments(self, arguments: Any) -> dict[str, Any]:
        """Check arguments against the schema, and convert them for the function.

        `invoke()` does not check them again unless they have been changed.

        Args:
            arguments: Arguments by name, or an instance of a pydantic model.

        Raises:
            ToolArgumentsError: The arguments do not fit; the cause is the validation error, if there is one.
            TypeError: The arguments are not a mapping.
        """
        valid = self._ab_valid(arguments)
        return valid if valid is arguments else ValidArguments.of(self._ab_schema.get(), valid)

    def _ab_valid(self, arguments: Any) -> dict[str, Any]:
        schema = self._ab_schema.get()
        if type(arguments) is ValidArguments and arguments.are_valid_for(schema):
            return arguments
        if not isinstance(arguments, (dict, Mapping)):  # the check for dict is much faster
            arguments = _as_mapping(self.name, arguments)
        return schema.validate(self.name, arguments)

    async def invoke(
        self,
        *,
        arguments: Any = None,
        context: FunctionInvocationContext | None = None,
        tool_call_id: str | None = None,
        skip_parsing: bool = False,
        in_thread: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Check the arguments, call the function, and convert its result to contents.

        Generators are exhausted into a list. If tracing is enabled, the call has a span.

        Args:
            arguments: Arguments by name, or an instance of a pydantic model. By default `kwargs`, else the context's.
            context: Context for a function with a context parameter; by default a new one.
            tool_call_id: Id of the call, for its span and the metadata of a new context.
            skip_parsing: Whether to return the function's result unchanged.
            in_thread: Whether to run a sync function in a worker thread, with a copy of the context variables. It then
                does not block the event loop.
            **kwargs: Arguments by name, instead of `arguments`.

        Returns:
            A list of `Content`, or the function's result.

        Raises:
            ToolException: The tool is only declared, or a limit of calls is reached.
            TypeError: The arguments do not fit.
            Exception: Any error of the function.
        """
        func = self._ab_callable()
        if self._ab_owner is not None:
            message = (
                f"Tool {self.name!r} is an unbound method: its first parameter is {self._ab_owner!r}. "
                "Get it from an instance of the class, not from the class."
            )
            raise TypeError(message)
        if kwargs:
            self._ab_check_names(kwargs)
        if arguments is None:
            arguments = kwargs or (None if context is None else context.arguments) or {}
        valid = self._ab_valid(arguments)
        args, named = self._ab_call_arguments(valid, context, tool_call_id)
        metadata = None if context is None else context.metadata
        parser = SKIP_PARSING if skip_parsing else self.result_parser
        pending = self._ab_run(partial(func, *args, **named), metadata, parser, in_thread=in_thread)
        if not is_tracing():
            return await pending
        from agentbench.agents.telemetry.spans import ToolSpan  # noqa: PLC0415 - loads OpenTelemetry

        return await ToolSpan(self, tool_call_id, valid).call(lambda: pending)

    async def _ab_run(
        self,
        call: Callable[[], Any],
        metadata: Mapping[str, Any] | None,
        parser: ResultParser | None,
        *,
        in_thread: bool,
    ) -> Any:
        """Count and make a call of the function, and return its result as contents."""
        self._ab_count_call(metadata)
        try:
            if in_thread and _is_sync(self.func):
                result = await run_in_thread(_call_to_end, call)
            else:
                result = call()
            if type(result) is CoroutineType or (type(result) not in _PLAIN and inspect.isawaitable(result)):
                result = await result
            if type(result) not in _PLAIN:
                result = await _exhausted(result)
        except Exception as error:
            self._ab_count_exception(error)
            raise
        if parser is None:
            return parse_result(result)
        return result if parser is SKIP_PARSING else self._ab_parse(parser, result)

    def _ab_callable(self) -> Callable[..., Any]:
        if self.func is None:
            message = (
                f"Tool {self.name!r} is only declared and cannot be called here. Answer its calls with a message of "
                "role 'tool', or make the tool from a function: FunctionTool(func)."
            )
            raise ToolException(message)
        return self.func

    def _ab_check_names(self, named: Mapping[str, Any]) -> None:
        known = self._ab_schema.get().names
        unknown = [name for name in named if name not in known]
        if unknown:
            message = (
                f"Tool {self.name!r} has no argument {', '.join(map(repr, unknown))}. Expected some of: "
                f"{', '.join(sorted(known)) or 'none'}. "
                "To hide values from the model, pass them in the kwargs of a FunctionInvocationContext."
            )
            raise TypeError(message)

    def _ab_call_arguments(
        self, valid: dict[str, Any], context: FunctionInvocationContext | None, tool_call_id: str | None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and named arguments, including those that the run fills."""
        signature = self._ab_signature
        if signature is None or (signature.context is signature.emitter is None and not signature.positional_only):
            return [], valid
        named = dict(valid)
        if signature.emitter is not None:
            named[signature.emitter] = emitter_of(self.name, tool_call_id)
        if signature.context is not None:
            if context is None:
                metadata = {} if tool_call_id is None else {"call_id": tool_call_id}
                context = FunctionInvocationContext(self, valid, metadata=metadata)
            named[signature.context] = context
        return signature.take_positional(named), named

    @staticmethod
    def parse_result(result: object) -> list[Content]:
        """Convert a function's result to contents: `None` to empty text, other values than text or contents to JSON."""
        return parse_result(result)

    def _ab_parse(self, parser: Any, result: Any) -> list[Content]:
        try:
            parsed = parser(result)
        except Exception as error:
            logger.warning("The result parser of tool %r raised %s.", self.name, type(error).__name__)
            logger.debug("The result parser of tool %r failed.", self.name, exc_info=error)  # may contain the result
            return [Content.from_text(str(result))]
        return parse_result(parsed)

    def __get__(self, instance: Any, owner: Any = None) -> Self:
        """Bind the tool of a method to its object, or the tool of a class method to its class."""
        if self._ab_owner is None or (instance is None and not self._ab_of_class):
            return self
        return cast("Self", self._ab_bound.tool_of(owner if self._ab_of_class else instance, self))

    def bound_to(self, method: Callable[..., Any], counters: Counters | None) -> Self:
        """Return this tool with a method as its function; without `counters` it shares this tool's counters."""
        duplicate = self.__copy__()
        own_counters = {} if counters is None else {"_ab_counters": counters}
        duplicate.__dict__.update(func=method, _ab_owner=None, **own_counters)
        return duplicate

    # -------------------------------------------------------------------------------------- copying and serialization

    def __copy__(self) -> Self:
        """Return a tool that shares function, schema and counters with this one."""
        duplicate = type(self).__new__(type(self))
        duplicate.__dict__.update(self.__dict__, _ab_bound=BoundTools())
        return duplicate

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a tool with the same function, and with separate properties and counters."""
        duplicate = memo[id(self)] = self.__copy__()
        duplicate.__dict__.update(
            additional_properties=copy.deepcopy(self.additional_properties, memo),
            _ab_counters=copy.copy(self._ab_counters),
        )
        return duplicate

    def to_dict(self, *, exclude: Collection[str] | None = None, exclude_none: bool = True) -> dict[str, Any]:
        """Return the description of the tool without its function."""
        written = super().to_dict(exclude=exclude, exclude_none=exclude_none)
        found = {name: value for name, value in written.items() if value or name not in ("tags", "capabilities")}
        more = {
            "invocation_count": self.invocation_count,
            "invocation_exception_count": self.invocation_exception_count,
            "input_model": self.parameters(),
        }
        return found | {name: value for name, value in more.items() if name not in (exclude or ())}

    @classmethod
    def _ab_inject(cls, arguments: dict[str, Any], dependencies: Mapping[str, Any]) -> None:
        super()._ab_inject(arguments, dependencies)
        func, stored = arguments.get("func"), arguments.get("input_model")
        if func is not None and isinstance(stored, Mapping) and _has_schema(func, arguments["name"], stored):
            arguments["input_model"] = None  # the signature also converts arguments, unlike a plain schema


def _has_schema(func: Callable[..., Any], name: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a function's signature has exactly this schema."""
    try:
        return schema_of(func, name, None).get().json() == schema
    except TypeError:
        return False


def _require(name: str, value: object, kind: type, expected: str) -> None:
    if not isinstance(value, kind | None):
        message = f"{name}={value!r}. Expected {expected} or None."
        raise TypeError(message)


def as_labels(name: str, labels: object) -> tuple[str, ...]:
    """Return the labels of an argument as a tuple; the members of a set are sorted.

    Raises:
        TypeError: They are neither one text nor several.
    """
    if isinstance(labels, str):
        return (labels,)
    found = () if labels is None else tuple(labels) if isinstance(labels, Iterable) else (labels,)
    if isinstance(labels, Mapping) or not all(isinstance(one, str) for one in found):
        message = f"{name}={labels!r}. Expected one text or several, such as {name}=['web', 'search']."
        raise TypeError(message)
    return tuple(sorted(found)) if isinstance(labels, Set) else found


async def _exhausted(result: Any) -> Any:
    """Return the items of a generator as a list, and other results unchanged."""
    if inspect.isgenerator(result):
        return list(result)
    if inspect.isasyncgen(result):
        return [item async for item in result]
    return result


def _is_sync(func: Any) -> bool:
    """Return whether a function is neither a coroutine function nor an async generator function."""
    code = getattr(func, "__code__", None)  # much faster than `inspect`
    if code is not None:
        return not code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    return not any(
        is_async(each)
        for is_async in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        for each in (func, getattr(func, "__call__", None))  # noqa: B004 - an object whose class has an async __call__
    )


def _call_to_end(call: Callable[[], Any]) -> Any:
    result = call()
    return list(result) if inspect.isgenerator(result) else result


def _as_mapping(tool_name: str, arguments: Any) -> Mapping[str, Any]:
    if hasattr(type(arguments), "model_fields") and hasattr(arguments, "model_dump"):
        return dict(arguments)
    message = (
        f"The arguments for tool {tool_name!r} have type {type(arguments).__name__}. "
        "Expected a mapping of names to values, or an instance of a pydantic model."
    )
    raise TypeError(message)
