"""The parts of a workflow run that are scored: its answer, and the turns of its agents."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentbench.messages.joined_updates import join_updates
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.orchestrations.agent_executor import AgentExecutorRequest, AgentExecutorResponse
from agentbench.workflows.run.result import WorkflowRunResult


@dataclass
class AgentTurn:
    """The input and the answer of one agent in a workflow."""

    executor_id: str
    query: list[Message]
    answer: list[Message]


@dataclass
class Run:
    """The scored parts of a run: its answer, if there is one, and the turns of its agents."""

    query: list[Message]
    answer: list[Message] | None
    turns: list[AgentTurn]
    error: Exception | None = None


def read_run(result: WorkflowRunResult, query: Any, agents: Mapping[str, Any]) -> Run:
    """Extract the scored parts from the result of a run."""
    turns = []
    inputs: defaultdict[str | None, deque[Any]] = defaultdict(deque)
    first: Any = query
    for event in result:
        if event.type == "executor_invoked":
            first = event.data if first is None else first
            inputs[event.executor_id].append(event.data)
        elif event.type == "executor_completed" and event.executor_id is not None and event.executor_id in agents:
            received = inputs[event.executor_id].popleft() if inputs[event.executor_id] else None
            turns += [_turn(event.executor_id, received, data) for data in _answers(event.data)]
    outputs = [event.data for event in join_updates([event for event in result if event.type == "output"])]
    return Run(as_messages(first), as_messages(outputs[-1], "assistant") if outputs else None, turns)


def _answers(data: Any) -> list[Any]:
    """Return the answers in the data of an agent node. A node may send and yield the same answer."""
    sent = data if isinstance(data, list) else [data]
    full = [value for value in sent if isinstance(value, AgentExecutorResponse)]
    return full or [value for value in sent if isinstance(value, AgentResponse)]


def _turn(executor_id: str, received: Any, data: Any) -> AgentTurn:
    response = data if isinstance(data, AgentResponse) else data.agent_response
    conversation = None if isinstance(data, AgentResponse) else data.full_conversation
    query = [message for message in conversation or () if message.role == "user"]
    return AgentTurn(executor_id, query or as_messages(received), list(response.messages))


def as_messages(value: Any, role: str = "user") -> list[Message]:
    """Convert a value to messages. A value that is not a message becomes the text of one."""
    if isinstance(value, Message):
        return [value]
    if isinstance(value, (AgentResponse, AgentExecutorRequest)):
        return list(value.messages)
    if isinstance(value, AgentExecutorResponse):
        return list(value.conversation)
    if isinstance(value, list) and value and all(isinstance(item, Message) for item in value):
        return list(value)
    return [Message(role, [str(value)])]


def plain_run(run: Run) -> list[Any]:
    """Convert a run to JSON values."""

    def plain(messages: list[Message] | None) -> list[Any] | None:
        return None if messages is None else [message.to_dict() for message in messages]

    turns = [[turn.executor_id, plain(turn.query), plain(turn.answer)] for turn in run.turns]
    return [plain(run.query), plain(run.answer), turns]


def stored_run(stored: list[Any]) -> Run:
    """Create a run from the result of `plain_run`."""

    def messages(plain: list[Any]) -> list[Message]:
        return [Message.from_dict(message) for message in plain]

    query, answer, turns = stored
    return Run(messages(query), messages(answer), [AgentTurn(turn[0], *map(messages, turn[1:])) for turn in turns])
