"""Workloads of agents, alone and in workflows. Their bare halves do the same with lists, dicts and plain asyncio."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from agentbench import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionTool,
    Message,
    ResponseStream,
    Workflow,
    WorkflowBuilder,
    tool,
)
from tests.benchmarks.workload import Workload, awaited

TURNS = 100
TOOL_CALLS = 200
TURNS_WITH_TOOLS = 20
UPDATES = 10_000

_TEXT = "y" * 50


class Offline(BaseChatClient[Any]):
    """Echoes; or asks for tool calls one after the other; or streams, pausing before each piece as a network does.

    With `calls_per_turn` it asks for that many calls before each answer, not just before the first.
    """

    def __init__(self, calls: int = 0, updates: int = 0, calls_per_turn: int = 0) -> None:
        super().__init__(function_invocation_configuration={"max_iterations": calls + 5})
        self.calls, self.updates, self.done = calls or calls_per_turn, updates, 0
        self.calls_per_turn = calls_per_turn

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        if stream:
            return ResponseStream(self._stream(), finalizer=ChatResponse.from_updates)
        return self._once(messages)

    async def _once(self, messages: Any) -> ChatResponse[Any]:
        if self.done < self.calls:
            self.done += 1
            call = Content.from_function_call(f"c{self.done}", "add", arguments={"a": self.done, "b": 1})
            return ChatResponse(messages=[Message("assistant", [call])])
        self.calls += self.calls_per_turn
        return ChatResponse(messages=[Message("assistant", [Content.from_text("echo: " + messages[-1].text)])])

    async def _stream(self) -> AsyncIterator[ChatResponseUpdate]:
        for _ in range(self.updates):
            await asyncio.sleep(0)
            yield ChatResponseUpdate(
                contents=[Content.from_text("tok ")], role="assistant", response_id="r", message_id="m"
            )


def _turns() -> Callable[[], Awaitable[object]]:
    agent = Agent(Offline(), "echo", name="solo")

    async def once() -> None:
        session = AgentSession()
        for turn in range(TURNS):
            response = await agent.run(f"turn {turn} {_TEXT}", session=session)
            assert response.text.startswith("echo: turn")
        assert len(session.state["in_memory"]["messages"]) == 2 * TURNS

    return once


async def _bare_turns() -> None:
    history: list[dict[str, str]] = []

    async def model(messages: list[dict[str, str]]) -> dict[str, str]:
        return {"role": "assistant", "text": "echo: " + messages[-1]["text"]}

    for turn in range(TURNS):
        asked = {"role": "user", "text": f"turn {turn} {_TEXT}"}
        answer = await model([*history, asked])
        history += [asked, answer]
    assert len(history) == 2 * TURNS


def _chain() -> Workflow:
    """Ten agents, each with a session of its own; all of the conversation is passed on."""
    agents = [Agent(Offline(), "echo", name=f"a{number}") for number in range(10)]
    return WorkflowBuilder(agents[0], output_from=[agents[-1]]).add_chain(agents).build()


def _turns_of_chain() -> Callable[[], Awaitable[object]]:
    async def once() -> None:
        workflow = _chain()
        for turn in range(TURNS):
            result = await workflow.run(f"turn {turn} {_TEXT}")
            assert result.outputs[0].text.startswith("echo: echo: ")

    return once


def growth() -> float:
    """Processor time of the last tenth of 100 turns of a session to that of the first tenth."""
    agent, session = Agent(Offline(), "echo", name="solo"), AgentSession()
    return _growth(lambda text: agent.run(text, session=session), lambda: agent.run("warm"))


def chain_growth() -> float:
    """The same of a workflow of ten agents."""
    return _growth(_chain().run, lambda: _chain().run("warm"))


def _growth(turn: Callable[[str], Awaitable[object]], warm: Callable[[], Awaitable[object]]) -> float:
    async def run() -> list[float]:
        seconds = []
        await warm()
        for number in range(TURNS):
            began = time.process_time()
            await turn(f"turn {number} {_TEXT}")
            seconds.append(time.process_time() - began)
        return seconds

    seconds = asyncio.run(run())
    tenth = TURNS // 10
    return statistics.median(seconds[-tenth:]) / statistics.median(seconds[:tenth])


def growth_to_ten_thousand() -> float:
    """Processor time of a turn behind 10,000 messages, the first of them with an approval, to one behind 10."""

    @tool(name="add", description="adds", approval_mode="always_require")
    def careful(a: int, b: int) -> int:
        return a + b

    async def behind(length: int) -> float:
        agent, session, seconds = Agent(Offline(calls=1), "echo", name="solo", tools=[careful]), AgentSession(), []
        (request,) = (await agent.run("go", session=session)).user_input_requests
        await agent.run(Message("user", [request.to_function_approval_response(True)]), session=session)
        history = session.state["in_memory"]
        history["messages"] = [
            *history["messages"],
            *(Message(role, [_TEXT]) for _ in range(length // 2) for role in ("user", "assistant")),
        ]
        await agent.run("warm", session=session)
        for turn in range(TURNS):
            began = time.process_time()
            await agent.run(f"turn {turn} {_TEXT}", session=session)
            seconds.append(time.process_time() - began)
        return statistics.median(seconds)

    short = asyncio.run(behind(10))
    return asyncio.run(behind(10_000)) / short


def approval_growth() -> float:
    """Processor time of turn 2,000 of a workflow of one agent to that of turn 200, with an approval in the first."""

    @tool(name="add", description="adds", approval_mode="always_require")
    def careful(a: int, b: int) -> int:
        return a + b

    async def run() -> float:
        workflow = WorkflowBuilder(Agent(Offline(calls=1), "echo", name="solo", tools=[careful])).build()
        (request,) = (await workflow.run("go")).get_request_info_events()
        await workflow.run(responses={request: request.data.to_function_approval_response(True)})
        seconds = []
        for turn in range(2000):
            began = time.process_time()
            await workflow.run(f"turn {turn} {_TEXT}")
            seconds.append(time.process_time() - began)
        return statistics.median(seconds[-100:]) / statistics.median(seconds[100:200])

    return asyncio.run(run())


@tool(name="add", description="adds", approval_mode="never_require")
def _add(a: int, b: int) -> int:
    return a + b


def _tool_calls() -> Callable[[], Awaitable[object]]:
    async def once() -> None:
        response = await Agent(Offline(calls=TOOL_CALLS), name="tooler", tools=[_add]).run("go")
        assert len(response.messages) == 2 * TOOL_CALLS + 1, len(response.messages)

    return once


async def _add_up(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


def three_agents() -> Workflow:
    """Three agents in a row; a turn of each makes three model calls and two tool calls."""
    agents = [
        Agent(Offline(calls_per_turn=2), name=f"a{number}", tools=[FunctionTool(_add_up, name="add")])
        for number in range(3)
    ]
    return WorkflowBuilder(agents[0], output_from=[agents[-1]]).add_chain(agents).build()


def _turns_with_tools() -> Callable[[], Awaitable[object]]:
    async def once() -> None:
        workflow = three_agents()
        for _ in range(TURNS_WITH_TOOLS):
            result = await workflow.run("go")
            assert len(result.outputs[0].messages) == 5, result.outputs

    return once


def first_turn_ms() -> float:
    """Milliseconds of processor time that the first turn of a process takes, once the workflow is built."""
    workflow = three_agents()

    async def run() -> float:
        began = time.process_time()
        result = await workflow.run("go")
        assert len(result.outputs[0].messages) == 5, result.outputs
        return 1e3 * (time.process_time() - began)

    return asyncio.run(run())


def _stream() -> Callable[[], Awaitable[object]]:
    agent = Agent(Offline(updates=UPDATES), name="streamer")

    async def once() -> None:
        found = 0
        async for _ in agent.run("go", stream=True):
            found += 1
        assert found == UPDATES, found

    return once


def _stream_of_workflow() -> Callable[[], Awaitable[object]]:
    async def once() -> None:
        workflow, found = WorkflowBuilder(Agent(Offline(updates=UPDATES), name="streamer")).build(), 0
        async for event in workflow.run("go", stream=True):
            found += event.type == "output"
        assert found == UPDATES, found

    return once


async def _bare_stream() -> None:
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    async def pump() -> None:
        for _ in range(UPDATES):
            await asyncio.sleep(0)
            queue.put_nowait("tok ")
        queue.put_nowait(None)

    task, found = asyncio.create_task(pump()), 0
    while await queue.get() is not None:
        found += 1
    await task
    assert found == UPDATES, found


def first_update_ms() -> float:
    """Milliseconds from the call of `run` to the first of many updates."""
    return _first_ms(lambda updates: Agent(Offline(updates=updates), name="streamer").run("go", stream=True))


def first_output_ms() -> float:
    """The same of a workflow that begins with the agent."""

    async def outputs(updates: int) -> AsyncIterator[object]:
        workflow = WorkflowBuilder(Agent(Offline(updates=updates), name="streamer")).build()
        async with aclosing(workflow.run("go", stream=True)) as events:
            async for event in events:
                if event.type == "output":
                    yield event

    return _first_ms(outputs)


def _first_ms(stream: Callable[[int], Any]) -> float:
    async def run() -> float:
        async for _ in stream(3):  # warm
            pass
        began = time.perf_counter()
        async with aclosing(stream(UPDATES)) as updates:
            await updates.__anext__()
            return 1e3 * (time.perf_counter() - began)

    return asyncio.run(run())


WORKLOADS = (
    Workload(
        name="W5 turn",
        what="a turn of one agent in a session of 100 turns",
        unit="ms",
        per_call=TURNS,
        agentbench=awaited(_turns),
        bare=awaited(lambda: _bare_turns),
    ),
    Workload(
        name="W5 chain",
        what="a turn of ten agents in a row, over 100 turns",
        unit="ms",
        per_call=TURNS,
        agentbench=awaited(_turns_of_chain),
    ),
    Workload(
        name="W5 tool call",
        what="a tool call in a run of 200, one after the other",
        unit="us",
        per_call=TOOL_CALLS,
        agentbench=awaited(_tool_calls),
    ),
    Workload(
        name="H7 turn",
        what="a turn of three agents in a row with nine model calls and six tool calls",
        unit="ms",
        per_call=TURNS_WITH_TOOLS,
        agentbench=awaited(_turns_with_tools),
    ),
    Workload(
        name="W6 agent",
        what="an update of an agent that streams 10,000",
        unit="us",
        per_call=UPDATES,
        agentbench=awaited(_stream),
        bare=awaited(lambda: _bare_stream),
    ),
    Workload(
        name="W6 workflow",
        what="the same through a workflow of one agent",
        unit="us",
        per_call=UPDATES,
        agentbench=awaited(_stream_of_workflow),
        bare=awaited(lambda: _bare_stream),
    ),
)
