"""Whatever was awaited in one cell is usable through its sync twin or `run_sync` in the next, and the reverse.

Cells run in a real kernel. A table names what is made, and how it is used with `await`; each use is awaited in a cell,
waited for in another, run on an event loop that is closed then, and so on. A cell that hangs fails by name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")

LIMIT_S = 60.0  # only a bound for a cell that hangs

SETUP = """
import asyncio, os, sys, threading, uuid
import http.server
import agentbench as ab
from agentbench import *
from agentbench.checkpoints import *
from agentbench.openai import *
from agentbench.orchestrations import *
from agentbench.testing import *
from agentbench.notebook import progress, stepper
from agentbench.stategraph import END, START, AgentState, StateGraph
from tests.agents.mcp.servers import adder

class Bounce(Executor):
    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await asyncio.sleep(0.001)
        if n < 3:
            await ctx.send_message(n + 1)
        else:
            await ctx.yield_output(n)

class Asks(Executor):
    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.request_info(n, int)

    @response_handler
    async def answered(self, asked: int, answer: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(answer)

def bouncing(storage=None):
    a, b = Bounce(id="a"), Bounce(id="b")
    builder = WorkflowBuilder(start_executor=a, name="bouncing", checkpoint_storage=storage)
    return builder.add_edge(a, b).add_edge(b, a).build()

def asking(storage=None):
    return WorkflowBuilder(start_executor=Asks(id="asks"), name="asking", checkpoint_storage=storage).build()

@workflow
async def function_workflow(n: int) -> int:
    await asyncio.sleep(0.001)
    return n

def sync_tool(n: int) -> int:
    return n

async def async_tool(n: int) -> int:
    await asyncio.sleep(0.001)
    return n

def scripted(*answers):
    return ScriptedChatClient(list(answers) * 50)

def with_tools():
    calls = [Call("sync_tool", {"n": 1}), Call("async_tool", {"n": 2})]
    return Agent(scripted(calls, "done"), tools=[sync_tool, async_tool], name="with_tools")

thread = {"thread_id": "t"}

def counting(**settings):
    class Count(AgentState):
        n: int = 0

    async def add(state):
        await asyncio.sleep(0.001)
        return {"n": state.n + 1}

    return StateGraph(Count).add_node("a", add).add_edge(START, "a").add_edge("a", END).compile(**settings)

class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # which keeps connections open

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = (b'{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, '
                b'"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}]}')
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

def model_client():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return OpenAIChatCompletionClient("m", api_key="k", base_url=f"http://127.0.0.1:{server.server_port}/v1")

def session():
    made = AgentSession()
    made.state["owner"] = "Ada"
    return made

def memories():
    return MemoryFileStore("memory", owner_state_key="owner")

async def all_of(events):
    return [event async for event in events]

async def steps(run):
    while run.status.name == "IN_PROGRESS":
        await run.step()
    return run.result_so_far().get_outputs()

async def answered(run):
    await run.result()
    await run.respond(run.pending_requests[0], 7)
    return (await run.result()).get_outputs()

async def run_twice(agent, session):
    await agent.run("hi", session=session)
    return (await agent.run("again", session=session)).text

def on_closed_loop(use):
    found = []

    def work():
        loop = asyncio.new_event_loop()
        found.append(loop.run_until_complete(use()))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert found, "it hangs"
    return found[0]
"""


class Row(NamedTuple):
    """What a cell makes as `x`; what is awaited, one after the other and again and again; and its sync twin."""

    make: str
    uses: tuple[str, ...]
    twin: str = ""


def row(make: str, *uses: str, twin: str = "") -> Row:
    return Row(make, uses, twin)


def agent_with(provider: str) -> str:
    return f"(Agent(EchoChatClient(), context_providers=[{provider}]), session())"


ROWS = {
    "workflow": row("bouncing()", "x.run(0)"),
    "streamed workflow": row("bouncing()", "all_of(x.run(0, stream=True))"),
    "response of a streamed workflow": row("bouncing()", "x.run(0, stream=True).get_final_response()"),
    "function workflow": row("function_workflow", "x.run(1)"),
    "nested workflow": row("WorkflowBuilder(start_executor=WorkflowExecutor(bouncing(), 'inner')).build()", "x.run(0)"),
    "handle": row("bouncing(InMemoryCheckpointStorage())", "steps(x.start(0))"),
    "one handle": row("bouncing().start(0)", "x.result()"),
    "answered handle": row("asking()", "answered(x.start(0))"),
    "plan of a handle": row("bouncing().start(0)", "x.plan()"),
    "forks": row("bouncing(InMemoryCheckpointStorage()).start(0)", "x.result()", "x.fork(x.checkpoints[0])"),
    "cancelled handle": row("bouncing().start(0)", "x.cancel()"),
    "steppers": row("[stepper(bouncing(), 0, name=n) for n in 'abcdef']", "x.pop().arun()", twin="x.pop().run()"),
    "steps of a stepper": row("stepper(bouncing(), 0)", "x.astep()", twin="x.step()"),
    "progress": row("bouncing()", "x.run(0)", twin="progress(x.start(0)).wait()"),
    "agent": row("Agent(EchoChatClient())", "x.run('hi')"),
    "streaming agent": row("Agent(EchoChatClient())", "all_of(x.run('hi', stream=True))"),
    "tools": row("with_tools()", "x.run('go')"),
    "session": row("(Agent(EchoChatClient()), session())", "run_twice(*x)"),
    "todo": row(agent_with("TodoProvider()"), "run_twice(*x)"),
    "history in files": row(agent_with("FileHistoryProvider('history')"), "run_twice(*x)"),
    "memory": row(
        agent_with("MemoryContextProvider(store=MemoryFileStore('memory', owner_state_key='owner'))"), "run_twice(*x)"
    ),
    "background agents": row(
        "Agent(scripted([Call('background_agents_start_task', {'agent_name': 'w', 'input': 'hi', 'description': 'd'})],"
        " [Call('background_agents_wait_for_first_completion', {'task_ids': [1]})], 'done'),"
        " context_providers=[BackgroundAgentsProvider([Agent(EchoChatClient(), name='w', description='works')])])",
        "x.run('go')",
    ),
    "workflow as agent": row(
        "SequentialBuilder(participants=[Agent(EchoChatClient(), name=n) for n in 'ab']).build().as_agent()",
        "x.run('hi')",
    ),
    "skills": row("CachingSkillsSource(InMemorySkillsSource([]))", "x.get_skills()"),
    "client": row("EchoChatClient()", "x.get_response('hi')"),
    "server": row("adder()", "x.call_tool('add', a=1)"),
    "connecting": row("adder()", "x.connect()"),
    "connecting anew": row("adder()", "x.connect(reset=True)"),
    "lists of a server": row("adder()", "x.load_tools()"),
    "resources of a server": row("adder()", "x.connect()", "x.list_resources()"),
    "session of a server": row("adder()", "x.connect()", "x.session.list_tools()"),
    "agent with a server": row("Agent(scripted([Call('add', {'a': 1})], 'done'), tools=adder())", "x.run('go')"),
    "closing a server": row("adder()", "x.connect()", "x.close()"),
    "model": row("model_client()", "x.get_response('hi')"),
    "closing a model": row("model_client()", "x.get_response('hi')", "x.close()"),
    "recorded model": row("CassetteChatClient('tape.json', model_client(), mode='auto')", "x.get_response('hi')"),
    "memory storage": row("InMemoryCheckpointStorage()", "bouncing(x).run(0)", "list_infos(x)"),
    "file storage": row("FileCheckpointStorage('files')", "bouncing(x).run(0)", "list_infos(x)"),
    "SQL storage": row("SQLCheckpointStorage('checkpoints.db')", "bouncing(x).run(0)", "list_infos(x)"),
    "graph": row("counting()", "x.ainvoke({'n': 1}, thread)", twin="x.invoke({'n': 1}, thread)"),
    "streamed graph": row("counting()", "all_of(x.astream({'n': 1}, thread))", twin="list(x.stream({'n': 1}, thread))"),
    "state of a graph": row(
        "counting()", "x.ainvoke({'n': 1}, thread)", "x.aget_state(thread)", twin="x.get_state(thread)"
    ),
    "history of a graph": row(
        "counting()", "x.ainvoke({'n': 1}, thread)", "x.aget_state_history(thread)", twin="x.get_state_history(thread)"
    ),
    "update of a graph": row(
        "counting()",
        "x.ainvoke({'n': 1}, thread)",
        "x.aupdate_state(thread, {'n': 2})",
        twin="x.invoke({'n': 1}, thread), x.update_state(thread, {'n': 2})",
    ),
    "stopping a graph": row("counting()", "x.astop(thread)", twin="x.stop(thread)"),
    "handle of a graph": row("counting()", "x.astart({'n': 1}, thread)", twin="x.start({'n': 1}, thread)"),
    "threads of a graph": row("counting()", "x.ainvoke({'n': 1}, thread)", "x.alist_threads()"),
    "closing a graph": row("counting()", "x.aclose()", twin="x.close()"),
}


class Kernel:
    """A kernel and a client of it, which is started anew after a cell that hung."""

    def __init__(self, folder: Path, setup: str = SETUP) -> None:
        self._setup = setup
        self._manager: Any = jupyter_client.KernelManager(kernel_name="python3")
        environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parents[3]), *sys.path[:1]]))
        environment["IPYTHONDIR"] = str(folder)
        self._manager.start_kernel(env=environment, cwd=str(folder))
        self._begin()

    def _begin(self) -> None:
        self._client: Any = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=LIMIT_S)
        self.run(self._setup)

    def run(self, code: str) -> str:
        """Return what a cell shows; it must end well, and in time."""
        said: list[str] = []

        def listen(message: dict[str, Any]) -> None:
            content = message["content"]
            said.append(content.get("text") or "\n".join(content.get("traceback", ())))

        try:
            reply = self._client.execute_interactive(code, timeout=LIMIT_S, output_hook=listen)
        except TimeoutError:
            self._client.stop_channels()
            self._manager.restart_kernel(now=True)
            self._begin()
            pytest.fail(f"This cell hangs: {code}")
        assert reply["content"]["status"] == "ok", f"{code}\n{''.join(said)}"
        return "".join(said)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        self._manager.context.destroy()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    made = Kernel(tmp_path_factory.mktemp("kernel"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def nested_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel whose event loop can run inside itself."""
    pytest.importorskip("nest_asyncio")
    made = Kernel(tmp_path_factory.mktemp("nested"), SETUP + "import nest_asyncio; nest_asyncio.apply()")
    try:
        yield made
    finally:
        made.close()


def cell(way: str, row: Row) -> str:
    """Return a cell that uses what a row makes."""
    if way == WAITED_FOR and row.twin:
        return f"{row.twin};"
    return "\n".join(f"{way.format(use)};" for use in row.uses)


AWAITED, WAITED_FOR, ON_A_CLOSED_LOOP = "await {}", "run_sync({})", "on_closed_loop(lambda: {})"
NESTED = "asyncio.get_running_loop().run_until_complete({})"


@pytest.mark.parametrize("name", ROWS)
def test_it_works_however_it_was_used_before(kernel: Kernel, name: str) -> None:
    ways = (AWAITED, WAITED_FOR, ON_A_CLOSED_LOOP)
    for one, other, third in (ways, ways[1:] + ways[:1], ways[2:] + ways[:2]):
        kernel.run(f"x = {ROWS[name].make}")
        for way in (one, other, one, third):
            kernel.run(cell(way, ROWS[name]))


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="nest-asyncio does not work on Python 3.14")
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.nightly
def test_it_works_in_an_event_loop_that_is_run_inside_itself(nested_kernel: Kernel, name: str) -> None:
    nested_kernel.run(f"x = {ROWS[name].make}")
    for way in (AWAITED, NESTED, WAITED_FOR, NESTED):
        nested_kernel.run(cell(way, ROWS[name]))


def test_a_changed_cell_is_noticed_at_the_next_display(kernel: Kernel) -> None:
    kernel.run("from agentbench import FunctionExecutor, WorkflowBuilder, executor")
    define = "@executor(send_result=True)\ndef classify(text: str) -> str:\n    return text"
    kernel.run(define)
    kernel.run("last = FunctionExecutor(lambda text: None, 'last', input=str)")
    kernel.run("panel = stepper(WorkflowBuilder(classify).add_edge(classify, last).build(), 'mail'); panel.run()")
    kernel.run(define)
    assert "changed" not in kernel.run("print(panel.text)")
    kernel.run(define + " * 2")
    assert "classify changed after superstep 0 ran." in kernel.run("print(panel.text)")
    kernel.run("panel.redo(); assert panel.before_redo.run_id != panel.run_id")
    assert "changed" not in kernel.run("print(panel.text)")


def test_panels_start_no_threads(kernel: Kernel) -> None:
    show = "one = stepper(bouncing(), 0, name='panel'); one.step(); display(one)"
    kernel.run(show)
    kernel.run("import threading; before = threading.active_count()")
    for _ in range(5):
        kernel.run(f"for _ in range(4):\n    {show}; one.close()")
    assert int(kernel.run("print(threading.active_count() - before)")) <= 1
