"""The branches of a switch: with live targets for the builder, with ids inside the edge group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentbench.workflows.graph.edge import EdgeCondition, JsonForm, MissingCallable, callable_name, require_callable

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentbench.workflows.executors.executor import Executor

__all__ = ["Case", "Default", "SwitchCaseEdgeGroupCase", "SwitchCaseEdgeGroupDefault", "branch_with_id"]


def _require_target(kind: str, target_id: str) -> str:
    if not target_id:
        msg = f"{kind} needs the id of its target executor; got {target_id!r}."
        raise ValueError(msg)
    return target_id


class SwitchCaseEdgeGroupCase(JsonForm):
    """A branch that is taken when its condition holds.

    Args:
        condition: Called with the message data, may be async. `None` installs a placeholder that raises
            `RuntimeError` when it is asked.
        target_id: Executor that gets the message.
        condition_name: Recorded name of the condition; by default the callable's own.

    Raises:
        ValueError: The target is empty.
        TypeError: The condition is neither callable nor `None`.
    """

    __slots__ = ("condition", "condition_name", "target_id")

    condition: EdgeCondition
    condition_name: str | None
    target_id: str

    def __init__(self, condition: EdgeCondition | None, target_id: str, *, condition_name: str | None = None) -> None:
        self.target_id = _require_target("SwitchCaseEdgeGroupCase", target_id)
        if condition is None:
            named = "" if condition_name is None else f" {condition_name!r}"
            condition = MissingCallable(f"The condition{named} of the switch case to {target_id!r}")
        else:
            what = f"The condition of the switch case to {target_id!r}"
            require_callable(condition, what, "takes the message data and returns a bool")
            if condition_name is None:
                condition_name = callable_name(condition)
        self.condition = condition
        self.condition_name = condition_name

    def to_dict(self) -> dict[str, Any]:
        """Return `target_id`, `type` (`"Case"`) and, if known, `condition_name`."""
        data = {"target_id": self.target_id, "type": "Case"}
        if self.condition_name is not None:
            data["condition_name"] = self.condition_name
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a case; its condition is known by name only and raises `RuntimeError` when asked."""
        return cls(None, data.get("target_id", ""), condition_name=data.get("condition_name"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SwitchCaseEdgeGroupCase):
            return NotImplemented
        return (self.target_id, self.condition_name) == (other.target_id, other.condition_name)

    def __hash__(self) -> int:
        return hash((self.target_id, self.condition_name))

    def __repr__(self) -> str:
        return f"SwitchCaseEdgeGroupCase({self.condition_name or '<missing>'} -> {self.target_id!r})"


class SwitchCaseEdgeGroupDefault(JsonForm):
    """The branch that is taken when no condition holds.

    Raises:
        ValueError: The target is empty.
    """

    __slots__ = ("target_id",)

    target_id: str

    def __init__(self, target_id: str) -> None:
        self.target_id = _require_target("SwitchCaseEdgeGroupDefault", target_id)

    def to_dict(self) -> dict[str, Any]:
        """Return `target_id` and `type` (`"Default"`)."""
        return {"target_id": self.target_id, "type": "Default"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a default branch."""
        return cls(data.get("target_id", ""))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SwitchCaseEdgeGroupDefault):
            return NotImplemented
        return self.target_id == other.target_id

    def __hash__(self) -> int:
        return hash(("default", self.target_id))

    def __repr__(self) -> str:
        return f"SwitchCaseEdgeGroupDefault({self.target_id!r})"


class Case:
    """A branch for `WorkflowBuilder`: its target is an executor, or whatever the builder accepts as one.

    Args:
        condition: Called with the message data, may be async.
        target: Executor (or agent) that gets the message. The builder reads it and leaves it as it is.
        condition_name: Recorded name of the condition; by default the callable's own.
    """

    __slots__ = ("condition", "condition_name", "target")

    def __init__(
        self,
        condition: Callable[[Any], Any],
        target: Any,
        *,
        condition_name: str | None = None,
    ) -> None:
        self.condition = condition
        self.target = target
        self.condition_name = condition_name

    def __repr__(self) -> str:
        return f"Case({self.condition_name or callable_name(self.condition)}, {self.target!r})"


class Default:
    """The branch for `WorkflowBuilder` that is taken when no `Case` holds."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target

    def __repr__(self) -> str:
        return f"Default({self.target!r})"


def branch_with_id(
    branch: Any, node: Callable[[Any], Executor]
) -> SwitchCaseEdgeGroupCase | SwitchCaseEdgeGroupDefault:
    """Return the descriptor of a branch: of a `Case`, a `Default`, a `(condition, target)` pair or a descriptor.

    Args:
        branch: Is left as it is.
        node: Returns the executor for a target.

    Raises:
        TypeError: It is none of these.
    """
    if isinstance(branch, (SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault)):
        return branch
    if isinstance(branch, Default):
        return SwitchCaseEdgeGroupDefault(node(branch.target).id)
    if isinstance(branch, Case):
        return SwitchCaseEdgeGroupCase(branch.condition, node(branch.target).id, condition_name=branch.condition_name)
    if isinstance(branch, tuple) and len(branch) == 2:
        condition, target = branch
        return SwitchCaseEdgeGroupCase(condition, node(target).id)
    msg = (
        f"{branch!r} is no case of a switch. Expected Case(condition, target), Default(target) or (condition, target)."
    )
    raise TypeError(msg)
