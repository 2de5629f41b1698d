"""One connection between two executors, and what every part of a graph can be written to and read from."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Edge", "EdgeCondition", "JsonForm", "MissingCallable", "callable_name", "require_callable", "settle"]

EdgeCondition = Callable[[Any], bool | Awaitable[bool]]
"""Decides on the bare message data whether an edge carries it; may be async."""


def callable_name(function: Callable[..., Any]) -> str:
    """Return the name under which a callable is recorded: its `__name__`, or `"<callable>"` if it has none."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else "<callable>"


def require_callable(function: object, what: str, expected: str) -> None:
    """Refuse something that cannot be called.

    Args:
        function: What was given.
        what: Its role, as the start of a sentence.
        expected: What the function takes and returns.

    Raises:
        TypeError: It is not callable.
    """
    if not callable(function):
        msg = f"{what} is {function!r}, which cannot be called. Pass a function that {expected}."
        raise TypeError(msg)


async def settle(result: Any) -> Any:
    """Return the result of a sync or async user function: awaited if it is awaitable, else as it is."""
    return await result if isawaitable(result) else result


class MissingCallable:
    """Stands where a callable was before its owner went through JSON; calling it raises `RuntimeError`.

    Args:
        what: The missing part as the start of a sentence, such as `"The condition 'is_spam' of edge a->b"`.
    """

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what

    def __call__(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Refuse to stand in for the real callable."""
        msg = (
            f"{self.what} has no callable. A graph that was read back from data knows callables by name only, and "
            "None is no condition. Build the graph from code, with the callable, before you run it."
        )
        raise RuntimeError(msg)

    def __repr__(self) -> str:
        return f"MissingCallable({self.what!r})"


class JsonForm:
    """What edges, cases and groups share: a dict form, a JSON form and copies. Callables are kept by name only."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild an object from what `to_dict` returned."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        import json  # noqa: PLC0415 - a run needs no JSON

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Rebuild an object from what `to_json` returned.

        Raises:
            ValueError: The text is not JSON, or not a JSON object.
        """
        import json  # noqa: PLC0415 - as above

        data = json.loads(text)
        if not isinstance(data, dict):
            msg = (
                f"{cls.__name__}.from_json() got JSON of a {type(data).__name__}; "
                "it expects an object, as to_json() writes it."
            )
            raise ValueError(msg)
        return cls.from_dict(data)

    def clone(self, deep: bool = True) -> Self:
        """Return a copy with the same callables.

        Args:
            deep: Copy the contained edges and cases too, instead of sharing them. Callables are shared either way.
        """
        del deep  # flat parts have nothing inside; groups override this
        return copy.copy(self)


class Edge(JsonForm):
    """A directed connection; a condition, if any, decides per message.

    Two edges are equal if their ids and the name of their condition are: callables cannot be compared.

    Args:
        source_id: Executor that sends.
        target_id: Executor that receives.
        condition: Called with the message data; a falsy result (awaited if need be) drops the message.
        condition_name: Recorded name of the condition; by default the callable's own.

    Raises:
        ValueError: An id is empty.
        TypeError: The condition is not callable.
    """

    __slots__ = ("_condition", "condition_name", "source_id", "target_id")

    ID_SEPARATOR: ClassVar[str] = "->"

    source_id: str
    target_id: str
    condition_name: str | None
    _condition: EdgeCondition | None

    def __init__(
        self,
        source_id: str,
        target_id: str,
        condition: EdgeCondition | None = None,
        *,
        condition_name: str | None = None,
    ) -> None:
        if not source_id or not target_id:
            msg = (
                f"An edge needs two executor ids that are not empty; got source {source_id!r} and target {target_id!r}."
            )
            raise ValueError(msg)
        self.source_id = source_id
        self.target_id = target_id
        if condition is not None:
            require_callable(condition, f"The condition of edge {self.id}", "takes the message data and returns a bool")
            if condition_name is None:
                condition_name = callable_name(condition)
        elif condition_name is not None:
            condition = MissingCallable(f"The condition {condition_name!r} of edge {self.id}")
        self._condition = condition
        self.condition_name = condition_name

    @property
    def id(self) -> str:
        """`"<source>-><target>"`."""
        return f"{self.source_id}{self.ID_SEPARATOR}{self.target_id}"

    @property
    def condition(self) -> EdgeCondition | None:
        """The callable to ask; a placeholder that raises `RuntimeError` if only its name is known; else `None`."""
        return self._condition

    @property
    def has_condition(self) -> bool:
        """Whether a live callable is attached."""
        return self._condition is not None and type(self._condition) is not MissingCallable

    async def should_route(self, data: Any) -> bool:
        """Tell whether the edge carries this message data.

        Raises:
            RuntimeError: A condition is recorded by name, but no callable is attached.
            Exception: Whatever the condition raised.
        """
        if self._condition is None:
            return True
        return bool(await settle(self._condition(data)))

    def to_dict(self) -> dict[str, Any]:
        """Return `source_id`, `target_id` and, if there is a condition, `condition_name`."""
        data = {"source_id": self.source_id, "target_id": self.target_id}
        if self.condition_name is not None:
            data["condition_name"] = self.condition_name
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild an edge; a recorded condition is known by name only and cannot be asked."""
        return cls(data.get("source_id", ""), data.get("target_id", ""), condition_name=data.get("condition_name"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Edge):
            return NotImplemented
        return (self.source_id, self.target_id, self.condition_name) == (
            other.source_id,
            other.target_id,
            other.condition_name,
        )

    def __hash__(self) -> int:
        return hash((self.source_id, self.target_id, self.condition_name))

    def __repr__(self) -> str:
        condition = "" if self.condition_name is None else f", condition_name={self.condition_name!r}"
        return f"Edge({self.source_id!r}, {self.target_id!r}{condition})"
