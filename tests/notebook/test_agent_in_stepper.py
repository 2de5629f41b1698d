"""An agent node in a stepper: the rounds of its loop, and messages to it while it runs."""

from __future__ import annotations

from typing import Any

from agentbench import (
    Agent,
    AgentExecutor,
    AgentLoopMiddleware,
    ScriptedChatClient,
    WorkflowBuilder,
)
from agentbench.notebook import Stepper, stepper
from agentbench.notebook.stepping.view.tabs import node_displays
from tests.notebook.test_stepper_page import Wire, wire

__all__ = ["wire"]  # a fixture


def stepper_of(*answers: Any, middleware: list[Any]) -> Stepper:
    agent = Agent(ScriptedChatClient([*answers]), name="writer", middleware=middleware)
    return stepper(WorkflowBuilder(start_executor=AgentExecutor(agent), name="flow").build(), "Write a poem.")


def test_the_node_tab_shows_each_round_of_a_loop(wire: Wire) -> None:
    loop = AgentLoopMiddleware(max_iterations=2, message="Make it <b>better</b>.")
    panel = stepper_of("A draft.", "A poem.", middleware=[loop])
    panel.run()

    displays = {caption: html for _, caption, _, html in node_displays(panel._session.model, "writer")}

    assert list(displays) == ["conversation, superstep 0", "round 1 of 2", "round 2 of 2"]
    assert "A draft." in displays["round 1 of 2"]
    assert "A poem." in displays["round 2 of 2"]
    assert "Make it &lt;b&gt;better" in displays["round 2 of 2"]
    assert "<b>better" not in displays["round 2 of 2"]
    panel.close()


def test_an_agent_without_a_loop_has_no_rounds(wire: Wire) -> None:
    panel = stepper_of("A poem.", middleware=[])
    panel.run()

    assert [caption for _, caption, *_ in node_displays(panel._session.model, "writer")] == [
        "conversation, superstep 0"
    ]
    panel.close()
