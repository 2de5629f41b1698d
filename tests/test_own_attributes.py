"""Attributes that users give their own subclasses do not meet ours."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentExecutor,
    EchoChatClient,
    Executor,
    FileCheckpointStorage,
    FunctionExecutor,
    InMemoryCheckpointStorage,
    InMemoryHistoryProvider,
    Message,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)

#: Names that people write.
NAMES = [
    "answers", "before", "cache", "client", "config", "context", "data", "driven", "entries", "files",
    "full_conversation", "function", "given", "handlers", "history", "items", "keep_last", "lock", "log", "logs",
    "memories", "messages", "name", "open", "options", "path", "pending", "pid", "queue", "responses", "result",
    "results", "seen", "session", "state", "store", "tools", "values", "waiting", "worker",
]  # fmt: skip


class Theirs:
    """Whatever a user stores under such names."""

    def __bool__(self) -> bool:
        raise AssertionError


def with_own_attributes(thing: Any) -> Any:
    for name in NAMES:
        setattr(thing, f"_{name}", Theirs())
    return thing


class Asks(Executor):
    def __init__(self) -> None:
        super().__init__("asks")
        with_own_attributes(self)

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def answered(self, text: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(answer)


async def test_of_executors():
    workflow = WorkflowBuilder(start_executor=Asks()).build()
    (request,) = (await workflow.run("?")).get_request_info_events()
    assert (await workflow.run(responses={request: "yes"})).outputs == ["yes"]


async def say(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text)


async def test_of_functions_agents_and_workflows_as_nodes():
    agent = with_own_attributes(Agent(EchoChatClient(), name="ada"))
    inner = WorkflowBuilder(start_executor=with_own_attributes(FunctionExecutor(say, "say"))).build()
    for node, given in (
        (FunctionExecutor(say, "say"), "hi"),
        (WorkflowExecutor(inner, "inner"), "hi"),
        (AgentExecutor(agent, id="agent"), "hi"),
    ):
        workflow = WorkflowBuilder(start_executor=with_own_attributes(node)).build()
        result = await workflow.run(given)
        assert result.final_state.value == "IDLE"


async def test_of_agents_and_histories():
    history = with_own_attributes(InMemoryHistoryProvider())
    agent = with_own_attributes(Agent(with_own_attributes(EchoChatClient()), name="ada", context_providers=[history]))
    session = agent.create_session()
    assert (await agent.run("hi", session=session)).text == "Echo: hi"
    assert len(await history.get_messages(session.session_id, state=session.state["in_memory"])) == 2
    assert isinstance((await agent.run(Message("user", "again"), session=session)).text, str)


@pytest.mark.parametrize("storage", [InMemoryCheckpointStorage, FileCheckpointStorage])
async def test_of_storages(storage, tmp_path):
    made = with_own_attributes(storage(tmp_path) if storage is FileCheckpointStorage else storage())
    saved = await made.save(WorkflowCheckpoint(workflow_name="w", graph_signature_hash="x"))
    assert (await made.load(saved)).workflow_name == "w"
    assert await made.list_checkpoint_ids(workflow_name="w") == [saved]
    assert await made.delete(saved)
