"""Edge groups that choose targets per message: fan-out, and its special case, the switch."""

from __future__ import annotations

import copy
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, Self

from agentbench.workflows.graph.edge_groups import EdgeGroup, require_several
from agentbench.workflows.graph.edges import (
    Edge,
    MissingCallable,
    SwitchCaseEdgeGroupCase,
    SwitchCaseEdgeGroupDefault,
    await_if_needed,
    callable_name,
    recorded_name,
)

logger = logging.getLogger(__name__)

SelectionFunction = Callable[[Any, list[str]], Iterable[str] | Awaitable[Iterable[str]]]
"""Takes the message data and all target ids, returns the ids to deliver to; may be async."""


@EdgeGroup.register
class FanOutEdgeGroup(EdgeGroup):
    """One source, several targets: all of them, or those that a selection function picks per message.

    Args:
        source_id: The sending executor.
        target_ids: Two or more executors, each named once.
        selection_func: Called with the message data and the list of target ids; returns the ids to deliver to. May be
            async. An empty result drops the message.
        selection_func_name: The recorded name of the function; by default its own name.
        copy: Each target gets its own deep copy of the data. By default, all targets get the same object, so each sees
            the changes that others make to it.
        id: The name of the group.

    Raises:
        ValueError: There are fewer than two targets, or one of them appears twice.
        TypeError: The selection function is not callable.

    Example:
        >>> def by_length(text: str, ids: list[str]) -> list[str]:
        ...     return ids if len(text) > 100 else ids[:1]
        >>> builder.add_edge_group(FanOutEdgeGroup("intake", ["summary", "full_text"], by_length))
    """

    __slots__ = ("_selection_func", "_target_ids", "copies", "selection_func_name")

    def __init__(
        self,
        source_id: str,
        target_ids: Sequence[str],
        selection_func: SelectionFunction | None = None,
        *,
        selection_func_name: str | None = None,
        copy: bool = False,
        id: str | None = None,  # noqa: A002 - published name
    ) -> None:
        require_several("FanOutEdgeGroup", "target", target_ids)
        if selection_func is not None:
            what = f"The selection function of the fan-out from {source_id!r}"
            expected = "takes the message data and the target ids and returns some of the ids"
            selection_func_name = recorded_name(selection_func, selection_func_name, what, expected)
        super().__init__([Edge(source_id, target_id) for target_id in target_ids], id=id)
        self._target_ids = tuple(target_ids)
        self._selection_func = selection_func
        self.selection_func_name = selection_func_name
        self.copies = copy

    @property
    def target_ids(self) -> list[str]:
        """The targets in the order of the argument, as a new list."""
        return list(self._target_ids)

    @property
    def selection_func(self) -> SelectionFunction | None:
        """The function that selects targets, or a raising placeholder if only its name is known; `None` broadcasts."""
        return self._selection_func

    async def select(self, data: Any) -> list[str]:
        """Return the ids that get this data, each once. RuntimeError: the function returned no list, or unknown ids."""
        if self._selection_func is None:
            return list(self._target_ids)
        name = self.selection_func_name or callable_name(self._selection_func)
        try:
            chosen = await await_if_needed(self._selection_func(data, list(self._target_ids)))
        except Exception as error:
            where = f"the fan-out from {self._edges[0].source_id!r} to {', '.join(map(repr, self._target_ids))}"
            where = f"the selection function {name!r} of {where}"
            error.add_note(f"Raised by {where}, for data of type {type(data).__name__}.")
            raise
        if isinstance(chosen, (str, bytes)) or not isinstance(chosen, Iterable):
            msg = (
                f"The selection function {name!r} of group {self.id} returned {chosen!r}. "
                f"It must return a list with some of {list(self._target_ids)}; [] drops the message."
            )
            raise RuntimeError(msg)
        selected = list(dict.fromkeys(chosen))
        unknown = [target_id for target_id in selected if target_id not in self._target_ids]
        if unknown:
            msg = (
                f"The selection function {name!r} of group {self.id} chose {unknown}, which the group does not reach. "
                f"Its targets are {list(self._target_ids)}: return some of these, or add the missing target."
            )
            raise RuntimeError(msg)
        return selected

    def to_dict(self) -> dict[str, Any]:
        """Return the common keys and `selection_func_name` (or `None`), and `copy` if it is on."""
        data = {**EdgeGroup.to_dict(self), "selection_func_name": self.selection_func_name}
        return {**data, "copy": True} if self.copies else data

    def restore_fields(self, data: Mapping[str, Any]) -> None:
        """Fill the fields; a recorded function becomes a placeholder that raises `RuntimeError`."""
        EdgeGroup.restore_fields(self, data)
        self._target_ids = tuple(self.target_executor_ids)
        self.copies = data.get("copy", False)
        name = data.get("selection_func_name")
        self.selection_func_name = name
        self._selection_func = None
        if name is not None:
            self._selection_func = MissingCallable(f"The selection function {name!r} of fan-out group {self.id}")


class SwitchSelection(NamedTuple):
    """The target that a switch chose, the condition that held, and a text for each condition that raised."""

    target_id: str
    case_name: str
    warnings: tuple[str, ...]


@EdgeGroup.register
class SwitchCaseEdgeGroup(FanOutEdgeGroup):
    """One source; the first case whose condition holds gets the message, or the default if none does.

    Args:
        source_id: The sending executor.
        cases: Two or more branches, exactly one of them the default, which is tried last wherever it is.
        id: The name of the group.

    Raises:
        ValueError: There are fewer than two cases, no default, or several defaults.
        TypeError: An entry of `cases` is neither a case nor a default.

    Example:
        >>> cases = [
        ...     SwitchCaseEdgeGroupCase(lambda mail: mail.is_spam, "archive"),
        ...     SwitchCaseEdgeGroupDefault("inbox"),
        ... ]
        >>> builder.add_edge_group(SwitchCaseEdgeGroup("reader", cases))
    """

    __slots__ = ("_cases", "_default")

    def __init__(
        self,
        source_id: str,
        cases: Sequence[SwitchCaseEdgeGroupCase | SwitchCaseEdgeGroupDefault],
        *,
        id: str | None = None,  # noqa: A002 - published name
    ) -> None:
        self._set_cases(source_id, cases)
        if cases[-1] is not self._default:
            logger.warning(
                "The default of the switch after %r, to %r, is not the last case. It is tried last anyway; move it to "
                "the end of the list.",
                source_id,
                self._default.target_id,
            )
        super(FanOutEdgeGroup, self).__init__([Edge(source_id, t) for t in self._target_ids], id=id)
        self._selection_func = self.selection_func_name = None
        self.copies = False

    def _set_cases(self, source_id: str, cases: Sequence[Any]) -> None:
        for case in cases:
            if not isinstance(case, (SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault)):
                msg = (
                    f"The switch after {source_id!r} got {case!r} as a case. Pass SwitchCaseEdgeGroupCase and "
                    "SwitchCaseEdgeGroupDefault objects; Case and Default are for WorkflowBuilder."
                )
                raise TypeError(msg)
        defaults = [case for case in cases if isinstance(case, SwitchCaseEdgeGroupDefault)]
        if len(cases) < 2 or len(defaults) != 1:
            msg = (
                f"The switch after {source_id!r} has {len(cases)} case(s), {len(defaults)} of them defaults. It needs "
                "at least one case and exactly one default, which gets the messages that no case accepts."
            )
            raise ValueError(msg)
        self._cases: tuple[SwitchCaseEdgeGroupCase | SwitchCaseEdgeGroupDefault, ...] = tuple(cases)
        self._default = defaults[0]
        self._target_ids = tuple(dict.fromkeys([case.target_id for case in cases]))

    @property
    def cases(self) -> list[SwitchCaseEdgeGroupCase | SwitchCaseEdgeGroupDefault]:
        """All branches in the order of the argument, including the default."""
        return list(self._cases)

    @property
    def default(self) -> SwitchCaseEdgeGroupDefault:
        """The branch that is used if no condition holds."""
        return self._default

    @property
    def selection_func(self) -> SelectionFunction:
        """The switch as a selection function that returns the chosen id; async if one of its conditions is."""

        async def select_one(data: Any, _target_ids: list[str]) -> list[str]:
            return [(await self.select(data)).target_id]

        def select_one_at_once(data: Any, target_ids: list[str]) -> list[str]:
            selection = select_one(data, target_ids)
            try:
                selection.send(None)
            except StopIteration as end:
                chosen: list[str] = end.value
                return chosen
            selection.close()
            msg = f"A condition of the switch after {self._edges[0].source_id!r} is async; define it with async def."
            raise RuntimeError(msg)

        conditions = [case.condition for case in self._cases if isinstance(case, SwitchCaseEdgeGroupCase)]
        return select_one if any(map(iscoroutinefunction, conditions)) else select_one_at_once

    async def select(self, data: Any) -> SwitchSelection:  # type: ignore[override]
        """Call the conditions in order and return the branch of the first that holds, or the default.

        A condition that raises counts as false and leaves a warning. A condition that is known by its name only raises
        `RuntimeError`.
        """
        warnings: list[str] = []
        for case in self._cases:
            if isinstance(case, SwitchCaseEdgeGroupDefault):
                continue
            if isinstance(case.condition, MissingCallable):
                case.condition(data)
            try:
                holds = bool(await await_if_needed(case.condition(data)))
            except Exception as error:  # noqa: BLE001 - a failing condition is a false one, and is reported
                text = (
                    f"The condition {case.condition_name!r} of the switch after {self._edges[0].source_id!r}, to "
                    f"{case.target_id!r}, raised {type(error).__name__}: {error}. It counts as false."
                )
                logger.warning(text)
                warnings.append(text)
                continue
            if holds:
                return SwitchSelection(case.target_id, case.condition_name or "<callable>", tuple(warnings))
        return SwitchSelection(self._default.target_id, "default", tuple(warnings))

    def to_dict(self) -> dict[str, Any]:
        """Return the common keys, `selection_func_name` (`None`) and `cases`."""
        return {**FanOutEdgeGroup.to_dict(self), "cases": [case.to_dict() for case in self._cases]}

    def restore_fields(self, data: Mapping[str, Any]) -> None:
        """Fill the fields; conditions are known by name only and raise `RuntimeError` when called."""
        FanOutEdgeGroup.restore_fields(self, data)
        kinds = {"Default": SwitchCaseEdgeGroupDefault}
        cases = [kinds.get(case.get("type"), SwitchCaseEdgeGroupCase).from_dict(case) for case in data.get("cases", ())]
        self._set_cases(self._edges[0].source_id if self._edges else "?", cases)

    def clone(self, deep: bool = True) -> Self:
        """Return a copy with the same id and the same callables; `deep` also copies edges and cases."""
        fresh = EdgeGroup.clone(self, deep)
        if deep:
            fresh._set_cases(self._edges[0].source_id, [copy.copy(case) for case in self._cases])  # noqa: SLF001 - its own class
        return fresh
