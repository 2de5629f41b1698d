"""The result of a call of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Generic

from agentbench._display import Displayable, call_view, drawn_by
from agentbench.messages.message import Message
from agentbench.messages.whole_copies import copy_whole
from agentbench.stategraph.interrupts import Interrupt
from agentbench.stategraph.running.plan import CallRecord, GraphPlan
from agentbench.stategraph.state import ExecutionState, ExecutionStatus, StateT
from agentbench.workflows.engine.event_log import EventLog


class ResponseGranularity(StrEnum):
    """The level of detail of results and streams.

    Example:
        from agentbench import ResponseGranularity

        app.invoke({"messages": "Hello"}, thread, response_granularity=ResponseGranularity.FULL)
    """

    FULL = "full"
    PARTIAL = "partial"
    LOW = "low"

    @classmethod
    def _missing_(cls, value: object) -> None:
        message = f"response_granularity is {value!r}; expected 'low', 'partial' or 'full'."
        raise ValueError(message)


@drawn_by("agentbench.notebook.cards.state_graph:graph_result_bundle")
class GraphResult(dict[str, Any], Displayable, Generic[StateT]):
    """The result of a call of a graph: a dictionary, with further facts as attributes.

    With an `AgentState` its keys are `messages` and `token_usage`; with `PARTIAL` also `context` and `summary`; with
    `FULL` also `state`. With any other state class its keys are the fields that have a value, and
    `"__interrupt__"` for the nodes' questions, if there are any.

    Attributes:
        state: The state after the call, or the dictionary of its fields.
        messages: The messages that this call added to the conversation.
        status: The outcome of the call.
        interrupts: The open questions and breakpoints.
        thread_id: The id of the thread.
        run_id: The id of the run.
        checkpoint_id: The id of the thread's newest checkpoint.
        step: The number of supersteps that the run has completed.
        changed: Names of the fields that the call changed, each with the nodes that wrote it.
        warnings: The warnings of the graph.
        events: The events of the run; only a few, unless it was streamed.
        tasks: The finished tasks: (superstep, place in it, node, task id, names of the fields that it wrote).

    Example:
        >>> result = app.invoke({"messages": "Hello"}, {"thread_id": "t1"})
        >>> result["messages"][-1].text, result.status
    """

    messages: list[Message]
    status: ExecutionStatus
    interrupts: list[Any]
    _state: StateT | None
    _make_state: Callable[[], StateT]
    _log: EventLog | None
    _events: list[Any] | None
    thread_id: str | int | None
    run_id: str | None
    checkpoint_id: str | None
    step: int
    changed: dict[str, list[str]]
    warnings: list[str]
    tasks: list[tuple[int, int, str, str, list[str]]]

    @property
    def state(self) -> StateT:
        """The state after the call, or the dictionary of its fields; made when it is first read."""
        if self._state is None:
            self._state = self._make_state()
        return self._state

    @property
    def events(self) -> list[Any]:
        """The events of the run, made from its log when they are first read."""
        if self._events is None:
            self._events = [] if self._log is None else self._log.events()
        return self._events

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the result with its events for `copy` and `pickle`, but without the log of the run."""
        attributes = {**self.__dict__, "_events": self.events, "_log": None, "_state": self.state, "_make_state": None}
        return type(self), (), attributes, None, iter(self.items())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text form for cells, since the printer of dictionaries would take precedence."""
        printer.text(self._repr_mimebundle_()["text/plain"])

    def to_frame(self) -> Any:
        """Return one row per task as a DataFrame; without pandas as a list of dictionaries."""
        return call_view("agentbench.notebook.frames.state_graph:result_frame", self)


def graph_result(
    plan: GraphPlan,
    record: CallRecord,
    granularity: ResponseGranularity | str,
    interrupts: list[Any],
    log: EventLog | None,
    checkpoint_id: str | None,
) -> GraphResult[Any]:
    """Return the result of a call from its record."""
    fields, values, meta = plan.fields, record.values, ExecutionState(**record.meta)
    messages = copy_whole(record.messages)

    def make_state() -> Any:
        return fields.to_display(copy_whole(fields.public(values)), meta)

    level = ResponseGranularity(granularity)
    result: GraphResult[Any]
    state: Any = None
    if fields.is_agent_state:
        result = GraphResult(messages=messages, token_usage=token_usage(messages))
        if level is not ResponseGranularity.LOW:
            state = make_state()
            result |= {"context": state.context, "summary": state.context_summary}
            if level is ResponseGranularity.FULL:
                result["state"] = state
    else:
        state = make_state()
        result = GraphResult(state)
        if asked := [request for request in interrupts if isinstance(request, Interrupt)]:
            result["__interrupt__"] = asked
    result._state, result._make_state = state, make_state  # noqa: SLF001 - its own module
    result.status, result.step, result.messages = meta.status, meta.step, messages
    result.thread_id, result.run_id, result.checkpoint_id = meta.thread_id, meta.run_id, checkpoint_id  # type: ignore[assignment]
    result.interrupts, result.warnings, result.changed = interrupts, record.warnings, record.changed
    result.tasks, result._log, result._events = record.tasks, log, None  # noqa: SLF001 - its own module
    return result


def messages_of(state: Any) -> list[Message]:
    """Return the conversation in a state, or in a dictionary of its fields."""
    if not isinstance(state, Mapping):
        return state.context  # type: ignore[no-any-return]
    lists = (value for value in state.values() if isinstance(value, list) and value)
    return next((items for items in lists if all(isinstance(item, Message) for item in items)), [])


def token_usage(messages: list[Message]) -> dict[str, int]:
    """Return the tokens that messages used, by kind; zero if nothing is recorded."""
    usages = [message.usages or {} for message in messages]
    n_in = sum(int(usage.get("prompt_tokens") or 0) for usage in usages)
    n_out = sum(int(usage.get("completion_tokens") or 0) for usage in usages)
    return {
        "total_input_tokens": n_in,
        "total_output_tokens": n_out,
        "total_reasoning_tokens": sum(int(usage.get("reasoning_tokens") or 0) for usage in usages),
        "total_tokens": n_in + n_out,
    }
