"""Threads and time travel in every storage, each opened anew between the calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from agentbench.stategraph import (
    START,
    AgentState,
    Message,
    NodeError,
    StateGraph,
    ThreadBusyError,
    append_items,
    interrupt,
)
from tests.checkpoints.test_all_storages import make  # noqa: F401 - the fixture of all storages
from tests.parts.errors import raises

THREAD = {"thread_id": "a/b: ü"}


class Finding(BaseModel):
    id: str
    found: bool = True


class Report(AgentState):
    notes: Annotated[list[str], operator.add] = []
    findings: Annotated[list[Finding], append_items] = []


@pytest.fixture
def app(make: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Any]:  # noqa: F811
    """Compiles the graph on the storage, which it opens anew."""
    fails, kind = [True], request.node.callspec.params["make"].__name__

    def flaky(state: Report) -> dict[str, Any]:
        if fails and fails.pop():
            raise RuntimeError("down")
        return {"notes": [f"answer: {interrupt('ok?', response_schema=str)}"]}

    def look(state: Report) -> dict[str, Any]:
        return {"notes": ["look"], "findings": [Finding(id="1")], "context": [Message.text_message("I looked.")]}

    def compiled(**settings: Any) -> Any:
        options = {"allowed_checkpoint_types": [f"{__name__}:Finding"]} if kind == "pickles" else {}
        graph = StateGraph(Report, name="report").add_node("look", look)
        graph.add_node("good", lambda state: {"notes": ["good"]}).add_node("flaky", flaky)
        graph.add_node("end", lambda state: {"notes": ["end"]}).add_edge(START, "look")
        graph.add_edge("look", "good").add_edge("look", "flaky").add_edge(["good", "flaky"], "end")
        return graph.compile(make(**options), **settings)

    return compiled


def test_a_thread_fails_goes_on_is_answered_read_edited_copied_and_deleted(app: Callable[..., Any]) -> None:
    with raises(NodeError, "down"):
        app().invoke("go", THREAD)
    assert app().get_state(THREAD).pending_writes == {"2:good:1": [("notes", ["good"])]}
    asked = app().invoke(None, THREAD)
    assert app().get_state(THREAD).interrupts[0].response_schema is str
    done = app().invoke({"resume": {asked.interrupts[0].id: "yes"}}, THREAD)
    assert done.state.notes == ["look", "good", "answer: yes", "end"]

    history = app().get_state_history(THREAD)
    assert history[0].values.findings == [Finding(id="1")]
    assert [message.text for message in history[0].values.context] == ["go", "I looked."]
    early = next(each for each in history if each.next == ("good", "flaky") and each.metadata["source"] == "step")

    replayed = app().invoke(None, early.config)
    assert (replayed.interrupts[0].id, replayed.state.notes) == (asked.interrupts[0].id, ["look"])
    copied = app().fork(early.config, values={"notes": ["edited"]})
    asked_again = app().invoke(None, copied)
    assert asked_again.state.notes == ["look", "edited"]
    app().update_state(copied, {"findings": [Finding(id="2", found=False)]})
    assert [each.id for each in app().get_state({"thread_id": copied["thread_id"]}).values.findings] == ["1", "2"]
    assert "notes" in str(app().diff(early.config, history[0].config))

    assert app().list_threads() == [THREAD["thread_id"], copied["thread_id"]]
    assert app().prune(THREAD, keep=1) > 0
    assert app().get_state(THREAD).interrupts
    assert app().delete_thread(THREAD) > 0
    assert app().list_threads() == [copied["thread_id"]]


async def test_of_two_writers_the_second_one_is_told(app: Callable[..., Any], request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["make"].__name__ == "plain":
        pytest.skip("A storage of six methods cannot compare and save in one step.")
    paused = app(interrupt_before=["good"])
    await paused.ainvoke("go", THREAD)
    run = await paused.astart(None, THREAD)
    await app().aupdate_state(THREAD, {"notes": ["meanwhile"]}, as_node="end")

    with pytest.raises(ThreadBusyError) as caught:
        await run.step()

    assert caught.value.thread_id == THREAD["thread_id"]
    assert (await app().aget_state(THREAD)).values.notes == ["look", "meanwhile"]
