"""The data of a Magentic team: its task, the ledgers of its manager, its events and requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Final

from agentbench._secrets import masked_repr
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.workflows.executors.approval import TextAnswer

MAGENTIC_MANAGER_NAME: Final = "magentic_manager"

ORCH_MSG_KIND_USER_TASK: Final = "user_task"
ORCH_MSG_KIND_TASK_LEDGER: Final = "task_ledger"
ORCH_MSG_KIND_INSTRUCTION: Final = "instruction"
ORCH_MSG_KIND_NOTICE: Final = "notice"


@dataclass
class MagenticProgressLedgerItem:
    """The answer to one question about the progress.

    Args:
        reason: The reason for the answer.
        answer: The answer: true or false, a name, or an instruction.

    Example:
        from agentbench.orchestrations import MagenticProgressLedgerItem

        item = MagenticProgressLedgerItem(reason="The report lacks sources.", answer=False)
    """

    reason: str
    answer: str | bool


@dataclass
class MagenticProgressLedger:
    """The manager's judgement of the progress.

    Args:
        is_request_satisfied: Whether the task is done.
        is_in_loop: Whether the team repeats itself.
        is_progress_being_made: Whether there is progress.
        next_speaker: The participant that works next.
        instruction_or_question: The instruction for that participant.

    Example:
        from agentbench.orchestrations import MagenticProgressLedger, MagenticProgressLedgerItem

        done = MagenticProgressLedgerItem("The report is complete.", True)
        no = MagenticProgressLedgerItem("All went well.", False)
        writer = MagenticProgressLedgerItem("It wrote the report.", "writer")
        ledger = MagenticProgressLedger(done, no, done, writer, MagenticProgressLedgerItem("Nothing is left.", "Stop."))
        assert ledger.next_speaker.answer == "writer"
    """

    is_request_satisfied: MagenticProgressLedgerItem
    is_in_loop: MagenticProgressLedgerItem
    is_progress_being_made: MagenticProgressLedgerItem
    next_speaker: MagenticProgressLedgerItem
    instruction_or_question: MagenticProgressLedgerItem

    def __str__(self) -> str:
        if self.is_request_satisfied.answer:
            return "done"
        facts = [
            "not done",
            "progress" if self.is_progress_being_made.answer else "no progress",
            *(["in a loop"] if self.is_in_loop.answer else []),
            f"next {self.next_speaker.answer}: {self.instruction_or_question.answer}",
        ]
        return ", ".join(facts)

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MagenticProgressLedger:
        """Read the ledger in a model's answer, or the output of `to_dict`; yes and no may be written as texts.

        Raises:
            ValueError: A question has no answer of the requested form.
        """
        return cls(**{field.name: _item(field.name, data.get(field.name)) for field in fields(cls)})


_BOOLS = frozenset({"is_request_satisfied", "is_in_loop", "is_progress_being_made"})
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def _item(name: str, data: Any) -> MagenticProgressLedgerItem:
    answer = data.get("answer") if isinstance(data, Mapping) else None
    if name in _BOOLS and isinstance(answer, str):
        answer = _WORDS.get(answer.strip().lower())
    if not isinstance(answer, bool if name in _BOOLS else (str, bool, type(None))) or not isinstance(data, Mapping):
        expected = "true or false" if name in _BOOLS else "a text"
        msg = f"The progress ledger has {masked_repr(data)} as {name}. Expected a reason and {expected} as answer."
        raise ValueError(msg)
    return MagenticProgressLedgerItem(str(data.get("reason", "")), "" if answer is None else answer)


@dataclass
class MagenticContext:
    """The data that the manager of a team works with.

    Args:
        task: The task.
        chat_history: The messages since the last plan.
        participant_descriptions: The abilities of the participants, by name.
        round_count: The number of turns up to now.
        stall_count: The number of turns without progress, minus those with progress.
        reset_count: The number of new plans.

    Example:
        from agentbench.orchestrations import MagenticContext

        context = MagenticContext("Write a report about owls.", participant_descriptions={"writer": "Writes texts."})
        assert context.round_count == 0
    """

    task: str
    chat_history: list[Message] = field(default_factory=list)
    participant_descriptions: dict[str, str] = field(default_factory=dict)
    round_count: int = 0
    stall_count: int = 0
    reset_count: int = 0

    def reset(self) -> None:
        """Clear the messages, for a new plan."""
        self.chat_history = []
        self.stall_count = 0
        self.reset_count += 1

    def clone(self) -> MagenticContext:
        """Return a copy with its own lists; the messages are shared."""
        return replace(
            self,
            chat_history=[*self.chat_history],
            participant_descriptions={**self.participant_descriptions},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the context as plain JSON values."""
        return {**vars(self), "chat_history": [message.to_dict() for message in self.chat_history]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MagenticContext:
        """Read the output of `to_dict`.

        Raises:
            ValueError: The task or the participants are missing.
        """
        if missing := [name for name in ("task", "participant_descriptions") if name not in data]:
            msg = f"The context of a Magentic team has no {' and no '.join(missing)}."
            raise ValueError(msg)
        history = [Message.from_dict(message) for message in data.get("chat_history", ())]
        return cls(**{**data, "chat_history": history})


@dataclass
class MagenticResetSignal:
    """Makes a participant clear its conversation, because there is a new plan.

    Example:
        from agentbench.orchestrations import MagenticResetSignal

        signal = MagenticResetSignal()
    """


class MagenticOrchestratorEventType(StrEnum):
    """The kind of a manager's event.

    Example:
        from agentbench.orchestrations import MagenticOrchestratorEventType

        assert MagenticOrchestratorEventType.PLAN_CREATED.name == "PLAN_CREATED"
    """

    PLAN_CREATED = "plan_created"
    REPLANNED = "replanned"
    PROGRESS_LEDGER_UPDATED = "progress_ledger_updated"


@dataclass(frozen=True)
class MagenticOrchestratorEvent:
    """The data of an event of type `magentic_orchestrator`.

    Args:
        event_type: The kind of the event.
        content: The plan as a message, or the progress ledger.

    Example:
        async for event in workflow.run("Write a report.", stream=True):
            if event.type == "magentic_orchestrator":
                print(event.data.event_type.name)
    """

    event_type: MagenticOrchestratorEventType
    content: Message | MagenticProgressLedger

    def __str__(self) -> str:
        text = self.content.text if isinstance(self.content, Message) else str(self.content)
        return f"{self.event_type.value.replace('_', ' ')}: {text}"


@dataclass
class MagenticPlanReviewResponse:
    """A person's response to a plan. A text is accepted instead, as the requested changes.

    Args:
        review: The requested changes; an empty list approves.

    Example:
        from agentbench import Message
        from agentbench.orchestrations import MagenticPlanReviewResponse

        approved = MagenticPlanReviewResponse(review=[])
        revise = MagenticPlanReviewResponse(review=[Message("user", ["Ask a biologist first."])])
    """

    review: list[Message] = field(default_factory=list)

    _text_answer_: ClassVar = TextAnswer(
        prompt="Is this plan good?", label="What to change", send="Revise", without="Approve"
    )

    @classmethod
    def _from_text_(cls, text: str) -> MagenticPlanReviewResponse:
        return cls([Message("user", [text])])


@dataclass
class MagenticPlanReviewRequest:
    """Asks a person about a plan.

    Args:
        plan: The plan.
        current_progress: The last progress ledger; `None` with the first plan.
        is_stalled: Whether this plan replaces one that led to no progress.

    Example:
        >>> await workflow.run(responses={request.request_id: request.data.revise("Ask the library first.")})
    """

    plan: Message
    current_progress: MagenticProgressLedger | None = None
    is_stalled: bool = False

    @property
    def details(self) -> str:
        """The plan as text, and the progress of the last one; a form shows it below the question."""
        parts = ["The last plan led to no progress; this one replaces it."] if self.is_stalled else []
        parts += [self.plan.text, *([f"So far: {self.current_progress}"] if self.current_progress else [])]
        return "\n\n".join(parts)

    def approve(self) -> MagenticPlanReviewResponse:
        """Return the approval."""
        return MagenticPlanReviewResponse()

    def revise(self, feedback: str | Message | Sequence[str | Message]) -> MagenticPlanReviewResponse:
        """Return the requested changes; the manager plans again, and the new plan is reviewed again."""
        return MagenticPlanReviewResponse(normalize_messages(feedback))
