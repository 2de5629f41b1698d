"""Edges and the branches of a switch, which edge groups consist of, and their serialized forms.

Callables are written by name only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, ClassVar, NoReturn, Self

from agentbench.workflows.executors.json_form import JsonForm

EdgeCondition = Callable[[Any], bool | Awaitable[bool]]
"""Decides on the bare message data whether an edge carries it; may be async."""

_CONDITION = "takes the message data and returns a bool"


def callable_name(function: Callable[..., Any]) -> str:
    """Return the `__name__` of a callable, or `"<callable>"` if it has none."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else "<callable>"


def recorded_name(function: object, name: str | None, what: str, expected: str) -> str:
    """Return the name to record for a function; `TypeError` names `what` cannot be called and what is `expected`."""
    if not callable(function):
        msg = f"{what} is {function!r}, which cannot be called. Pass a function that {expected}."
        raise TypeError(msg)
    return callable_name(function) if name is None else name


async def await_if_needed(result: Any) -> Any:
    """Return the result of a sync or async user function: awaited if it is awaitable, otherwise unchanged."""
    return await result if isawaitable(result) else result


class MissingCallable:
    """Replaces a callable whose owner was read from data; `what` names the missing part, to begin a sentence."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Raise `RuntimeError`."""
        msg = (
            f"{self.what} has no callable: a graph that was read from data knows callables by name only. "
            "Build the graph from code, with the callable, before you run it."
        )
        raise RuntimeError(msg)

    def __repr__(self) -> str:
        return f"MissingCallable({self.what!r})"


class _Part(JsonForm):
    """A part of a group. Parts are equal if their dict forms are equal, because callables cannot be compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, self.__class__) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().items()))

    def __repr__(self) -> str:
        fields = self.to_dict()
        ids = [repr(value) for key, value in fields.items() if key.endswith("_id")]
        name = fields.get("condition_name")
        return f"{self.__class__.__name__}({', '.join(ids if name is None else [*ids, f'condition_name={name!r}'])})"


class Edge(_Part):
    """A directed connection between two executors; a condition, if any, decides per message.

    Two edges are equal if their ids and their condition names are. Its attributes are the arguments, and `id`.

    Args:
        source_id: The sending executor.
        target_id: The receiving executor.
        condition: Called with the message data; a falsy result (awaited if necessary) drops the message.
        condition_name: The recorded name of the condition; by default the callable's own.

    Raises:
        ValueError: An id is empty.
        TypeError: The condition is not callable.

    Example:
        >>> edge = Edge("reader", "archive", lambda mail: mail.is_spam, condition_name="is_spam")
        >>> edge.id  # "reader->archive"
    """

    __slots__ = ("condition", "condition_name", "source_id", "target_id")

    ID_SEPARATOR: ClassVar[str] = "->"

    condition: EdgeCondition | None
    condition_name: str | None

    def __init__(
        self,
        source_id: str,
        target_id: str,
        condition: EdgeCondition | None = None,
        *,
        condition_name: str | None = None,
    ) -> None:
        if not source_id or not target_id:
            msg = f"An edge needs two non-empty executor ids; got {source_id!r} and {target_id!r}."
            raise ValueError(msg)
        self.source_id = source_id
        self.target_id = target_id
        if condition is not None:
            expected = f"{_CONDITION}; to connect several nodes one after the other, write add_chain([a, b, c])"
            condition_name = recorded_name(condition, condition_name, f"The condition of edge {self.id}", expected)
        elif condition_name is not None:
            condition = MissingCallable(f"The condition {condition_name!r} of edge {self.id}")
        self.condition = condition
        self.condition_name = condition_name

    @property
    def id(self) -> str:
        """`"<source>-><target>"`."""
        return f"{self.source_id}{self.ID_SEPARATOR}{self.target_id}"

    @property
    def has_condition(self) -> bool:
        """Whether a callable condition is attached."""
        return self.condition is not None and not isinstance(self.condition, MissingCallable)

    async def should_route(self, data: Any) -> bool:
        """Return whether the edge carries this data. RuntimeError: the condition is known by its name only."""
        try:
            return self.condition is None or bool(await await_if_needed(self.condition(data)))
        except Exception as error:
            where = f"the condition {self.condition_name!r} of the edge from {self.source_id!r} to {self.target_id!r}"
            error.add_note(f"Raised by {where}, for data of type {type(data).__name__}.")
            raise

    def to_dict(self) -> dict[str, Any]:
        """Return `source_id`, `target_id` and, if there is a condition, `condition_name`."""
        data = {"source_id": self.source_id, "target_id": self.target_id}
        if self.condition_name is not None:
            data["condition_name"] = self.condition_name
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild an edge; a recorded condition is known by name only and cannot be called."""
        return cls(data.get("source_id", ""), data.get("target_id", ""), condition_name=data.get("condition_name"))


class SwitchCaseEdgeGroupDefault(_Part):
    """The default branch of a switch, used if no condition holds; the form of a `Default` with an id.

    Args:
        target_id: The executor that gets the message.

    Raises:
        ValueError: The target is empty.

    Example:
        >>> SwitchCaseEdgeGroupDefault("inbox")
    """

    __slots__ = ("target_id",)

    def __init__(self, target_id: str) -> None:
        if not target_id:
            msg = f"{self.__class__.__name__} needs the id of its target executor; got {target_id!r}."
            raise ValueError(msg)
        self.target_id = target_id

    def to_dict(self) -> dict[str, Any]:
        """Return `target_id` and `type` (`"Default"`)."""
        return {"target_id": self.target_id, "type": "Default"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a default branch."""
        return cls(data.get("target_id", ""))


class SwitchCaseEdgeGroupCase(_Part):
    """A conditional branch of a switch; the form of a `Case` with ids.

    Args:
        condition: Called with the message data, may be async. `None` installs a placeholder that raises
            `RuntimeError` when it is called.
        target_id: The executor that gets the message.
        condition_name: The recorded name of the condition; by default the callable's own.

    Raises:
        ValueError: The target is empty.
        TypeError: The condition is neither callable nor `None`.

    Example:
        >>> SwitchCaseEdgeGroupCase(lambda mail: mail.is_spam, "archive", condition_name="is_spam")
    """

    __slots__ = ("condition", "condition_name", "target_id")

    condition: EdgeCondition

    def __init__(self, condition: EdgeCondition | None, target_id: str, *, condition_name: str | None = None) -> None:
        if not target_id:
            msg = f"{self.__class__.__name__} needs the id of its target executor; got {target_id!r}."
            raise ValueError(msg)
        self.target_id = target_id
        self.condition_name = condition_name
        if condition is None:
            named = "" if condition_name is None else f" {condition_name!r}"
            self.condition = MissingCallable(f"The condition{named} of the switch case to {target_id!r}")
        else:
            what = f"The condition of the switch case to {target_id!r}"
            self.condition_name = recorded_name(condition, condition_name, what, _CONDITION)
            self.condition = condition

    def to_dict(self) -> dict[str, Any]:
        """Return `target_id`, `type` (`"Case"`) and, if known, `condition_name`."""
        data = {"target_id": self.target_id, "type": "Case"}
        if self.condition_name is not None:
            data["condition_name"] = self.condition_name
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a case; its condition is known by name only and raises `RuntimeError` when it is called."""
        return cls(None, data.get("target_id", ""), condition_name=data.get("condition_name"))


@dataclass(slots=True, eq=False)
class Case:
    """A branch of a switch for `WorkflowBuilder`, used if its condition is the first that holds.

    Args:
        condition: Called with the message data, may be async.
        target: The executor that gets the message, or an object that the builder accepts as one, which stays unchanged.
        condition_name: The recorded name of the condition; by default the callable's own.

    Example:
        >>> builder.switch(classify, [Case(lambda mail: mail.is_spam, archive), Default(inbox)])
    """

    condition: Callable[[Any], Any]
    target: Any
    condition_name: str | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"Case({self.condition_name or callable_name(self.condition)}, {self.target!r})"


@dataclass(slots=True, eq=False)
class Default:
    """The branch of a switch for `WorkflowBuilder` that is used if no `Case` holds.

    Args:
        target: The executor that gets the message, or an object that the builder accepts as one.

    Example:
        >>> builder.switch(classify, [Case(lambda mail: mail.is_spam, archive), Default(inbox)])
    """

    target: Any

    def __repr__(self) -> str:
        return f"Default({self.target!r})"
