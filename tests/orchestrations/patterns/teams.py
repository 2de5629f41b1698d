"""Teams for each pattern, whose models answer by what they have read: who has lost a message answers otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agentbench import Agent, BaseChatClient, ChatResponse, Content, Message, Workflow
from agentbench.orchestrations import (
    ConcurrentBuilder,
    GroupChatBuilder,
    HandoffBuilder,
    MagenticBuilder,
    SequentialBuilder,
)


class Reader(BaseChatClient):
    """Answers with a name and how many characters it has read; `decide` answers instead, if it is there."""

    def __init__(self, name: str, decide: Callable[[list[Message]], str | Content] | None = None) -> None:
        super().__init__()
        self.name, self.decide = name, decide

    async def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> ChatResponse:
        read = list(messages)
        text = self.decide(read) if self.decide else f"{self.name}{sum(len(each.text) for each in read)}"
        return ChatResponse(messages=[Message("assistant", [text])])


def reader(name: str, decide: Callable[[list[Message]], str | Content] | None = None, **settings: Any) -> Agent:
    return Agent(Reader(name, decide), name=name, description=f"Reads as {name}.", **settings)


def in_turn(state: Any) -> str:
    names = [*state.participants]
    return str(names[state.current_round % len(names)])


def manage(messages: list[Message]) -> str:
    """Let b, a and b speak, then end; as a manager that has read the whole conversation."""
    turns = sum(message.author_name in ("a", "b") for message in messages)
    if turns == 3:
        return json.dumps({"terminate": True, "reason": "enough", "final_message": f"read {len(messages)} messages"})
    return json.dumps({"terminate": False, "reason": f"turn {turns}", "next_speaker": "ab"[(turns + 1) % 2]})


def sequential(**options: Any) -> SequentialBuilder:
    return SequentialBuilder(participants=[reader("a"), reader("b"), reader("c")], **options)


def concurrent(**options: Any) -> ConcurrentBuilder:
    return ConcurrentBuilder(participants=[reader("a"), reader("b"), reader("c")], **options)


def group_chat(**options: Any) -> GroupChatBuilder:
    return GroupChatBuilder(participants=[reader("a"), reader("b")], selection_func=in_turn, max_rounds=5, **options)


def managed_chat(**options: Any) -> GroupChatBuilder:
    return GroupChatBuilder(
        participants=[reader("a"), reader("b")], orchestrator_agent=reader("boss", manage), **options
    )


def hand_on(messages: list[Message]) -> str | Content:
    """Hand the conversation on to b, and answer when it comes back."""
    if any(message.role == "tool" for message in messages):
        return f"a{sum(len(each.text) for each in messages)}"
    return Content.from_function_call("call-1", "handoff_to_b")


def hand_back(messages: list[Message]) -> str | Content:
    """Answer, then hand the conversation back."""
    said = sum(len(each.text) for each in messages)
    return (
        f"b{said}"
        if messages[-1].role == "user" and said < 40
        else Content.from_function_call("call-2", "handoff_to_a")
    )


def handoff(**options: Any) -> HandoffBuilder:
    """Let a hand on to b, which goes on by itself until it hands back; a has the last word."""
    history = {"require_per_service_call_history_persistence": True}
    a, b = reader("a", hand_on, **history), reader("b", hand_back, **history)
    return (
        HandoffBuilder(participants=[a, b], **options)
        .with_start_agent(a)
        .with_autonomous_mode(agents=[b])
        .with_termination_condition(lambda conversation: conversation[-1].author_name == "a")
    )


def ledger(speaker: Any, instruction: str, *, satisfied: Any = False, progress: Any = True, loop: Any = False) -> str:
    """What a manager answers to the five questions."""
    answers = {
        "is_request_satisfied": satisfied,
        "is_in_loop": loop,
        "is_progress_being_made": progress,
        "next_speaker": speaker,
        "instruction_or_question": instruction,
    }
    return json.dumps({name: {"reason": "so", "answer": answer} for name, answer in answers.items()})


def direct(messages: list[Message]) -> str:
    """Manage a team: plan, let a, b and a work, and answer."""
    asked, read = messages[-1].text, sum(len(each.text) for each in messages)
    turns = sum(message.author_name in ("a", "b") for message in messages)
    if "five questions" in asked:
        return ledger("ab"[turns % 2], f"Step {turns}, {read}.", satisfied=turns == 3)
    return f"boss{read}"


def magentic(**options: Any) -> MagenticBuilder:
    return MagenticBuilder(participants=[reader("a"), reader("b")], manager_agent=reader("boss", direct), **options)


PATTERNS: dict[str, Callable[..., Any]] = {
    "sequential": sequential,
    "concurrent": concurrent,
    "group_chat": group_chat,
    "managed_chat": managed_chat,
    "handoff": handoff,
    "magentic": magentic,
}


def texts(outputs: Any) -> str:
    """The outputs as one text: whole responses, or updates."""
    return "".join(output.text for output in outputs)


def replace_agent(workflow: Workflow, name: str, client: Any) -> None:
    """Give one participant another model."""
    node: Any = workflow.executors[name]
    node.agent = Agent(client, name=name, require_per_service_call_history_persistence=True)
