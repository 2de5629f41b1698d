"""What a person sees of agents in a workflow, and of what happens in sub-workflows."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    Call,
    ScriptedChatClient,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    tool,
)
from agentbench.notebook import configure, draw, events_frame, stepper, timeline_frame, usage_frame
from agentbench.notebook.stepping.view.tabs import Sources, content_of
from agentbench.orchestrations import ConcurrentBuilder, GroupChatBuilder, SequentialBuilder
from agentbench.workflows.draw.shape import read_shape
from tests.notebook import graphs


@tool
def rain(city: str) -> str:
    """Rain of yesterday."""
    return f"3 mm in {city}"


@tool(approval_mode="always_require")
def pay(amount: int, api_key: str) -> str:
    """Pay."""
    return f"paid {amount}"


def a_critic() -> Agent:
    script = [Call("rain", {"city": "Bergen"}), "It rained 3 mm."]
    return Agent(ScriptedChatClient(script), "Check.", name="critic", tools=[rain])


def desk(critic: Any = None) -> Any:
    writer = Agent(ScriptedChatClient(["A draft about <b>rain</b>."]), "Write.", name="writer")
    critic = a_critic() if critic is None else critic
    return WorkflowBuilder(name="desk", start_executor=writer).add_edge(writer, critic).build()


def nested() -> Any:
    """A desk as a node of a workflow, which is a node of another one."""
    office = WorkflowExecutor(desk(), "office", allow_direct_output=True)
    house = WorkflowBuilder(name="house", start_executor=office).build()
    return WorkflowBuilder(name="street", start_executor=WorkflowExecutor(house, "house", True)).build()


@pytest.fixture
def finished() -> Any:
    stepped = stepper(desk(), "Write about rain")
    stepped.run()
    yield stepped
    stepped.close()


def tab(stepped: Any, name: str, node: str | None = None) -> Any:
    """What a tab displays, with this node selected."""
    sources = Sources(read_shape(stepped.workflow, expand=True), {}, selected=node)
    return content_of(name, stepped._session.model, sources)


def node_tab(stepped: Any, node: str) -> Any:
    return tab(stepped, "node", node)


def test_an_agent_node_shows_its_conversation_its_tool_calls_and_what_it_used(finished: Any) -> None:
    shown = node_tab(finished, "critic")
    facts = dict(shown.facts)
    assert (facts["model"], facts["tokens"], facts["tool calls"]) == ("scripted", "22 in, 6 out", "1")
    [(_, _, media, html)] = shown.displays
    assert media == "text/html"
    for part in ("Write about rain", "A draft about &lt;b&gt;rain", "rain(city=", "3 mm in Bergen", "It rained 3 mm."):
        assert part in html
    assert "<b>rain" not in html


def test_only_an_agent_with_a_call_to_approve_is_drawn_as_one_that_asks() -> None:
    @tool(approval_mode="always_require")
    def publish(title: str) -> str:
        """Print it."""
        return title

    asking = Agent(ScriptedChatClient([]), "Publish.", name="printer", tools=[publish])
    shown = draw(desk(asking)).text.splitlines()[1:]
    assert shown == ["writer (start, output) -> printer", "printer (output, asks a person)"]
    assert "asks a person" not in draw(desk()).text


def test_agents_of_patterns_are_drawn_as_asking_only_where_they_have_a_reason_to() -> None:
    def agents() -> list[Agent]:
        return [Agent(ScriptedChatClient([]), name=name) for name in ("writer", "critic")]

    for builder in (SequentialBuilder, ConcurrentBuilder):
        plain: Any = builder(participants=agents())
        assert "asks a person" not in draw(plain.build()).text
        reviewed: Any = builder(participants=agents()).with_request_info(agents=["writer"])
        assert [node.id for node in draw(reviewed.build()).shape.nodes if "hitl" in node.kinds] == ["writer"]


def test_an_agent_that_only_listened_was_not_visited() -> None:
    talkers = [ScriptedChatClient(["Rain.", "Snow."]).as_agent(name=name) for name in ("a", "b")]
    team = GroupChatBuilder(participants=talkers, selection_func=lambda state: "a", max_rounds=2).build()
    made = stepper(team, "What falls?")
    made.run()
    visits = {name: dict(node_tab(made, name).facts)["visits"].split(",")[0] for name in ("a", "b")}
    badges = made._screen.state.badges
    made.close()
    assert visits == {"a": "2", "b": "0"}
    assert "b" not in badges
    assert badges["a"].startswith("2 visits")


def test_a_node_has_a_cost_once_its_model_has_a_price(finished: Any) -> None:
    assert "cost" not in dict(node_tab(finished, "critic").facts)
    configure(prices={"scripted": (1000, 10_000)})
    assert dict(node_tab(finished, "critic").facts)["cost"] == "0.082"


def test_an_answer_is_one_text_however_many_pieces_were_streamed(finished: Any) -> None:
    screen = finished._screen.state
    assert "It rained 3 mm." in screen.banner.text
    assert [line.text for line in screen.log if line.text.startswith("output")] == [
        "output of writer: A draft about <b>rain</b>.",
        "output of critic: It rained 3 mm.",
    ]
    assert tab(finished, "output").title == "2 outputs, newest first"
    assert not [line for line in screen.log if line.kind == "warning"]


def test_tokens_are_counted_by_node_and_superstep(finished: Any) -> None:
    frame = usage_frame(finished)
    assert list(zip(frame.index, frame["tokens_in"], frame["tokens_out"], strict=True)) == [
        ((0, "writer", 1), 4, 4),
        ((1, "critic", 1), 22, 6),
    ]
    assert finished._screen.state.badges == {"writer": "8 tokens", "critic": "28 tokens"}


async def test_a_plain_run_reports_no_usage() -> None:
    assert "model_usage" not in {event.type for event in await desk().run("Write")}


def test_what_happens_in_sub_workflows_is_shown_at_any_depth() -> None:
    stepped = stepper(nested(), "Write about rain")
    stepped.step()
    screen = stepped._screen.state
    assert screen.states["house/office/critic"] == "done"
    assert screen.badges["house/office/critic"] == "28 tokens"
    facts = dict(node_tab(stepped, "house/office/critic").facts)
    assert facts["kind"] == "AgentExecutor (output)"
    assert (facts["visits"], facts["tokens"]) == ("1, the last in superstep 0", "22 in, 6 out")
    assert "in house/office, superstep 1: critic got 1 message" in [line.text for line in screen.log]
    assert list(usage_frame(stepped).index) == [(0, "house/office/writer", 1), (0, "house/office/critic", 1)]
    inside = [entry.name for entry in node_tab(stepped, "house/office").tree.entries if "inside" in entry.name]
    assert inside == ["inside, superstep 0", "inside, superstep 1"]
    events = events_frame(stepped)
    assert list(events[events["type"] == "model_usage"]["executor"]) == ["house/office/writer", "house/office/critic"]
    assert "'input_token_count': 22" in events[events["type"] == "model_usage"]["preview"].iloc[1]
    assert list(timeline_frame(stepped).loc[0].index)[:3] == ["house", "house/office", "house/office/writer"]
    outputs = [line.text for line in screen.log if line.text.startswith("output")]
    assert outputs == ["output of house: A draft about <b>rain</b>.", "output of house: It rained 3 mm."]
    assert "36 tokens" in screen.header.line
    stepped.close()


def test_a_request_for_approval_is_told_in_words_without_secrets() -> None:
    script = [Call("pay", {"amount": 5, "api_key": "sk-hidden-1234"}), "Paid."]
    payer = Agent(ScriptedChatClient(script), name="payer", tools=[pay])
    stepped = stepper(WorkflowBuilder(name="till", start_executor=payer).build(), "Pay")
    stepped.run()
    assert "payer asks to call pay with " in stepped.text
    assert "Content(" not in stepped.text
    assert "•••" in stepped.text
    assert "sk-hidden-1234" not in stepped.text
    request = stepped.pending[0]
    stepped.respond(request, request.data.to_function_approval_response(True))
    stepped.run()
    assert "output of payer: Paid." in [line.text for line in stepped._screen.state.log]
    stepped.close()


# ---- node content


def test_a_node_says_what_came_in_and_went_out_and_its_values_can_be_opened() -> None:
    class Unsteady(graphs.Step):
        tries = 0

        @handler
        async def go(self, message: str, ctx: WorkflowContext[str]) -> None:
            self.tries += 1
            if self.tries == 1:
                raise ConnectionError("not yet")
            await ctx.send_message(message)
            await ctx.send_message(f"{message}!")

    first, last = Unsteady("first", retries=1), graphs.Yield("last")
    panel = stepper(WorkflowBuilder(start_executor=first, name="flow").add_edge(first, last).build(), "x")
    panel.step()
    before, after = (node_tab(panel, name) for name in ("last", "first"))
    assert dict(before.facts)["visits"] == "0"
    assert [entry.value for entry in before.tree.entries] == [["x", "x!"]]
    facts = dict(after.facts)
    assert (facts["kind"], facts["visits"], facts["attempts"]) == (
        "Unsteady (start)",
        "1, the last in superstep 0",
        "2",
    )
    assert (facts["in"], facts["out"]) == ("1 message (str)", "2 messages (str)")
    entries = {entry.name: entry.value for entry in after.tree.entries}
    assert (entries["last input"], entries["last sent"]) == ("x", ["x", "x!"])
    assert "not yet" in str(entries["last warning"])
    panel.run()
    assert dict(node_tab(panel, "last").facts)["in"] == "2 messages (str)"
    panel.close()


def test_a_target_that_a_condition_did_not_choose_is_skipped() -> None:
    plan, search, draft = graphs.Step("plan"), graphs.Yield("search"), graphs.Yield("draft")
    builder = WorkflowBuilder(start_executor=plan).add_edge(plan, search, condition=graphs.is_spam)
    panel = stepper(builder.add_edge(plan, draft).build(), "x")
    panel.step(2)
    assert "search (output) [skipped]" in panel.text
    panel.close()
