"""`runs`: the past runs in a storage, by code and as its page drives it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.errors import raises

pytest.importorskip("anywidget")

from agentbench import (
    AgentState,
    Executor,
    InMemoryCheckpointStorage,
    StateGraph,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
    response_handler,
    run_sync,
)
from agentbench._clock import CountingIds, TickingClock, set_runtime_defaults
from agentbench.notebook import RunList, Stepper, runs
from agentbench.notebook.run_list.page import RunListPanel
from agentbench.stategraph import END, START
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_bundle


class Ask(Executor):
    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        ctx.set_state("topic", text)
        ctx.set_state("api_key", "sk-planted")
        await ctx.request_info(text, str)

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{asked} {answer}")


def asking(name: str = "asking") -> Any:
    return WorkflowBuilder(start_executor=Ask("ask"), name=name).build()


@pytest.fixture
def storage() -> Iterator[InMemoryCheckpointStorage]:
    """Two runs: the first one is over, the second one asks."""
    before = set_runtime_defaults(clock=TickingClock(), ids=CountingIds())
    made = InMemoryCheckpointStorage()
    for text in ("cats", "dogs"):
        run = asking().start(text, checkpoint_storage=made)
        run_sync(run.result())
        if text == "cats":
            run_sync(run.respond(run.pending_requests[0], "yes"))
            run_sync(run.result())
    yield made
    set_runtime_defaults(clock=before.clock, ids=before.ids)


class Page:
    def __init__(self, shown: RunList) -> None:
        self.panel: RunListPanel = shown.widget.children[0]
        self.sent: list[dict[str, Any]] = []
        self.panel.send = self.sent.append
        self.say("ready")

    def say(self, kind: str, **more: Any) -> None:
        self.panel._handle_custom_msg({"kind": kind, "view": "v", **more}, [])


def test_the_latest_run_is_first_with_its_status_and_open_questions(storage):
    shown = runs(storage)
    assert [(each.chain, each.supersteps, each.status, each.open_questions) for each in shown.rows] == [
        ("asking", 1, "waiting for an answer", 1),
        ("asking", 2, "finished", 0),
    ]
    assert repr(shown) == "RunList(2 runs)"
    assert [line.split()[:2] for line in shown.text.splitlines()[2:]] == [["asking", "run-2"], ["asking", "run-1"]]


def test_a_run_of_the_workflow_opens_in_a_stepper_that_goes_on_with_it(storage):
    shown = runs(storage, asking())
    panel = shown.open(shown.rows[0].run_id)
    assert isinstance(panel, Stepper)
    panel.respond(panel.pending[0], "no")
    panel.run()
    assert panel.result is not None
    assert panel.result.outputs == ["dogs no"]
    panel.close()
    shown.refresh()
    assert [each.status for each in shown.rows] == ["finished", "waiting for an answer", "finished"]


def test_a_run_of_another_workflow_opens_for_reading(storage):
    other = WorkflowBuilder(start_executor=Ask("other"), name="asking").build()
    for shown in (runs(storage), runs(storage, other)):
        checkpoint = shown.open(shown.rows[0].run_id)
        assert isinstance(checkpoint, WorkflowCheckpoint)
        assert checkpoint.state["topic"] == "dogs"
    with raises(KeyError, "run-1"):
        runs(storage).open("no-such-run")


def test_runs_of_a_compiled_graph_open_in_a_stepper():
    class Count(AgentState):
        n: int = 0

    graph = StateGraph(Count, name="count").add_node("add", lambda state: {"n": state.n + 1})
    app = graph.add_edge(START, "add").add_edge("add", END).compile()
    app.invoke({"messages": "go"}, {"thread_id": "t1"})
    shown = runs(app.storage, app)
    panel = shown.open(shown.rows[0].run_id)
    assert isinstance(panel, Stepper)
    panel.close()


def test_a_click_shows_the_stepper_below_or_the_checkpoint_and_closes_the_one_before(storage):
    shown = runs(storage, asking())
    page = Page(shown)
    assert [row["opens"] for row in page.sent[0]["rows"]] == ["stepper", "stepper"]
    page.say("open", id="run-2")
    first = shown._opened
    assert len(shown.widget.children) == 2
    page.say("open", id="run-1")
    assert (first.status, len(shown.widget.children)) == ("closed", 2)
    reading = Page(runs(storage))
    reading.say("open", id="run-2")
    assert "dogs" in reading.sent[-1]["html"]
    assert "sk-planted" not in json.dumps(reading.sent)
    shown.close()
    shown.close()
    assert shown._opened is None


def test_hostile_names_are_inert_and_no_text_is_in_the_state_of_the_widget():
    storage = InMemoryCheckpointStorage()
    for attack in ATTACKS:
        if attack.strip():
            run_sync(asking(attack).run(attack, checkpoint_storage=storage))
    shown = runs(storage)
    check_bundle(shown._card.bundle())
    page = Page(shown)
    page.say("open", id=shown.rows[0].run_id)
    check_bundle({"text/html": page.sent[-1]["html"]})
    assert shown.rows[0].run_id not in json.dumps(page.panel.get_state(), default=str)
    for sign in ("http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "eval("):
        assert sign not in RunListPanel._esm.replace("default-src", "")


def test_an_empty_storage_has_no_runs():
    shown = runs(InMemoryCheckpointStorage())
    assert (shown.rows, shown.text) == ([], "Runs: 0 runs")


def test_a_fork_does_not_take_the_runs_of_its_original():
    made = InMemoryCheckpointStorage()
    graph = StateGraph(AgentState, name="g").add_node("n", lambda state: {}).add_edge(START, "n").add_edge("n", END)
    compiled = graph.compile(made)
    compiled.invoke("one", {"thread_id": "t"})
    copy = compiled.fork({"thread_id": "t"})
    compiled.invoke("two", copy)
    assert sorted(each.chain for each in runs(made).rows) == ["g/t", "g/t~1"]
