"""A function that a model may call."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from agentbench._display import Displayable, drawn_by
from agentbench.agents.arguments import warn_of_near_misses
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.arguments import ValidArguments
from agentbench.agents.tools.calling import call
from agentbench.agents.tools.counters import Counters, checked_limit
from agentbench.agents.tools.input_schema import InputModel, schema_of
from agentbench.agents.tools.owners import BoundTools
from agentbench.agents.tools.results import SKIP_PARSING, SkipParsing, parse_result
from agentbench.agents.tools.signature import ToolSignature, checked_name, description_of, name_of
from agentbench.exceptions import ToolException, UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.serialization.mixin import SerializationMixin

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("agentbench")

ApprovalMode: TypeAlias = Literal["always_require", "never_require"]
ResultParser: TypeAlias = Callable[[Any], str | list[Content]] | SkipParsing


@drawn_by("agentbench.notebook.tool_view:tool")
class FunctionTool(SerializationMixin, Displayable):
    """A function together with what a model has to know to call it.

    Args:
        func: The function, plain or async; a method, partial or callable object. Without one the tool is only declared:
            the model may ask for it, and the application answers.
        name: By default the function's.
        description: By default the function's docstring.
        approval_mode: Whether a person has to agree to each call: `"always_require"` or `"never_require"`, the default.
        kind: A free tag, such as `"shell"`.
        max_invocations: How often it may be called until `reset()`.
        max_invocation_exceptions: How often it may raise until `reset()`.
        max_invocations_per_run: How often it may be called in one run of an agent.
        additional_properties: Whatever else belongs to it.
        input_model: What describes the arguments, if not the signature: a pydantic model class, or a JSON schema.
        result_parser: Turns what the function returned into text or contents; `SKIP_PARSING` hands it on as it is.
        **kwargs: Kept as attributes; of a name that looks like a misspelt argument there is a warning.

    Attributes:
        func: The function, or `None`.
        invocation_count: Calls so far. Methods count for each owner on its own.
        invocation_exception_count: Calls so far that raised.

    Raises:
        TypeError: There is neither function nor name, the function is none, or `input_model` describes no arguments.
        ValueError: A limit is less than 1, the approval mode is unknown, there are two context parameters, or the name
            has characters that no service takes.

    Example:
        ```python
        def get_weather(city: Annotated[str, "where"], days: int = 1) -> str:
            "Tell the weather."
            return f"Fog in {city} for {days} days."


        FunctionTool(get_weather, approval_mode="always_require")
        ```
    """

    type: ClassVar[str] = "function_tool"
    INJECTABLE: ClassVar[Collection[str]] = frozenset({"func"})
    DEFAULT_EXCLUDE: ClassVar[Collection[str]] = frozenset({"result_parser"})

    _declaration_only = False
    _is_plain = False  # made of a function that somebody gave in the place of a tool

    def __init__(  # noqa: PLR0913 - the given signature
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
        **kwargs: Any,
    ) -> None:
        self._of_class = isinstance(func, classmethod)
        if isinstance(func, (staticmethod, classmethod)):
            func = func.__func__
        if func is None and not name:
            message = "A tool needs a function or a name. Expected FunctionTool(func) or FunctionTool(name='...')."
            raise TypeError(message)
        if isinstance(func, FunctionTool):
            message = f"{func!r} is a tool already. Use it as it is, or make another of its function: {func.name}.func."
            raise TypeError(message)
        self.func = func
        self.name: str = checked_name(name) if name else "" if func is None else name_of(func)
        self._schema = schema_of(func, self.name, input_model)
        signature = self._schema.signature
        self.description = description or description_of(func)
        self.approval_mode = _checked_mode(approval_mode)
        self.kind = kind
        self.max_invocations = checked_limit("max_invocations", max_invocations)
        self.max_invocation_exceptions = checked_limit("max_invocation_exceptions", max_invocation_exceptions)
        self.max_invocations_per_run = checked_limit("max_invocations_per_run", max_invocations_per_run)
        self.additional_properties = additional_properties
        self.result_parser = result_parser
        self._signature: ToolSignature | None = signature
        self._owner = None if signature is None else signature.owner
        self._counters = Counters()
        self._bound = BoundTools()
        if kwargs:
            warn_of_near_misses(type(self), kwargs)
        for attribute, value in kwargs.items():
            setattr(self, attribute, value)

    # ------------------------------------------------------------------------------------------------ what it tells

    @property
    def declaration_only(self) -> bool:
        """Whether there is nothing to call here, so that the application answers the model."""
        return self.func is None or self._declaration_only

    @property
    def input_model(self) -> Any:
        """The pydantic model class of the arguments; `None` where a JSON schema describes them."""
        return self._schema.get().model

    @property
    def invocation_count(self) -> int:
        """Calls so far."""
        return self._counters.invocations

    @invocation_count.setter
    def invocation_count(self, count: int) -> None:
        self._counters.invocations = count

    @property
    def invocation_exception_count(self) -> int:
        """Calls so far that raised."""
        return self._counters.exceptions

    @invocation_exception_count.setter
    def invocation_exception_count(self, count: int) -> None:
        self._counters.exceptions = count

    def reset(self) -> None:
        """Set both counters to 0."""
        self._counters.reset()

    def parameters(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, as a copy.

        Raises:
            TypeError: The type of a parameter is not known or has no JSON schema.
        """
        return self._schema.get().json()

    def to_json_schema_spec(self) -> dict[str, Any]:
        """Return name, description and schema in the form that chat services take."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters()}
        return {"type": "function", "function": function}

    def __str__(self) -> str:
        described = f", description={self.description}" if self.description else ""
        return f"FunctionTool(name={self.name}{described})"

    def __repr__(self) -> str:
        facts = [f"{self.name}({', '.join(self._shown_parameters())})"]
        if self.declaration_only:
            facts.append("declaration_only=True")
        if self.approval_mode != "never_require":
            facts.append(f"approval_mode={self.approval_mode!r}")
        if self.invocation_count:
            facts.append(f"invocation_count={self.invocation_count}")
        return f"FunctionTool({', '.join(facts)})"

    def _shown_parameters(self) -> list[str]:
        """Return the names of the parameters, optional ones with `=`; loads nothing."""
        given = self._schema.given
        if isinstance(given, Mapping):
            required = given.get("required") or ()
            return [name if name in required else f"{name}=" for name in given.get("properties") or ()]
        if given is not None:
            return [n if field.is_required() else f"{n}=" for n, field in given.model_fields.items()]
        if self._signature is None:
            return []
        required = self._signature.without_default
        return [p.name if p.name in required else f"{p.name}=" for p in self._signature.parameters]

    # ---------------------------------------------------------------------------------------------------- calling it

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with these arguments, unchecked, and return what it returns.

        Raises:
            ToolException: The tool is only declared, or used up.
        """
        func = self._callable()
        self._counters.begin(self, None)
        try:
            result = func(*args, **kwargs)
        except UserInputRequiredException:
            raise
        except Exception:
            self._counters.count_exception()
            raise
        return self._counted(result) if inspect.iscoroutine(result) else result

    async def _counted(self, pending: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await pending
        except UserInputRequiredException:
            raise
        except Exception:
            self._counters.count_exception()
            raise

    def validate_arguments(self, arguments: Any) -> dict[str, Any]:
        """Check arguments against the schema and return what the function is to be called with.

        What is returned may be given to `invoke()`, which does not check it again unless it was changed meanwhile.

        Args:
            arguments: By name, or an instance of a pydantic model.

        Raises:
            TypeError: They do not fit, or are no mapping; the cause is the validation error, where there is one.
        """
        valid = self._valid(arguments)
        return valid if valid is arguments else ValidArguments.of(self._schema.get(), valid)

    def _valid(self, arguments: Any) -> dict[str, Any]:
        schema = self._schema.get()
        if type(arguments) is ValidArguments and arguments.still_pass(schema):
            return arguments
        if not isinstance(arguments, (dict, Mapping)):  # the first is told much faster
            arguments = _as_mapping(self.name, arguments)
        return schema.validate(self.name, arguments)

    async def invoke(
        self,
        *,
        arguments: Any = None,
        context: FunctionInvocationContext | None = None,
        tool_call_id: str | None = None,
        skip_parsing: bool = False,
        in_thread: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Check the arguments, call the function and turn its result into contents.

        Generators are run to their end and give a list.

        Args:
            arguments: By name, or an instance of a pydantic model. By default `kwargs`, else those of the context.
            context: What the function gets if it has a parameter for it; made here if it is not given.
            tool_call_id: The id of the call, for the metadata of a context that is made here.
            skip_parsing: Return what the function returned, as it is.
            in_thread: Run a plain function in a thread of its own, with a copy of the context variables.
            **kwargs: The arguments by name, where `arguments` is not given.

        Returns:
            A list of `Content`, or what the function returned.

        Raises:
            ToolException: The tool is only declared, or used up.
            TypeError: The arguments do not fit.
            Exception: Whatever the function raises.
        """
        func = self._callable()
        if self._owner is not None:
            message = (
                f"Tool {self.name!r} is a method without its object: its first parameter is {self._owner!r}. "
                "Take it from an instance of the class, not from the class."
            )
            raise TypeError(message)
        if kwargs:
            self._check_names(kwargs)
        if arguments is None:
            arguments = kwargs or (None if context is None else context.arguments) or {}
        valid = self._valid(arguments)
        args, named = self._as_called(valid, context, tool_call_id)
        self._counters.begin(self, None if context is None else context.metadata)
        try:
            result = await call(func, args, named, in_thread=in_thread)
        except UserInputRequiredException:
            raise
        except Exception:
            self._counters.count_exception()
            raise
        if skip_parsing or self.result_parser is SKIP_PARSING:
            return result
        return parse_result(result) if self.result_parser is None else self._parsed(self.result_parser, result)

    def _callable(self) -> Callable[..., Any]:
        if self.func is None or self._declaration_only:
            message = (
                f"Tool {self.name!r} is only declared and cannot be called here. The application answers its calls, "
                "with a message of role 'tool'; or make the tool of a function: FunctionTool(func)."
            )
            raise ToolException(message)
        return self.func

    def _check_names(self, named: Mapping[str, Any]) -> None:
        known = self._schema.get().names
        unknown = [name for name in named if name not in known]
        if unknown:
            message = (
                f"Tool {self.name!r} has no argument {', '.join(map(repr, unknown))}. Expected some of: "
                f"{', '.join(sorted(known)) or 'none'}. "
                "What the model should not see goes into the kwargs of a FunctionInvocationContext."
            )
            raise TypeError(message)

    def _as_called(
        self, valid: dict[str, Any], context: FunctionInvocationContext | None, tool_call_id: str | None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and named arguments, the context among them if the function takes it."""
        signature = self._signature
        if signature is None or (signature.context is None and not signature.positional_only):
            return [], valid
        named = dict(valid)
        if signature.context is not None:
            if context is None:
                metadata = {} if tool_call_id is None else {"call_id": tool_call_id}
                context = FunctionInvocationContext(self, valid, metadata=metadata)
            named[signature.context] = context
        return signature.take_positional(named), named

    @staticmethod
    def parse_result(result: object) -> list[Content]:
        """Turn what a function returned into contents.

        `None` is empty text, text and contents stay what they are, everything else becomes JSON.
        """
        return parse_result(result)

    def _parsed(self, parser: Any, result: Any) -> list[Content]:
        try:
            parsed = parser(result)
        except Exception as error:
            logger.warning("The result parser of tool %r raised %s.", self.name, type(error).__name__)
            logger.debug("The result parser of tool %r failed.", self.name, exc_info=error)  # may tell of the result
            return [Content.from_text(str(result))]
        return parse_result(parsed)

    # ---------------------------------------------------------------------------------------------------- as a method

    def __get__(self, instance: Any, owner: Any = None) -> Self:
        """Bind the tool of a method to the object, or for a class method to the class, that it was taken from."""
        if self._owner is None or (instance is None and not self._of_class):
            return self
        return cast("Self", self._bound.tool_of(owner if self._of_class else instance, self))

    def bound_to(self, method: Callable[..., Any], counters: Counters | None) -> Self:
        """Return this tool with a method in place of the function.

        Args:
            method: The function, bound to its owner.
            counters: Those of the owner; `None` shares those of this tool.
        """
        duplicate = self.__copy__()
        own = {} if counters is None else {"_counters": counters}
        duplicate.__dict__.update(func=method, _owner=None, **own)
        return duplicate

    # -------------------------------------------------------------------------------------------- copies, and as data

    def __copy__(self) -> Self:
        """Return a tool that shares function, schema and counters with this one."""
        duplicate = type(self).__new__(type(self))
        duplicate.__dict__.update(self.__dict__, _bound=BoundTools())
        return duplicate

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a tool of the same function, with properties and counters of its own."""
        duplicate = memo[id(self)] = self.__copy__()
        duplicate.__dict__.update(
            additional_properties=copy.deepcopy(self.additional_properties, memo),
            _counters=copy.copy(self._counters),
        )
        return duplicate

    def to_dict(self, *, exclude: Collection[str] | None = None, exclude_none: bool = True) -> dict[str, Any]:
        """Return what describes the tool, without its function."""
        found = super().to_dict(exclude=exclude, exclude_none=exclude_none)
        more = {
            "invocation_count": self.invocation_count,
            "invocation_exception_count": self.invocation_exception_count,
            "input_model": self.parameters(),
        }
        return found | {name: value for name, value in more.items() if name not in (exclude or ())}

    @classmethod
    def _inject(cls, arguments: dict[str, Any], given: Mapping[str, Any]) -> None:
        super()._inject(arguments, given)
        func, stored = arguments.get("func"), arguments.get("input_model")
        if func is not None and isinstance(stored, Mapping) and _says(func, arguments["name"], stored):
            arguments["input_model"] = None  # the signature also converts, which a plain schema does not


def _says(func: Callable[..., Any], name: str, schema: Mapping[str, Any]) -> bool:
    """Whether the signature of a function gives this very schema."""
    try:
        return schema_of(func, name, None).get().json() == schema
    except TypeError:
        return False


def _checked_mode(mode: str | None) -> Any:
    if mode not in (None, "always_require", "never_require"):
        message = f"approval_mode={mode!r} is unknown. Expected 'always_require', 'never_require' or None."
        raise ValueError(message)
    return mode or "never_require"


def _as_mapping(tool_name: str, arguments: Any) -> Mapping[str, Any]:
    if hasattr(type(arguments), "model_fields") and hasattr(arguments, "model_dump"):
        return dict(arguments)
    message = (
        f"The arguments for tool {tool_name!r} are a {type(arguments).__name__}. "
        "Expected a mapping of names to values, or an instance of a pydantic model."
    )
    raise TypeError(message)
