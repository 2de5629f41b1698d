"""The state of a state graph, which nodes read and update, and the position of its execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from typing_extensions import TypedDict

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import mask_secrets
from agentbench.messages.message import Message
from agentbench.stategraph.reducers import add_messages

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    StateT = TypeVar("StateT", default="AgentState")
else:
    from typing import TypeVar

    StateT = TypeVar("StateT")

START = "__start__"
END = "__end__"


class ExecutionStatus(StrEnum):
    """The status of a thread's execution; `ExecutionState.interrupt_when` gives the position of an interrupt.

    Example:
        if app.get_state(thread).state.execution_meta.status is ExecutionStatus.INTERRUPTED:
            app.invoke({"resume": True}, thread)
    """

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    ERROR = "error"
    # Two more names for members, for compatibility with existing code.
    INTERRUPTED_BEFORE = INTERRUPTED
    INTERRUPTED_AFTER = INTERRUPTED

    @classmethod
    def _missing_(cls, value: object) -> ExecutionStatus | None:
        return cls.INTERRUPTED if value in ("interrupted_before", "interrupted_after") else None


class StopRequestStatus(StrEnum):
    """Whether a stop of the execution was requested.

    Example:
        from agentbench.stategraph import StopRequestStatus

        assert StopRequestStatus.NONE is not StopRequestStatus.STOP_REQUESTED
    """

    NONE = "none"
    STOP_REQUESTED = "stop_requested"

    @classmethod
    def _missing_(cls, value: object) -> StopRequestStatus | None:
        return cls.STOP_REQUESTED if value == "stopped" else None


class ExecutionState(BaseModel):
    """The position of a thread's execution. The graph writes it; a node may read it as `state.execution_meta`.

    Args:
        current_node: The running node, the first one of several; `END` when the execution has completed.
        step: The number of supersteps that the current run has completed.
        status: The status of the execution.
        interrupt_node: The node of the last interrupt.
        interrupt_reason: The reason: `"interrupt_before: <node>"`, `"interrupt_after: <node>"`, `"interrupt"`,
            `"stop_requested"`, or another text.
        stop_current_execution: Whether a stop was requested.
        interrupt_data: The data of the interrupt, as JSON values.
        interrupt_when: Whether it was interrupted before, after or during a node.
        current_nodes: All nodes that are running or run next.
        thread_id: The id of the thread.
        run_id: The id of the run.
        error_message: The last error, until the next run begins.
        internal_data: Internal notes of the graph.

    Example:
        >>> ExecutionState(current_node="review").status
        <ExecutionStatus.RUNNING: 'running'>
    """

    current_node: str
    step: int = 0
    status: ExecutionStatus = ExecutionStatus.RUNNING
    interrupt_node: str | None = None
    interrupt_reason: str | None = None
    stop_current_execution: StopRequestStatus = StopRequestStatus.NONE
    interrupt_data: dict[str, Any] | None = None
    interrupt_when: Literal["before", "after", "during"] | None = None
    current_nodes: tuple[str, ...] = ()
    thread_id: str | int | None = None
    run_id: str | int | None = None
    error_message: str | None = None
    internal_data: dict[str, Any] = Field(default_factory=dict, repr=False)

    @property
    def interrupted_node(self) -> str | None:
        """Another name of `interrupt_node`."""
        return self.interrupt_node


def _no_messages() -> list[Message]:
    """Return an empty conversation. With `list`, pydantic would parse its signature for each state class."""
    return []


@drawn_by("agentbench.notebook.cards.state_graph:state_bundle")
class AgentState(BaseModel, Displayable):
    """The state of a state graph. Inherit from it to add fields; nodes return updates of them.

    A field may have a reducer, which merges an update into its value: `Annotated[list[str], operator.add]`. A field
    without a reducer is replaced.

    Args:
        context: The conversation. `add_messages` appends to it.
        context_summary: A summary of the conversation, if a node writes one.
        execution_meta: The position of the execution; the graph writes it.

    Raises:
        pydantic.ValidationError: A value does not fit its field, or the field does not exist.

    Example:
        >>> class Order(AgentState):
        ...     order_id: str | None = None
        ...     cart: Annotated[list[str], operator.add] = []
        >>> Order(order_id="ORD-001").cart
        []
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    context: Annotated[list[Message], add_messages] = Field(default_factory=_no_messages)
    context_summary: str | None = None
    execution_meta: ExecutionState = Field(default_factory=lambda: ExecutionState(current_node=START))

    # Set by the graph for the copy that a node gets. A plain function, because `copy.deepcopy` does not copy functions.
    _stop_probe: Callable[[], bool] | None = PrivateAttr(default=None)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return ((name, mask_secrets(value, key=name)) for name, value in super().__repr_args__())

    # ---- status ------------------------------------------------------------------------------------------------------

    def is_running(self) -> bool:
        """Whether the status is `RUNNING`."""
        return self.execution_meta.status is ExecutionStatus.RUNNING

    def is_interrupted(self) -> bool:
        """Whether the execution is interrupted."""
        return self.execution_meta.status is ExecutionStatus.INTERRUPTED

    def is_stopped_requested(self) -> bool:
        """Whether a stop of this thread was requested. It may become true while a node runs."""
        if self._stop_probe is not None:
            return self._stop_probe()
        return self.execution_meta.stop_current_execution is StopRequestStatus.STOP_REQUESTED

    # ---- lifecycle: called by the graph; on a node's copy they have no further effect ---------------------

    def set_interrupt(
        self,
        node: str,
        reason: str,
        status: ExecutionStatus | str,
        data: dict[str, Any] | None = None,
        *,
        when: Literal["before", "after", "during"] | None = None,
    ) -> None:
        """Record an interrupt at a node."""
        meta = self.execution_meta
        meta.interrupt_node, meta.interrupt_reason, meta.interrupt_data = node, reason, data
        meta.status, meta.interrupt_when = ExecutionStatus(status), when

    def clear_interrupt(self) -> None:
        """Clear the interrupt, so that the execution can continue."""
        self.set_interrupt("", "", ExecutionStatus.RUNNING)
        self.execution_meta.interrupt_node = self.execution_meta.interrupt_reason = None

    def advance_step(self) -> None:
        """Count one more superstep."""
        self.execution_meta.step += 1

    def set_current_node(self, node: str) -> None:
        """Set the running node."""
        self.execution_meta.current_node = node

    def complete(self) -> None:
        """Record that the execution is completed."""
        self.execution_meta.status, self.execution_meta.current_node = ExecutionStatus.COMPLETED, END

    def error(self, error_msg: str) -> None:
        """Record an error."""
        self.execution_meta.status, self.execution_meta.error_message = ExecutionStatus.ERROR, error_msg


class MessagesState(TypedDict):
    """A state with the messages of a conversation, to which `add_messages` adds those that nodes return.

    Example:
        from agentbench.stategraph import START, MessagesState, StateGraph

        def greet(state: MessagesState) -> dict:
            return {"messages": [("ai", f"You said {state['messages'][-1].text!r}.")]}

        app = StateGraph(MessagesState).add_node(greet).add_edge(START, "greet").compile()
        print(app.invoke({"messages": [("user", "Hello")]})["messages"][-1].text)
    """

    messages: Annotated[list[Message], add_messages]
