"""`chat`: a conversation with an agent, a workflow or a graph, by code and as its page drives it."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parts.errors import raises

pytest.importorskip("anywidget")

from agentbench import (
    Agent,
    AgentSession,
    AgentState,
    Call,
    Executor,
    FileHistoryProvider,
    InMemoryCheckpointStorage,
    Message,
    ScriptedChatClient,
    StateGraph,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    run_sync,
    tool,
)
from agentbench.exceptions import install_command
from agentbench.notebook import Chat, chat
from agentbench.notebook.chat_panel.page import ChatPanel
from agentbench.orchestrations import HandoffBuilder, build_sequential
from agentbench.stategraph import END, START, interrupt
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import Elements, check_text

paid: list[int] = []


@tool(approval_mode="always_require")
def pay(amount: int, api_key: str = "") -> str:
    """Pay."""
    paid.append(amount)
    return f"{amount} paid"


@tool
def weather(day: str) -> str:
    """The weather."""
    return f"Fog on {day}."


def agent(*script: Any, **settings: Any) -> Agent:
    return Agent(ScriptedChatClient([*script]), name="desk", tools=[pay, weather], **settings)


def node(name: str, *script: Any) -> Agent:
    client = ScriptedChatClient([*script])
    return Agent(client, name=name, description=name, require_per_service_call_history_persistence=True)


def office(*answers: str) -> Any:
    desks = [node("switchboard", *[Call("handoff_to_refunds")] * 2), node("refunds", *answers)]
    return HandoffBuilder(participants=desks, name="office").with_start_agent(desks[0]).build()


def lines(talk: Chat) -> list[str]:
    return [" ".join(line.split()) for line in talk.text.splitlines()[1:]]


class Page:
    """One view of a chat, as the browser would drive it."""

    def __init__(self, talk: Chat) -> None:
        self.talk = talk
        self.panel: ChatPanel = talk.widget.children[0]
        self.sent: list[dict[str, Any]] = []
        self.panel.send = self.sent.append
        self.say("ready")

    def say(self, kind: str, value: Any = None) -> None:
        self.panel._handle_custom_msg({"kind": kind, "value": value, "view": "v"}, [])

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for message in self.sent:
            rows[message["start"] :] = message["rows"]
        return rows

    @property
    def texts(self) -> list[tuple[str, str]]:
        return [(row["who"], " ".join(part["text"] for part in row["parts"])) for row in self.rows]

    def until(self, condition: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not condition():  # noqa: ASYNC110 - what a page sees, not an event
                await asyncio.sleep(0.005)

        run_sync(wait(), timeout=30)


# ---- agents ---------------------------------------------------------------------------------------------------------


def test_an_agent_answers_in_one_session_with_its_tool_calls_folded():
    desk = agent(Call("weather", {"day": "Monday"}), "There was fog.", "As I said.")
    session = AgentSession()
    talk = chat(desk, session=session)
    assert (talk.status, desk.client.calls) == ("ready", [])
    talk.send("How was it?")
    talk.send("Sure?")
    assert lines(talk) == [
        "user How was it?",
        'desk weather(day="Monday") → Fog on Monday.',
        "desk There was fog.",
        "user Sure?",
        "desk As I said.",
    ]
    page = Page(talk)
    [call] = page.rows[1]["parts"]
    assert (call["kind"], call["text"], call["outcome"]) == ("call", 'weather(day="Monday")', "Fog on Monday.")
    assert [label for label, _ in call["folded"]] == ["arguments", "result"]
    assert [message.text for message in desk.client.calls[-1].messages][-1] == "Sure?"
    talk.close()


def test_a_stored_conversation_is_there_from_the_beginning():
    desk = agent("Fog.", "Yes.")
    session = desk.create_session()
    run_sync(desk.run("How was it?", session=session))
    talk = chat(desk, session=session)
    assert lines(talk) == ["user How was it?", "desk Fog."]


def test_a_page_sends_and_sees_the_answer_as_it_grows():
    page = Page(chat(agent("one two three")))
    page.say("send", "Count.")
    page.until(lambda: page.talk.turns == 1)
    page.until(lambda: not page.sent[-1]["busy"])
    assert page.texts == [("user", "Count."), ("desk", "one two three")]
    assert any(message["busy"] for message in page.sent)
    assert page.rows[-1]["fork"] == 0
    page.talk.close()


@pytest.mark.parametrize("value", [None, 5, "", "  ", ["x"]])
def test_a_page_that_sends_nonsense_is_ignored(value):
    page = Page(chat(agent()))
    for kind in ("send", "fork", "stop", "close", "unknown"):
        page.say(kind, value)
    assert (page.talk.status, page.talk.messages) == ("ready", [])


@pytest.mark.parametrize("approved", [True, False])
def test_a_call_that_needs_approval_has_a_form_and_runs_only_when_approved(approved):
    paid.clear()
    page = Page(chat(agent(Call("pay", {"amount": 7}), "Done.")))
    page.say("send", "Pay.")
    page.until(lambda: bool(page.talk.pending))
    page.until(lambda: page.sent[-1]["asks"])
    assert (page.talk.status, paid) == ("waiting for your answer", [])
    with raises(ValueError, "respond"):
        page.talk.send("Hurry!")
    page.until(lambda: bool(page.talk.widget.children[1].children))
    [form] = page.talk.widget.children[1].children
    press: dict[str, Any] = {"kind": "press", "action": "approve" if approved else "reject", "raw": {}, "view": "v"}
    form._handle_custom_msg(press, [])
    page.until(lambda: page.talk.status == "ready" and page.talk.turns == 2)
    assert paid == ([7] if approved else [])
    assert lines(page.talk)[-1] == "desk Done."
    assert ("7 paid" in page.talk.text) is approved
    page.talk.close()


def test_code_answers_with_true_and_other_values_are_refused():
    paid.clear()
    talk = chat(agent(Call("pay", {"amount": 7}), "Done."))
    talk.send("Pay.")
    [request] = talk.pending
    for wrong in (None, "yes", Message("user", ["yes"])):
        with raises(ValueError, "True or False"):
            talk.respond(request, wrong)
    with raises(ValueError, "no-such-id"):
        talk.respond("no-such-id", True)
    assert (paid, talk.pending) == ([], [request])
    talk.respond(request, True)
    assert paid == [7]


def test_a_fork_of_a_turn_has_a_copy_of_the_session_up_to_there():
    desk = agent("First.", "Second.", "Another second.", "Third.")
    talk = chat(desk)
    talk.send("1")
    talk.send("2")
    other = talk.fork(0)
    other.send("2, again")
    assert lines(other) == ["user 1", "desk First.", "user 2, again", "desk Another second."]
    assert [message.text for message in desk.client.calls[2].messages] == ["1", "First.", "2, again"]
    assert lines(talk) == ["user 1", "desk First.", "user 2", "desk Second."]
    talk.send("3")
    assert [message.text for message in desk.client.calls[3].messages] == ["1", "First.", "2", "Second.", "3"]
    with pytest.raises(IndexError):
        talk.fork(9)


def test_a_fork_copies_a_history_that_is_stored_in_files(tmp_path: Path):
    desk = agent("First.", "Second.", "Other.", context_providers=[FileHistoryProvider(tmp_path)])
    talk = chat(desk)
    talk.send("1")
    talk.send("2")
    talk.fork(0).send("2, again")
    assert [message.text for message in desk.client.calls[2].messages] == ["1", "First.", "2, again"]


def test_a_fork_on_a_page_is_a_second_panel_with_a_button_to_close_it():
    page = Page(chat(agent("First.", "Second.")))
    page.talk.send("1")
    page.say("fork", 0)
    page.until(lambda: len(page.talk.widget.children) == 3)
    [other] = page.talk._forks
    second = Page(other)
    assert second.sent[-1]["closable"]
    assert second.sent[-1]["title"] == "desk, fork of turn 1"
    second.say("close")
    assert (other.status, len(page.talk.widget.children)) == ("closed", 2)
    page.talk.close()


def test_a_failure_is_raised_to_code_shown_on_the_page_and_the_next_message_goes_on():
    def fail(messages: Any, options: Any) -> Any:
        msg = "no more paper"
        raise OSError(msg)

    page = Page(chat(agent("First.", fail, "Better.")))
    page.talk.send("1")
    with raises(OSError, "no more paper"):
        page.talk.send("2")
    page.until(lambda: page.sent[-1]["tone"] == "bad")
    assert page.sent[-1]["status"] == "failed: OSError: no more paper"
    page.talk.send("3")
    assert lines(page.talk)[-2:] == ["user 3", "desk Better."]
    page.talk.close()


def test_an_answer_can_be_stopped():
    entered = asyncio.Event()

    async def slow(messages: Any, options: Any) -> str:
        entered.set()
        await asyncio.Event().wait()
        return "never"

    page = Page(chat(agent(slow, "Again.")))
    page.say("send", "1")
    page.until(entered.is_set)
    page.say("stop")
    page.until(lambda: page.talk.status == "stopped")
    page.talk.send("2")
    assert lines(page.talk)[-1] == "desk Again."
    page.talk.close()


# ---- workflows and graphs -------------------------------------------------------------------------------------------


def test_a_workflow_gets_each_message_as_further_input_of_one_run():
    first, second = node("first", "A1", "A2"), node("second", "B1", "B2")
    talk = chat(build_sequential(first, second))
    talk.send("one")
    talk.send("two")
    assert lines(talk) == ["user one", "first A1", "second B1", "user two", "first A2", "second B2"]


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(f"Send {text}?", bool)

    @response_handler
    async def decide(self, question: str, yes: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question} {yes}")


def test_a_question_of_a_workflow_can_be_withdrawn_but_not_the_approval_of_an_agent():
    page = Page(chat(WorkflowBuilder(start_executor=Ask("ask")).build()))
    page.say("send", "it")
    page.until(lambda: bool(page.talk.widget.children[1].children))
    [form] = page.talk.widget.children[1].children
    form._handle_custom_msg({"kind": "withdraw", "view": "v"}, [])
    page.until(lambda: page.talk.status == "ready")
    assert page.talk.pending == []
    page.talk.close()

    page = Page(chat(agent(Call("pay", {"amount": 7}), "Done.")))
    page.say("send", "Pay.")
    page.until(lambda: bool(page.talk.widget.children[1].children))
    forms: Any = page.talk._forms
    assert [form.can_withdraw for form in forms._forms.values()] == [False]
    page.talk.close()


def test_a_handoff_is_answered_and_forked_at_its_question():
    talk = chat(office("Which order?", "Paid back.", "Paid back too.", "Which order?"))
    talk.send("Money!")
    talk.respond(talk.pending[0], "Order 7.")
    other = talk.fork(0)
    other.respond(other.pending[0], "Order 8.")
    assert lines(other)[:4] == ["user Money!", "refunds Which order?", "user Order 8.", "refunds Paid back too."]
    assert lines(talk)[:4] == ["user Money!", "refunds Which order?", "user Order 7.", "refunds Paid back."]
    talk.respond(talk.pending[0], [])
    assert (talk.status, talk.pending) == ("ready", [])
    talk.send("Again!")
    assert lines(talk)[4:] == ["user (no message)", "user Again!", "refunds Which order?", "waiting for your answer"]
    for each in (talk, other):
        each.close()


def test_a_workflow_as_an_agent_is_talked_with_as_the_workflow():
    talk = chat(office("Which order?", "Paid back.").as_agent(name="desk"))
    talk.send("Money!")
    talk.respond(talk.pending[0], "Order 7.")
    assert lines(talk)[:4] == ["user Money!", "refunds Which order?", "user Order 7.", "refunds Paid back."]
    talk.close()


def test_a_graph_goes_on_in_its_thread_asks_and_is_forked():
    class Talk(AgentState):
        n: int = 0

    def say(state: Any) -> Any:
        return {"messages": [Message("assistant", [f"You said {state.context[-1].text}."])]}

    def ask(state: Any) -> Any:
        sure = interrupt("Sure?") if "ask" in state.context[-2].text else "-"
        return {"messages": [Message("assistant", [f"Sure: {sure}"])]}

    graph = StateGraph(Talk).add_node("say", say).add_node("ask", ask)
    app = graph.add_edge(START, "say").add_edge("say", "ask").add_edge("ask", END).compile()
    talk = chat(app, session="t1")
    talk.send("hello")
    talk.send("ask me")
    assert [request.data.value if hasattr(request.data, "value") else request.data for request in talk.pending]
    talk.respond(talk.pending[0], "yes")
    assert lines(talk)[-3:] == ["user ask me", "assistant You said ask me.", "assistant Sure: yes"]
    other = talk.fork(0)
    other.send("bye")
    assert lines(other) == [
        *("user hello", "assistant You said hello.", "assistant Sure: -"),
        *("user bye", "assistant You said bye.", "assistant Sure: -"),
    ]
    assert "bye" not in talk.text
    with raises(ValueError, "question"):
        talk.fork(1)


def test_input_makes_the_input_of_a_workflow_that_takes_no_text():
    class Double(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[int, int]) -> None:
            await ctx.yield_output(2 * number)

    workflow = WorkflowBuilder(start_executor=Double("double"), name="double").build()
    with raises(TypeError, "input="):
        chat(workflow)
    talk = chat(workflow, input=int)
    talk.send("21")
    assert lines(talk)[-1] == "double 42"


@pytest.mark.parametrize(
    "arguments",
    [
        {"target": 5},
        {"target": None},
        {"target": agent(), "session": "t1"},
        {"target": agent(), "storage": InMemoryCheckpointStorage()},
        {"target": agent(), "input": "x"},
        {"target": office(), "session": AgentSession()},
        {"target": office(), "storage": "folder"},
    ],
    ids=["number", "none", "session-text", "agent-storage", "input", "workflow-session", "workflow-storage"],
)
def test_what_cannot_talk_is_refused_by_name(arguments):
    with pytest.raises(TypeError):
        chat(**arguments)


# ---- safety and memory ----------------------------------------------------------------------------------------------


def test_secrets_and_markup_reach_neither_the_page_nor_the_stored_output():
    texts = [text for text in ATTACKS if text.strip()]
    desk = agent(Call("pay", {"amount": 1, "api_key": "sk-planted"}), *texts)
    talk = chat(desk)
    page = Page(talk)
    talk.send("Pay.")
    talk.respond(talk.pending[0], True)
    for text in texts[:20]:
        talk.send(text)
    told = json.dumps(page.sent, default=str)
    for shown in (told, talk.text, *map(str, talk._transcript._repr_mimebundle_().values())):
        assert "sk-planted" not in shown
    found = Elements()
    found.feed(talk._transcript._repr_mimebundle_()["text/html"])
    assert found.tags <= {"div", "style", "p", "details", "summary", "code", "span", "pre"}
    assert not [name for name, _ in found.attributes if name.startswith("on") or name in ("href", "src")]
    for row in page.rows:
        for part in row["parts"]:
            check_text(part["text"])
    state = json.dumps([widget.get_state() for widget in (page.panel, talk.widget)], default=str)
    assert "Pay." not in state
    assert "sk-planted" not in state
    talk.close()


def test_without_widgets_a_cell_has_the_conversation_and_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    talk = chat(agent("Fog."))
    talk.send("How was it?")
    bundle = talk._repr_mimebundle_()
    assert "Fog." in bundle["text/html"]
    assert "Fog." in bundle["text/plain"]
    assert install_command("notebook") in bundle["text/plain"]


def test_closed_chats_are_freed():
    def use() -> list[Any]:
        talk, flow = chat(agent("First.", "Other.")), chat(build_sequential(node("a", "A"), node("b", "B")))
        for each in (talk, flow):
            Page(each)
            each.send("hi")
        other = talk.fork()
        Page(other)
        kept = [weakref.ref(each) for each in (talk, flow, other, talk._talk, flow._talk, talk.widget, other.widget)]
        for each in (talk, flow, other):
            each.close()
            each.close()
            with raises(RuntimeError, "closed"):
                each.send("x")
        return kept

    kept = use()

    async def until_freed() -> None:
        while gc.collect() is not None and any(each() is not None for each in kept):  # noqa: ASYNC110 - of the collector
            await asyncio.sleep(0.01)  # the last drawing is still on its way

    run_sync(until_freed(), timeout=30)
