"""Attributes that users give their own subclasses do not meet ours."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import agentbench
import agentbench.openai
import agentbench.orchestrations
import agentbench.stategraph
from agentbench import (
    Agent,
    AgentExecutor,
    AgentMiddleware,
    BaseAgent,
    BaseChatClient,
    BaseEmbeddingClient,
    ChatMiddleware,
    ChatResponse,
    ContextProvider,
    EchoChatClient,
    Executor,
    FileCheckpointStorage,
    FunctionExecutor,
    FunctionMiddleware,
    FunctionTool,
    InMemoryCheckpointStorage,
    InMemoryHistoryProvider,
    MemoryStore,
    Message,
    Skill,
    SkillResource,
    SkillScript,
    SkillsSource,
    TodoStore,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
)
from agentbench.agents.mcp.tool import MCPTool
from agentbench.checkpoints.storage import ChainStorage
from agentbench.orchestrations import MagenticManagerBase

#: Names that people write.
NAMES = [
    "agent", "answer", "answers", "before", "cache", "call", "client", "config", "connection", "content", "context",
    "count", "data", "delete", "driven", "entries", "files", "find", "folder", "full_conversation", "function",
    "given", "handlers", "history", "ids", "items", "keep_last", "load", "lock", "log", "logs", "memories", "messages",
    "model", "name", "on_message", "open", "options", "path", "pending", "pid", "position", "put", "queue", "read",
    "reply", "respond", "responses", "result", "results", "run", "runs", "save", "script", "seen", "send", "session",
    "start", "state", "store", "stream", "take", "text", "token", "tools", "values", "waiting", "worker",
]  # fmt: skip

#: What subclasses override, as documented.
HOOKS = {
    "_inner_get_response", "_build_response_stream", "_finalize_response_updates", "_validate_options",
    "_get_type_identifier", "_abc_impl", "_is_protocol", "_is_runtime_protocol",
}  # fmt: skip


def public_classes_to_subclass() -> list[type]:
    bases = (
        Executor, BaseAgent, BaseChatClient, BaseEmbeddingClient, ContextProvider, AgentMiddleware, ChatMiddleware,
        FunctionMiddleware, ChainStorage, Skill, SkillResource, SkillScript, SkillsSource, TodoStore, MemoryStore,
        MagenticManagerBase, FunctionTool, MCPTool,
    )  # fmt: skip
    modules = (agentbench, agentbench.openai, agentbench.orchestrations, agentbench.stategraph)
    found = [getattr(module, name) for module in modules for name in module.__all__]
    return [each for each in found if isinstance(each, type) and issubclass(each, bases)]


def private_names(cls: type) -> set[str]:
    """Return the private names that a class has, or uses in its methods."""
    used = re.findall(r"\b(?:self|cls)\.(_[a-z]\w*)", inspect.getsource(cls))
    return {name for name in {*vars(cls), *used} - HOOKS if re.match(r"_(?!ab_)[a-z]", name) and name[-1] != "_"}


def test_private_names_of_classes_that_people_subclass_begin_with_a_prefix():
    classes = {base for each in public_classes_to_subclass() for base in each.__mro__}
    assert len(classes) > 50
    found = {each.__qualname__: private_names(each) for each in classes if each.__module__.startswith("agentbench")}
    assert {name: sorted(names) for name, names in found.items() if names} == {}


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


class Shelf(InMemoryCheckpointStorage):
    def __init__(self) -> None:
        self._entries, self._save = ["theirs"], "theirs"
        super().__init__()
        self._store = self._lock = "theirs"


class Echo(BaseChatClient):
    def __init__(self) -> None:
        self._client, self._model = "theirs", "small"
        super().__init__()
        self._responses: list[str] = []

    async def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> ChatResponse:
        self._responses.append(f"{self._model}: {messages[-1].text}")
        return ChatResponse(text=self._responses[-1])


class Counter(ContextProvider):
    def __init__(self) -> None:
        self._state, self._session = {"runs": 0}, "theirs"
        super().__init__("counter")

    async def before_run(self, *, context: Any, **kwargs: Any) -> None:
        self._state["runs"] += 1
        context.extend_messages(self, [Message("system", [f"run {self._state['runs']}"])])


class Writer(Agent):
    def __init__(self, client: Echo, counter: Counter) -> None:
        self._name, self._tools, self._client = "theirs", ["theirs"], client
        super().__init__(client, name="writer", context_providers=[counter])


class Clerk(Executor):
    def __init__(self, agent: Agent) -> None:
        self._responses: list[str] = []
        self._handlers, self._state, self._session = {"on": self._send}, "idle", "theirs"
        super().__init__("clerk")
        self._agent = agent

    def _send(self, text: str) -> str:
        self._state = "busy"
        return text

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self._responses.append((await self._agent.run(self._handlers["on"](text))).text)
        await ctx.request_info(self._responses[-1], bool)

    @response_handler
    async def on_answer(self, text: str, answer: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{text}, {answer}, {self._state}")


async def test_of_a_program_whose_classes_have_attributes_of_their_own():
    storage, client, counter = Shelf(), Echo(), Counter()
    clerk = Clerk(Writer(client, counter))
    workflow = WorkflowBuilder(start_executor=clerk, name="office", checkpoint_storage=storage).build()
    (request,) = (await workflow.run("hi")).get_request_info_events()
    assert (await workflow.run(responses={request: True})).outputs == ["small: hi, True, busy"]
    assert (clerk._responses, client._responses, counter._state) == (["small: hi"], ["small: hi"], {"runs": 1})
    assert (storage._entries, storage._save, storage._lock) == (["theirs"], "theirs", "theirs")
    assert await storage.list_checkpoint_ids(workflow_name="office")
