"""Pauses of a graph: `interrupt()` inside a node, and breakpoints between supersteps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from agentbench._bridge import call_on
from agentbench._secrets import masked_fields
from agentbench.serialization.plain import to_plain
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import BlockingContext

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from agentbench.stategraph.command import Command
    from agentbench.stategraph.state import AgentState


_FACTS = ("id", "key", "node", "task_id", "value", "message", "reason", "tool_call_id")


@dataclass(frozen=True)
class Interrupt:
    """A question that a node asks by calling `interrupt()`.

    Args:
        id: The id, the same whenever the same place in the same task asks.
        key: The key passed to `interrupt`, or else its number among the questions of the task, from 0.
        node: The name of the node.
        task_id: The activation of the node.
        value: The subject of the question.
        message: The text of the question.
        reason: Why the node waits.
        response_schema: The type or JSON schema of the answer.
        tool_call_id: The id of the tool call that asks.

    Example:
        >>> app.invoke({"resume": {result.interrupts[0].id: "yes"}}, config)
    """

    id: str
    key: str
    node: str
    task_id: str
    value: Any = None
    message: str | None = None
    reason: str = "input_required"
    response_schema: Any = None
    tool_call_id: str | None = None

    can_be_withdrawn: ClassVar = False
    __repr__ = masked_fields

    def _question_(self) -> Any:
        """Return the text for forms and lines: the question and its value, without the facts for the graph."""
        if isinstance(self.value, Mapping):
            return {"question": self.message, **self.value} if self.message else self.value
        if self.message is None:
            return self.value
        return self.message if self.value is None else {"question": self.message, "context": self.value}


class GraphInterrupt(BaseException):
    """Leaves a node whose `interrupt()` has no answer yet. Do not catch it: the node runs again with the answer."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.interrupt = interrupt
        super().__init__(f"Node {interrupt.node!r} waits for an answer.")


class ParentCommand(BaseException):
    """Leaves a node that has called a graph of which a node returned commands with `graph=Command.PARENT`."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = commands
        super().__init__("A graph that the node has called continues in the outer graph.")


@dataclass(frozen=True)
class BreakpointRequest:
    """A pause between two supersteps: the reasons, and the nodes that come next.

    Example:
        >>> result.interrupts[0].next
        ('judge',)
    """

    reasons: tuple[str, ...]
    node: str
    when: Literal["before", "after"]
    next: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    can_be_withdrawn: ClassVar = False
    __repr__ = masked_fields

    def _question_(self) -> Any:
        """Return the text for forms and lines, as for an `Interrupt`."""
        changed = {"changed": ", ".join(self.changed)} if self.changed else {}
        return {"question": f"{'; '.join(self.reasons)}. Go on?", "context": {"next": ", ".join(self.next), **changed}}


@dataclass(frozen=True)
class Continue:
    """The answer to a `BreakpointRequest`: continue, after an update of the state if there is one.

    Example:
        from agentbench.stategraph import Continue

        answer = Continue({"topic": "owls"})
    """

    update: Any = None

    __repr__ = masked_fields


def interrupt_data(question: Interrupt) -> dict[str, Any]:
    """Return a question as JSON values, without the type of its answer."""
    return {name: to_plain(getattr(question, name)) for name in _FACTS}


def pending_interrupt(state: AgentState) -> Interrupt | None:
    """Return the first open question of a state, or None. `result.interrupts` has all questions, with their schemas.

    Example:
        >>> if question := pending_interrupt(result.state):
        ...     print(question.message)
    """
    data = state.execution_meta.interrupt_data
    return Interrupt(**data) if state.is_interrupted() and data else None


@dataclass(slots=True)
class TaskQuestions:
    """What code inside a task reaches while it runs: its answers, its questions without one, observers of the run.

    `done` holds the results of an earlier attempt at the task, so that they are not computed again; `ctx` is the
    engine's context of the task.
    """

    node: str
    task_id: str
    answers: Mapping[str, Any]
    done: dict[str, Any]
    ctx: Any
    asked: int = 0
    open: list[Interrupt] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tool_call_id: str | None = None
    scope: str | None = None
    """The part of the task that asks, if it is a function that the node has started."""
    calls: Any = None
    """The functions that the node has started, if there are any."""
    loop: AbstractEventLoop | None = None
    """The event loop of the run, for code that may be running on another thread."""
    owns_called_graphs: bool = False
    """Whether runs of graphs that the node calls belong to the task, which then asks their questions."""
    called_graphs: dict[str, int] = field(default_factory=dict)
    """The number of such calls up to now, by the part of the task."""
    nodes: Collection[str] = ()
    """The names of the graph's nodes."""

    def emit(self, data: Any) -> None:
        """Send data to the observers of the run."""
        event = WorkflowEvent("custom", data, executor_id=self.node)
        if isinstance(self.ctx, BlockingContext):
            call_on(self.loop, partial(self.ctx.add_event, event))
        else:
            call_on(self.loop, partial(self.ctx._add_event, event))  # noqa: SLF001 - where nothing can be awaited


QUESTIONS: ContextVar[TaskQuestions | None] = ContextVar("agentbench_task_questions", default=None)


def current_questions(caller: str = "interrupt()") -> TaskQuestions:
    """Return the questions of the current task; `RuntimeError`, which names the caller, outside a task."""
    questions = QUESTIONS.get()
    if questions is None:
        text = f"{caller} was called outside a node. Call it in a node, or in a tool, while a graph runs."
        raise RuntimeError(text)
    return questions


def ask_all(questions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Ask several questions together and return their answers by key; each has the arguments of `interrupt`."""
    answers: dict[str, Any] = {}
    unanswered: GraphInterrupt | None = None
    for key, question in questions.items():
        try:
            answers[key] = interrupt(**question, key=key)
        except GraphInterrupt as asked:
            unanswered = asked
    if unanswered is not None:
        raise unanswered
    return answers


def interrupt(
    value: Any = None,
    *,
    message: str | None = None,
    reason: str = "input_required",
    response_schema: Any = None,
    key: str | None = None,
) -> Any:
    """Ask a question inside a node or a tool, and return the answer.

    The run first pauses here. When the answer arrives, the node runs again from its start, and this call returns the
    answer. Code before the call therefore runs twice. Several calls in one node are distinguished by order, or by
    `key`.

    Args:
        value: The subject of the question, displayed to the person who answers.
        message: The text of the question.
        reason: Why the node waits.
        response_schema: The type of the answer, or its JSON schema; by default any value.
        key: Distinguishes this call from others in the node if their order may change.

    Raises:
        RuntimeError: The call is outside a run of a graph.

    Example:
        >>> def approve(state: Order) -> dict:
        ...     return {"confirmed": interrupt(state.cart, message="Place this order?", response_schema=bool)}
    """
    questions = current_questions()
    if key is None:
        key = str(questions.asked)
        questions.asked += 1
    for part in (questions.tool_call_id, questions.scope):
        if part is not None:
            key = f"{part}:{key}"
    if key in questions.answers:
        return questions.answers[key]
    asked = Interrupt(
        f"{questions.task_id}:{key}", key, questions.node, questions.task_id, value, message, reason, response_schema,
        questions.tool_call_id,
    )  # fmt: skip
    questions.open.append(asked)
    raise GraphInterrupt(asked)
