"""Runs that are kept as tests: what the tests contain, what they notice, and how they are rewritten."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import agentbench
from agentbench import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Executor,
    InMemoryCheckpointStorage,
    Message,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from agentbench.batch import run_many
from agentbench.cli import main
from agentbench.exceptions import KeepTestError, UnrecordedCallError
from agentbench.revisions.kept_tests import keep
from agentbench.revisions.kept_tests.cells import source_of_names
from agentbench.revisions.kept_tests.origin import Cells
from agentbench.stategraph import END, START, AgentState, StateGraph, interrupt
from agentbench.testing import replay
from tests.parts.errors import raises

LIBRARY = Path(agentbench.__file__).parents[1]

CELLS = [
    """
from dataclasses import dataclass
import uuid, datetime
from agentbench import Agent, Executor, WorkflowBuilder, WorkflowContext, handler, response_handler, tool
from agentbench.testing import OfflineChatClient
""",
    "%pprint\nunused = open",
    '''
@dataclass
class Order:
    item: str
    count: int

@tool
def price(item: str) -> str:
    """Return the price of an item."""
    return f"{item} costs 4"

agent = Agent(OfflineChatClient(), tools=[price])
LIMIT = 2
''',
    """
class Read(Executor):
    @handler
    async def read(self, order: Order, ctx: WorkflowContext[str]) -> None:
        # Ids and times differ from run to run.
        ctx.set_state("id", str(uuid.uuid4()))
        ctx.set_state("at", datetime.datetime.now().isoformat())
        ctx.set_state("count", order.count)
        answer = await agent.run('/call price {"item": "%s"}' % order.item)
        found = answer.text.strip()
        await ctx.send_message(found)

class Check(Executor):
    @handler
    async def check(self, text: str, ctx: WorkflowContext[str]) -> None:
        answer = (await agent.run(f"Is this much: {text}")).text
        await ctx.request_info(f"{answer} Buy, {datetime.datetime.now()}?", bool)

    @response_handler
    async def decide(self, question: str, yes: bool, ctx: WorkflowContext[str]) -> None:
        if yes:
            await ctx.send_message("bought")

class End(Executor):
    @handler
    async def end(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{self.id}: {text}")

def is_bought(text):
    return text == "bought"
""",
    """
read, check, book, thank = Read("read"), Check("check"), End("book"), End("thank")
builder = WorkflowBuilder(start_executor=read)
builder.add_edge(read, check)
builder.add_edge(check, book, condition=is_bought)
builder.add_edge(check, thank)
shop = builder.build()
shop
""",
    'run = shop.start(Order("tea", 3))\nresult = await run.result()',
    "await run.respond(run.pending_requests[0], True)\nresult = await run.result()",
    'run.keep_as_test("test_kept.py")',
]
NOTEBOOK = f"""
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
sys.modules["__mp_main__"] = sys.modules["__main__"]  # as kernels have it
for cell in {CELLS!r}:
    shell.run_cell(cell, store_history=True).raise_error()
"""

BEHAVIOUR = {
    "prompt": ("Is this much: ", "Is that much: "),
    "parsing of an answer": ("answer.text.strip()", "answer.text.strip()[:5]"),
    "condition": ('text == "bought"', 'text != "bought"'),
    "extra executor": ("shop = builder", 'builder.add_edge(check, End("extra"))\nshop = builder'),
    "order": ("(check, thank)", "(book, thank)"),
    "text of an output": ("{self.id}: {text}", "{self.id} - {text}"),
    "key of the state": ('"count"', '"number"'),
    "result of a tool": ("costs 4", "costs 5"),
    "handling of an answer": ("if yes:", "if not yes:"),
    "exception": ("found = answer", "raise ValueError('no')\n        found = answer"),
    "type of an answer": ('()}?", bool)', '()}?", str)'),
    "value of the state": ("order.count)", "order.count + 1)"),
}
LOOKS = {
    "nothing": ("", ""),
    "comment": ("# Ids and times differ from run to run.", "# Another sentence."),
    "variable": ("found", "text"),
    "name of a function": ("is_bought", "was_bought"),
    "name of a builder": ("builder", "b"),
}


def run_python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(LIBRARY), "HOME": str(cwd), "IPYTHONDIR": str(cwd / "ipython")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The test that a notebook has kept."""
    folder = tmp_path_factory.mktemp("notebook")
    done = run_python("-c", NOTEBOOK, cwd=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return (folder / "test_kept.py").read_text()


@pytest.fixture(scope="module")
def outcomes(kept: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    """Whether pytest passes the test after each change, in a folder that has nothing but these files."""
    folder = tmp_path_factory.mktemp("changed")
    changes = BEHAVIOUR | LOOKS
    source, begin, expected = kept.partition("def test_kept")
    for number, (before, after) in enumerate(changes.values()):
        assert before in source
        (folder / f"test_{number}.py").write_text(source.replace(before, after) + begin + expected)
    done = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=found.xml", cwd=folder)
    assert done.returncode == 1, done.stdout
    failed = {
        case.get("classname"): len(case) > 0 for case in ET.parse(folder / "found.xml").getroot().iter("testcase")
    }
    return {name: not failed[f"test_{number}"] for number, name in enumerate(changes)}


def test_a_kept_test_contains_only_the_statements_that_the_workflow_needs(kept: str) -> None:
    assert "class Order:" in kept
    assert "# Ids and times differ" in kept
    assert "builder.add_edge(check, thank)" in kept
    assert "unused" not in kept
    assert "shop.start(" not in kept
    assert "LIMIT" not in kept


@pytest.mark.parametrize("change", BEHAVIOUR)
def test_a_kept_test_fails_when_the_behaviour_changes(change: str, outcomes: dict[str, bool]) -> None:
    assert not outcomes[change]


@pytest.mark.parametrize("change", LOOKS)
def test_a_kept_test_passes_when_only_names_and_comments_change(change: str, outcomes: dict[str, bool]) -> None:
    assert outcomes[change]


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        (["def f(): return zzz"], ["zzz"]),
        (["zzz = await load()", "f = zzz + yyy"], ["yyy", "zzz"]),
        (["zzz = get_ipython().getoutput('ls')", "f = zzz"], ["get_ipython"]),
        (["get_ipython().run_cell_magic('executor', '', 'def f(): ...')"], ["f"]),
    ],
)
def test_names_that_no_cell_defines_are_listed(cells: list[str], missing: list[str]) -> None:
    with raises(KeepTestError, names=missing):
        source_of_names(["f"], cells)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["x = 1", "x = 2", "f = x"], "x = 2\nf = x"),
        (["x = 1", "f = x", "x = 2"], "x = 1\nf = x"),
        (["x = 1; y = 2", "f = lambda: x", "x = 3"], "f = lambda: x\nx = 3"),
        (["x = [1]", "x.append(y)", "y = 3", "x.show()", "f = x"], None),
        (["y = 3", "x = [1]", "x.append(y)", "x.show()", "f = x"], "y = 3\nx = [1]\nx.append(y)\nf = x"),
        (["x = 1", "x = x + 1", "f = x"], "x = 1\nx = x + 1\nf = x"),
        (["x = 1", "x += 1", "f = x"], "x = 1\nx += 1\nf = x"),
        (["x = [1]", "_ = x.append(2)", "f = x"], "x = [1]\n_ = x.append(2)\nf = x"),
        (["x = list", "y = x().append(2)", "f = x"], "x = list\nf = x"),
        (["d = {}", "d['a'] = 1", "f = d"], "d = {}\nd['a'] = 1\nf = d"),
        (["x = 7", "f = [x for x in range(3)]"], "f = [x for x in range(3)]"),
        (["import json, os", "from math import *", "f = sqrt(4)"], "from math import *\nf = sqrt(4)"),
        (["this is no Python", "f = 1"], "f = 1"),
    ],
)
def test_the_source_defines_names_as_the_cells_did(cells: list[str], expected: str | None) -> None:
    if expected is None:
        with raises(KeepTestError, names=["y"]):
            source_of_names(["f"], cells)
    else:
        assert source_of_names(["f"], cells) == expected


class Shout(Executor):
    @handler
    async def shout(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        if text == "fail":
            raise ValueError("too quiet")
        await ctx.yield_output(text.upper())


class Pass(Executor):
    @handler
    async def send_on(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)


class Slow(Executor):
    """Yields after the other ones of its superstep in every second run."""

    runs = 0

    @handler
    async def yield_late(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        Slow.runs += 1
        for _ in range(Slow.runs % 2 * 50):
            await asyncio.sleep(0)
        await ctx.yield_output(self.id)


class ReadMessages(Executor):
    @handler
    async def read(self, messages: list[Message], ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(messages[0].text)


class AskTwice(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(f"Print {text}?", bool)
        await ctx.request_info(f"Publish {text}?", bool)

    @response_handler
    async def decide(self, question: str, yes: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question} {yes}")


def make_asking() -> Workflow:
    return WorkflowBuilder(start_executor=AskTwice("ask")).build()


def make_workflow() -> Workflow:
    return WorkflowBuilder(start_executor=Shout("shout")).build()


OTHER = WorkflowBuilder(start_executor=Shout(id="other")).build()


def make_uneven() -> Workflow:
    start, one, two = Pass("start"), Slow("one"), Slow("two")
    return WorkflowBuilder(start_executor=start).add_fan_out_edges(start, [one, two]).build()


def make_reader() -> Workflow:
    return WorkflowBuilder(start_executor=ReadMessages("read")).build()


async def run_of(make: Any, message: Any) -> Any:
    run = make().start(message)
    with suppress(ValueError):
        await run.result()
    return run


HERE = f"{__name__}:make_workflow"


async def test_a_run_that_failed_is_kept_with_its_error(tmp_path: Path) -> None:
    path = (await run_of(make_workflow, "fail")).keep_as_test(tmp_path / "test_fails.py", HERE)
    assert "assert replayed.error == 'ValueError: too quiet'" in path.read_text()
    run_kept(path)


async def test_the_order_of_executors_that_run_side_by_side_does_not_matter(tmp_path: Path) -> None:
    Slow.runs = 0
    path = (await run_of(make_uneven, "hi")).keep_as_test(tmp_path / "test_uneven.py", f"{__name__}:make_uneven")
    Slow.runs = 1
    run_kept(path)


class Topic(AgentState):
    topic: str = ""


def ask_person(state: Topic) -> dict[str, Any]:
    return {"topic": f"{state.topic}, {interrupt({'which': state.topic})}"}


topics = StateGraph(Topic).add_node("ask", ask_person).add_edge(START, "ask").add_edge("ask", END).compile()


async def test_a_run_of_a_state_graph_is_kept_with_the_answers_to_its_interrupts(tmp_path: Path) -> None:
    run = await topics.astart({"topic": "rain"})
    await run.result()
    await run.respond(run.pending_requests[0], "heavy")
    await run.result()
    path = run.keep_as_test(tmp_path / "test_topic.py")
    assert f"from {__name__} import topics" in path.read_text()
    assert "'topic': 'rain, heavy'" in path.read_text()
    await asyncio.to_thread(run_kept, path)


async def test_messages_of_the_input_are_written_as_source(tmp_path: Path) -> None:
    run = await run_of(make_reader, [Message("user", ["hello"])])
    path = run.keep_as_test(tmp_path / "test_messages.py", f"{__name__}:make_reader")
    assert "Message.from_dict(" in path.read_text()
    run_kept(path)


async def test_a_notebook_gets_one_more_cell_each_time(tmp_path: Path) -> None:
    run = await run_of(make_workflow, "hi")
    for _ in range(2):
        run.keep_as_test(tmp_path / "kept.ipynb", HERE)
    cells = json.loads((tmp_path / "kept.ipynb").read_text())["cells"]
    assert len({cell["id"] for cell in cells}) == 2
    exec("".join(cells[1]["source"]), {})


async def test_nothing_is_written_when_a_run_cannot_be_kept(tmp_path: Path) -> None:
    run = await run_of(make_workflow, "hi")
    path = tmp_path / "test_x.py"
    for wanted in (None, "nowhere:workflow", ":make_workflow", f"{__name__}:nothing", "nothing", f"{__name__}:OTHER"):
        with raises(KeepTestError):
            run.keep_as_test(path, wanted)
    with raises(KeepTestError):
        run.keep_as_test(tmp_path / "x.py", HERE)
    with raises(KeepTestError):
        (await run_of(make_workflow, "api_key=s3cr3t-s3cr3t")).keep_as_test(path, HERE)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        'environ["API_KEY"] = "hunter2"',
        'environ.setdefault("API_KEY", "hunter2")',
        'user, password = "me", "hunter2"',
        'api_key = environ.get("API_KEY") or "hunter2"',
        'url = "postgres://me:hunter2@host/db"',
        "keys = ['sk-proj-hunter2-hunter2-hunter2']",
        "keys = []  # was ghp_hunter2hunter2hunter2",
        '"""\\nold: ghp_hunter2hunter2hunter2\\n"""',
    ],
)
async def test_a_secret_in_the_source_is_found_and_not_repeated(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await run_of(make_workflow, "hi")
    source = f"from os import environ\n{line}\nfrom {__name__} import make_workflow"
    monkeypatch.setattr(keep, "source_of_names", lambda names, cells: source)
    monkeypatch.setattr(keep, "cells_of_notebook", lambda: Cells([source], {"make_workflow": make_workflow}))
    with pytest.raises(KeepTestError, match="would contain a secret") as caught:
        run.keep_as_test(tmp_path / "test_x.py", "make_workflow")
    assert "hunter2" not in str(caught.value)
    assert os.listdir(tmp_path) == []


async def test_an_existing_test_is_replaced_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "test_x.py"
    path.write_text("mine")
    run = await run_of(make_workflow, "hi")
    with raises(KeepTestError):
        run.keep_as_test(path, HERE)
    assert path.read_text() == "mine"
    run.keep_as_test(path, HERE, overwrite=True)
    run_kept(path)


class Live(BaseChatClient[Any]):
    """A model somewhere else, which answers each request with another number."""

    calls = 0

    async def _inner_get_response(self, **_: Any) -> Any:
        Live.calls += 1
        return ChatResponse(messages=[Message("assistant", [f"answer {Live.calls}"])])


INSTRUCTIONS = ["Be brief."]


def make_agents() -> Workflow:
    agent = Agent(Live(), name="writer", id="writer", instructions=INSTRUCTIONS[-1])
    return WorkflowBuilder(start_executor=agent).build()


AGENTS = f"{__name__}:make_agents"


async def test_model_calls_are_kept_in_a_cassette_and_a_new_request_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_agents().start("hi", options=RunOptions(record=True))
    await run.result()
    path = run.keep_as_test(tmp_path / "test_agent.py", AGENTS)
    count = Live.calls
    run_kept(path)
    monkeypatch.setattr(f"{__name__}.INSTRUCTIONS", ["Be long."])
    with raises(UnrecordedCallError, executor_id="writer"):
        run_kept(path)
    assert Live.calls == count


async def test_each_cell_of_a_notebook_has_a_recording_of_its_own(tmp_path: Path) -> None:
    for text in ("hi", "hello"):
        run = make_agents().start(text, options=RunOptions(record=True))
        await run.result()
        run.keep_as_test(tmp_path / "kept.ipynb", AGENTS)
    sources = ["".join(cell["source"]) for cell in json.loads((tmp_path / "kept.ipynb").read_text())["cells"]]
    for source, name in zip(sources, ("kept.jsonl", "kept-2.jsonl"), strict=True):
        exec(source.replace(repr(name), repr(str(tmp_path / name))), {})


def make_two_agents() -> Workflow:
    first = Agent(Live(), name="first", id="first")
    last = Agent(Live(), name="last", id="last", instructions=INSTRUCTIONS[-1])
    return WorkflowBuilder(start_executor=first).add_edge(first, last).build()


async def test_a_redone_run_is_kept_from_its_input_without_a_model_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RunOptions(record=True)
    run = make_two_agents().start("hi", checkpoint_storage=InMemoryCheckpointStorage(), options=options)
    await run.result()
    monkeypatch.setattr(f"{__name__}.INSTRUCTIONS", ["Be polite."])
    redone = await run.redo(workflow=make_two_agents(), new_calls="allow")
    await redone.result()
    calls = Live.calls
    kept = redone.keep_as_test(tmp_path / "test_redone.py", f"{__name__}:make_two_agents")
    run_kept(kept)
    assert Live.calls == calls
    edited = await run.fork(run.checkpoints[0], messages={"first": ["another message"]})
    with raises(KeepTestError):
        edited.keep_as_test(tmp_path / "test_edited.py", f"{__name__}:make_two_agents")


async def test_a_redone_run_is_kept_under_the_variable_that_holds_its_new_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RunOptions(record=True)
    run = make_agents().start("hi", checkpoint_storage=InMemoryCheckpointStorage(), options=options)
    await run.result()
    monkeypatch.setattr(f"{__name__}.INSTRUCTIONS", ["Be polite."])
    flow = make_agents()
    redone = await run.redo(workflow=flow.clone(), new_calls="allow")
    await redone.result()
    cell = f"from {__name__} import make_agents\nold = None\nflow = make_agents()"
    monkeypatch.setattr(keep, "cells_of_notebook", lambda: Cells([cell], {"old": run.workflow, "flow": flow}))
    run_kept(redone.keep_as_test(tmp_path / "test_redone.py"))


@pytest.mark.parametrize("also_answered", [False, True])
async def test_a_withdrawal_is_repeated_by_the_kept_test(tmp_path: Path, also_answered: bool) -> None:
    run = await run_of(make_asking, "it")
    if also_answered:
        await run.respond(run.pending_requests[0], True)
    await run.cancel_pending_requests()
    await run.result()

    path = run.keep_as_test(tmp_path / "test_asking.py", f"{__name__}:make_asking")

    assert "from agentbench.revisions import Withdrawn\n" in path.read_text()
    await asyncio.to_thread(run_kept, path)


async def test_a_redone_run_is_kept_with_the_answers_that_were_given_again(tmp_path: Path) -> None:
    run = await topics.astart({"topic": "rain"})
    await run.result()
    await run.respond(run.pending_requests[0], "heavy")
    await run.result()
    redone = await run.redo(since=0, workflow=topics)
    await redone.result()
    path = redone.keep_as_test(tmp_path / "test_topic.py")
    assert "'heavy'" in path.read_text()
    await asyncio.to_thread(run_kept, path)


async def test_model_calls_that_were_not_recorded_are_an_error(tmp_path: Path) -> None:
    with raises(KeepTestError, names=["Live"]):
        (await run_of(make_agents, "hi")).keep_as_test(tmp_path / "test_x.py", AGENTS)


def test_a_replay_without_a_cassette_calls_no_model() -> None:
    count = Live.calls
    with raises(UnrecordedCallError, executor_id="writer"):
        replay(make_agents, input="hi")
    assert Live.calls == count


def test_an_answer_that_the_workflow_does_not_ask_for_fails() -> None:
    with pytest.raises(AssertionError, match="did not ask"):
        replay(make_workflow, input="hi", answers=[("shout", "Really?", True)])


def test_rows_of_a_batch_become_tests(tmp_path: Path) -> None:
    batch = run_many(make_workflow(), ["hi", "fail"], keys=["Row 1", "row-2"], into=tmp_path / "rows.db").result()
    kept = batch.keep_as_tests(["Row 1", "row-2"], tmp_path / "kept", HERE)
    assert [path.name for path in kept] == ["test_row_1.py", "test_row_2.py"]
    for path in kept:
        run_kept(path)
    batch.close()


def test_rows_that_give_another_result_or_would_call_a_model_are_not_kept(tmp_path: Path) -> None:
    class Count(Executor):
        runs = 0

        @handler
        async def count(self, text: str, ctx: WorkflowContext[str, int]) -> None:
            Count.runs += 1
            await ctx.yield_output(Count.runs)

    counting = run_many(WorkflowBuilder(start_executor=Count("count")).build(), ["hi"], keys=["a"]).result()
    agents = run_many(make_agents(), ["hi"], keys=["a"]).result()
    count = Live.calls
    for batch, names in ((counting, ["a"]), (agents, ["Live"])):
        with raises(KeepTestError, names=names):
            batch.keep_as_tests(["a"], tmp_path / "kept", HERE)
        batch.close()
    assert not (tmp_path / "kept").exists()
    assert Live.calls == count


async def test_the_command_shows_the_difference_and_rewrites_only_the_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (await run_of(make_workflow, "hi")).keep_as_test(tmp_path / "test_x.py", HERE)
    right = path.read_text()
    wrong = right.replace("['HI']", "[\n        'ü',\n        'HO',\n    ]")
    path.write_text(wrong)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert main(["tests", "update", str(path)]) == 1
    assert path.read_text() == wrong
    assert "['ü', 'HO']" in capsys.readouterr().out
    (tmp_path / "test_latin.py").write_bytes(b"# coding: latin-1, \xfc")
    assert main(["tests", "update", str(tmp_path), "--yes"]) == 0
    assert path.read_text() == right
    assert main(["tests", "update", str(tmp_path)]) == 0
    path.write_text(right + "(")
    assert main(["tests", "update", str(tmp_path)]) == 1
    assert "test_x.py is not valid Python" in capsys.readouterr().err


def run_kept(path: Path) -> None:
    """Run a kept test in this process."""
    namespace: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
    exec(compile(path.read_text(), path, "exec"), namespace)
    namespace[path.stem]()
