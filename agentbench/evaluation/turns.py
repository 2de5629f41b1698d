"""The scored parts of a run of a workflow: its answer, and the turns of its agents."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench.messages.joined_updates import join_updates
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.orchestrations.agent_executor import AgentExecutorRequest, AgentExecutorResponse
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.workflow import Workflow


@dataclass
class Run:
    """The scored parts of a run: its answer, if there is one, and the id, query and answer of each turn of an agent."""

    query: list[Message]
    answer: list[Message] | None
    turns: Sequence[Sequence[Any]]
    error: Exception | None = None


def read_run(result: WorkflowRunResult, query: Any, agents: Mapping[str, Any]) -> Run:
    """Extract the scored parts from the result of a run."""
    turns: list[list[Any]] = []
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


def _turn(executor_id: str, received: Any, data: Any) -> list[Any]:
    response = data if isinstance(data, AgentResponse) else data.agent_response
    conversation = None if isinstance(data, AgentResponse) else data.full_conversation
    query = [message for message in conversation or () if message.role == "user"]
    return [executor_id, query or as_messages(received), list(response.messages)]


def agents_of(workflow: Workflow) -> dict[str, Any]:
    """Return the agents of a workflow by the ids of their nodes."""
    return {
        executor_id: executor.agent
        for executor_id, executor in workflow.executors.items()
        if isinstance(executor, AgentNode) and not executor_id.startswith("_")
    }


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


def as_answer(output: Any) -> list[Message]:
    """Convert the output of a row to messages. Of several answers of agents, the last one is that of the workflow."""
    is_list = isinstance(output, list) and output and isinstance(output[-1], AgentResponse)
    return as_messages(output[-1] if is_list else output, "assistant")
