"""An agent node in a stepper: the rounds of its loop, and messages to it while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentExecutor,
    AgentLoopMiddleware,
    Call,
    MessageInjectionMiddleware,
    ScriptedChatClient,
    WorkflowBuilder,
    tool,
)
from agentbench.notebook import Stepper, stepper
from agentbench.notebook.stepping.view.tabs import node_displays
from tests.notebook.test_stepper_page import WAIT_S, Wire, say, status_is, wire

__all__ = ["wire"]  # a fixture


def stepper_of(*answers: Any, middleware: list[Any]) -> Stepper:
    agent = Agent(ScriptedChatClient([*answers]), name="writer", middleware=middleware)
    return stepper(WorkflowBuilder(start_executor=AgentExecutor(agent), name="flow").build(), "Write a poem.")


def test_the_node_tab_shows_each_round_of_a_loop_above_the_facts(wire: Wire) -> None:
    loop = AgentLoopMiddleware(max_iterations=2, message="Make it <b>better</b>.")
    panel = stepper_of("A draft.", "A poem.", middleware=[loop])
    panel.run()

    (above, caption, _, html), (_, below, *_) = node_displays(panel._session.model, "writer")

    assert above < 0
    assert [caption, below] == ["2 rounds, superstep 0", "conversation with the last round, superstep 0"]
    places = [html.index(text) for text in ("Round 1 of 2", "A draft.", "Round 2 of 2", "follow-up")]
    assert places == sorted(places)
    assert "A poem." in html
    assert "Make it &lt;b&gt;better" in html
    assert "<b>better" not in html
    panel.close()


def test_the_rounds_have_the_verdicts_of_their_judge_and_only_the_last_is_open_if_they_are_long(wire: Wire) -> None:
    verdicts = ['{"is_met": false, "reason": "It <i>rhymes</i>."}', '{"is_met": true, "reason": "It is good."}']
    panel = stepper_of(
        "A draft. " * 99, "A poem. " * 99, middleware=[AgentLoopMiddleware.with_judge(ScriptedChatClient(verdicts))]
    )
    panel.run()

    (_, _, _, html), _ = node_displays(panel._session.model, "writer")
    _, first, second = html.split("<details")

    assert "✗ not accepted" in first
    assert "It &lt;i&gt;rhymes" in first
    assert not first.startswith(" open")
    assert "✓ accepted" in second
    assert "It is good." in second
    assert second.startswith(" open")
    panel.close()


def test_an_agent_without_a_loop_has_no_rounds(wire: Wire) -> None:
    panel = stepper_of("A poem.", middleware=[])
    panel.run()

    assert [caption for _, caption, *_ in node_displays(panel._session.model, "writer")] == [
        "conversation, superstep 0"
    ]
    panel.close()


@pytest.fixture
def busy(wire: Wire) -> Iterator[tuple[Stepper, ScriptedChatClient, Callable[[], None]]]:
    """A panel whose agent is in a model call, its client, and a function that lets it continue to the next call."""
    entered, go_on = threading.Event(), threading.Event()

    @tool
    def look() -> str:
        entered.set()
        assert go_on.wait(WAIT_S)
        return "seen"

    client = ScriptedChatClient([Call("look"), "A poem.", "Another."])
    agent = Agent(client, name="writer", tools=[look], middleware=[MessageInjectionMiddleware()])
    panel = stepper(WorkflowBuilder(start_executor=AgentExecutor(agent), name="flow").build(), "Write a poem.")
    _ = panel._screen.widget
    say(panel, "press", name="run")
    assert entered.wait(WAIT_S)
    yield panel, client, go_on.set
    go_on.set()
    panel.close()


def test_a_message_typed_while_an_agent_runs_reaches_its_next_model_call(busy: Any, wire: Wire) -> None:
    panel, client, go_on = busy
    view = wire.last("top", "view", lambda message: bool(message["listening"]))
    assert view["listening"] == [("writer", "writer")]

    say(panel, "enqueue", executor="writer", text="About <cats>.")
    wire.last("log", "log", lambda message: any("About <cats>." in line for _, line in message["lines"]))
    go_on()

    wire.last("top", "view", status_is("finished"))
    assert wire.last("top", "view")["listening"] == []
    assert [message.text for message in client.calls[-1].messages if message.role == "user"] == [
        "Write a poem.",
        "About <cats>.",
    ]


@pytest.mark.parametrize(
    "fields",
    [{"executor": "nobody", "text": "hi"}, {"executor": "writer", "text": " "}, {"executor": "writer", "text": 5}, {}],
)
def test_a_message_to_nobody_or_without_text_changes_nothing(busy: Any, wire: Wire, fields: dict[str, Any]) -> None:
    panel, client, go_on = busy
    say(panel, "enqueue", **fields)
    go_on()

    wire.last("top", "view", status_is("finished"))
    assert [message.text for message in client.calls[-1].messages if message.role == "user"] == ["Write a poem."]


def test_an_agent_without_the_middleware_gets_no_field(wire: Wire) -> None:
    panel = stepper_of("A poem.", middleware=[])
    _ = panel._screen.widget
    say(panel, "press", name="run")
    wire.last("top", "view", status_is("finished"))

    assert not any(message.get("listening") for _, message in wire.sent)
    panel.close()
