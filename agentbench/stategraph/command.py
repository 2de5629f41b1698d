"""`Command` and `Send`: a node returns them to choose the next nodes; `invoke` takes them to answer an interrupt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from agentbench._secrets import masked_fields, masked_repr

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    TargetT = TypeVar("TargetT", default=str)
else:
    from typing import TypeVar

    TargetT = TypeVar("TargetT")


@dataclass(frozen=True)
class Send:
    """One activation of a node with its own input.

    Args:
        node: The name of the node.
        arg: The input. With an `AgentState`: values of fields, as a dictionary or a state; the node gets a copy of the
            state with these values, which are not written. With any other state class: any value, which is all that
            the node gets.

    Raises:
        TypeError: `node` is not text.

    Example:
        >>> def each_city(state: Trip) -> list[Send]:
        ...     return [Send("forecast", {"city": city}) for city in state.cities]
    """

    node: str
    arg: Any = None

    __repr__ = masked_fields

    def __post_init__(self) -> None:
        node: object = self.node
        if not isinstance(node, str):
            message = f"node is {masked_repr(node)}; expected the name of a node: Send('forecast', ...)."
            raise TypeError(message)


@dataclass(frozen=True)
class Command(Generic[TargetT]):
    """An update of the state together with the nodes that come next, or the answer to an interrupt.

    For drawings and checks, a node declares its possible targets in its annotation: `-> Command[Literal["on_call"]]`.

    Args:
        update: The update, in any form that a node may return.
        goto: The next nodes: a name, `END`, a `Send`, or a list of them. The edges of the node are followed too, except
            with an `AgentState`.
        graph: `Command.PARENT` if `goto` names nodes of the outer graph. Without an `AgentState`, the graph of the node
            ends then, as does the function of the outer graph that has called it.
        state: Values of the whole state, applied before `update`.
        resume: The answer to an interrupt, for `invoke` and the like.

    Raises:
        TypeError: `goto` is something else.

    Example:
        >>> def triage(state: Ticket) -> Command:
        ...     return Command(update={"urgent": True}, goto="on_call")
    """

    PARENT: ClassVar[str] = "PARENT"

    update: Any = None
    goto: str | Send | Sequence[str | Send] | None = None
    graph: str | None = None
    state: Any = None
    resume: Any = None

    __repr__ = masked_fields

    def __post_init__(self) -> None:
        goto: Any = self.goto
        if goto is None or isinstance(goto, (str, Send)):
            return
        is_several = isinstance(goto, Iterable) and not isinstance(goto, (Mapping, bytes))
        if not is_several or (isinstance(goto, Collection) and not all(isinstance(one, (str, Send)) for one in goto)):
            message = f"goto is {masked_repr(goto)}; expected the name of a node, END, a Send, or a list of these."
            raise TypeError(message)
