"""Sane objects and arguments for calls of everything that is public: one table of classes, and one of arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import agentbench
from agentbench import (
    Agent,
    AgentSession,
    CharacterEstimatorTokenizer,
    Content,
    EchoChatClient,
    FileSkillsSource,
    InMemoryCheckpointStorage,
    Message,
    State,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    executor,
    handler,
)
from agentbench.agents.harness.memory_store import MemoryFileStore
from agentbench.orchestrations import GroupChatBuilder, HandoffBuilder
from agentbench.stategraph import StateGraph


@executor(id="node")
async def node(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text)


class Talks(agentbench.Executor):
    @handler
    async def on_messages(self, messages: list[Message], ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output("hi")


def typed(state: str) -> str:
    return state


def agent(name: str = "ada") -> Agent:
    return Agent(EchoChatClient(), name=name, id=name)


def workflow() -> Workflow:
    start = Talks("talks")
    return WorkflowBuilder(start_executor=start, name="w", checkpoint_storage=InMemoryCheckpointStorage()).build()


def graph() -> StateGraph[Any]:
    return StateGraph().add_node("a", lambda state: None).set_entry_point("a")


#: What an object of a class is, where sane arguments alone do not make one.
OBJECTS: Mapping[str, Callable[[], Any]] = {
    "Agent": agent,
    "CompiledGraph": lambda: graph().compile(),
    "Executor": lambda: Talks("talks"),
    "GroupChatBuilder": lambda: GroupChatBuilder(participants=[agent()], selection_func=lambda state: "ada"),
    "HandoffBuilder": lambda: HandoffBuilder(participants=[agent("a"), agent("b")], enable_history_persistence=True),
    "RawAgent": agent,
    "StateGraph": graph,
    "StreamingRun": lambda: workflow().start("x"),
    "Workflow": workflow,
    "WorkflowAgent": lambda: workflow().as_agent("w"),
    "WorkflowBuilder": lambda: WorkflowBuilder(start_executor=node),
    "WorkflowRun": lambda: workflow().start("x"),
    "WorkflowStream": lambda: workflow().run([Message("user", "x")], stream=True),
}

#: Sane values of arguments by name; those that a call needs, and a few without which no other one counts.
ARGUMENTS: Mapping[str, Callable[[], Any]] = {
    "agent": agent,
    "base_path": lambda: "folder",
    "checkpoint": lambda: WorkflowCheckpoint(workflow_name="w", graph_signature_hash="x"),
    "checkpoint_id": lambda: "c",
    "client": EchoChatClient,
    "compact_to": lambda: 2,
    "config": lambda: {"thread_id": "t"},
    "content": lambda: Content.from_text("x"),
    "data": lambda: "data",
    "description": lambda: "description",
    "edge_groups": list,
    "evaluators": lambda: agentbench.keyword_check("a"),
    "executor": lambda: node,
    "executors": lambda: {"node": node},
    "from_node": lambda: "a",
    "full_path": lambda: "/s.py",
    "func": lambda: typed,
    "function": lambda: typed,
    "group": lambda: agentbench.SingleEdgeGroup("a", "b"),
    "id": lambda: "x",
    "inner_source": lambda: FileSkillsSource("skills"),
    "input": lambda: "x",
    "input_data": lambda: "hi",
    "instructions": lambda: "Be brief.",
    "keep": lambda: 1,
    "keep_last_groups": lambda: 1,
    "key": lambda: "k",
    "max_context_window_tokens": lambda: 100,
    "max_n": lambda: 3,
    "max_output_tokens": lambda: 10,
    "message": lambda: Message("user", "hi"),
    "messages": lambda: [Message("user", "hi")],
    "name": lambda: "name",
    "name_or_func": lambda: "b",
    "node": lambda: "a",
    "owner_state_key": lambda: "user",
    "participants": lambda: [agent("a"), agent("b")],
    "path": lambda: "path",
    "queries": lambda: ["q"],
    "request": lambda: "r",
    "request_id": lambda: "r",
    "role": lambda: "user",
    "run": lambda: workflow().start("x"),
    "run_a": lambda: workflow().start("x"),
    "run_b": lambda: workflow().start("x"),
    "selection_func": lambda: lambda state: "ada",
    "script": lambda: ["a"],
    "session": AgentSession,
    "session_id": lambda: "s",
    "source": workflow,
    "source_id": lambda: "source",
    "sources": lambda: [node],
    "start_executor": lambda: node,
    "state": State,
    "storage": InMemoryCheckpointStorage,
    "storage_path": lambda: "storage",
    "store": lambda: MemoryFileStore("memory", owner_state_key="user"),
    "target": lambda: node,
    "target_id": lambda: "b",
    "text": lambda: "text",
    "title": lambda: "title",
    "to_node": lambda: "b",
    "token_budget": lambda: 10,
    "tokenizer": CharacterEstimatorTokenizer,
    "updates": list,
    "uri": lambda: "data:text/plain,x",
    "url": lambda: "http://localhost/mcp",
    "value": lambda: "v",
    "values": dict,
    "workflow": workflow,
    "workflow_name": lambda: "w",
}

#: Arguments that go together with one of their kind, for calls that need either.
ALSO: Mapping[str, tuple[str, ...]] = {
    "Agent": ("client",),
    "RawAgent": ("client",),
    "ConcurrentBuilder": ("participants",),
    "FunctionTool": ("func", "name"),
    "AgentWorkflowBuilder.build_concurrent": ("participants",),
    "AgentWorkflowBuilder.build_sequential": ("participants",),
    "GroupChatBuilder": ("participants", "selection_func"),
    "InlineSkill": ("name", "description"),
    "InlineSkillResource": ("content",),
    "SequentialBuilder": ("participants",),
    "StateGraph.add_node": ("func",),
    "HandoffBuilder": ("participants",),
    "build_sequential": ("participants",),
    "evaluate_agent": ("agent", "queries"),
    "evaluate_workflow": ("queries",),
    "stepper": ("input",),
    "tool": ("func",),
}


def required(function: Any, label: str) -> dict[str, Any] | None:
    """Return sane values for the arguments that a call needs; None if the table has none for one of them."""
    values: dict[str, Any] = {}
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # of a class written in C
        return None
    for name, parameter in parameters.items():
        variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if name == "self" or variable or (parameter.default is not parameter.empty and name not in ALSO.get(label, ())):
            continue
        if name not in ARGUMENTS:
            return None
        values[name] = ARGUMENTS[name]()
    return values


def make(cls: type) -> Any:
    """Return an object of a class; None if the tables have no way to make one."""
    if cls.__name__ in OBJECTS:
        return OBJECTS[cls.__name__]()
    try:
        values = required(cls, cls.__name__)
        return None if values is None else cls(**values)
    except Exception:  # noqa: BLE001 - such as an abstract class
        return None
