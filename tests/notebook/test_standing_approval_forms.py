"""The forms of an agent that keeps standing approvals have a button for each kind of them."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    Call,
    ScriptedChatClient,
    ToolApprovalMiddleware,
    WorkflowBuilder,
    run_sync,
    tool,
)
from agentbench.notebook import inbox, transcript
from tests.parts.errors import raises

pytest.importorskip("anywidget")

ALWAYS = ["always-tool", "always-arguments"]


@tool(approval_mode="always_require")
def wipe(what: str) -> str:
    return f"wiped {what}"


def agent(*answers: Any, middleware: bool = True) -> Agent:
    return Agent(
        ScriptedChatClient(answers or [Call("wipe", {"what": "a"}), "done", Call("wipe", {"what": "a"}), "done"]),
        name="cleaner",
        tools=[wipe],
        middleware=[ToolApprovalMiddleware()] if middleware else [],
    )


@pytest.mark.parametrize("action", ALWAYS)
async def test_a_button_below_a_conversation_approves_for_good(action: str) -> None:
    cleaner, session = agent(), AgentSession()
    await cleaner.run("go", session=session)
    asked = transcript(session)
    [form] = asked.forms
    form.press(action)
    assert "always" in form.text
    await cleaner.run(asked.answer, session=session)
    [rule] = session.approvals
    assert rule.arguments == (None if action == "always-tool" else {"what": "a"})
    assert (await cleaner.run("go", session=session)).text == "done"


async def test_the_forms_of_other_agents_have_no_such_buttons() -> None:
    cleaner, session = agent(middleware=False), AgentSession()
    await cleaner.run("go", session=session)
    [form] = transcript(session).forms
    assert "lways" not in form.text
    with raises(KeyError, "always-tool"):
        form.press("always-tool")


def test_in_an_inbox_the_edited_arguments_are_approved_for_good() -> None:
    cleaner = agent(Call("wipe", {"what": "a"}), Call("wipe", {"what": "b"}), Call("wipe", {"what": "a"}))
    run = WorkflowBuilder(cleaner).build().start("go")
    run_sync(run.result())
    [entry] = inbox(run)
    entry.form.set_raw("edited", '{"what": "b"}')
    entry.form.set_raw("approved", "Always approve with these arguments")
    assert entry.form.submit()
    run_sync(run.result())
    [request] = run.pending_requests
    assert request.data.function_call.parse_arguments() == {"what": "a"}
    assert len(cleaner.client.calls) == 3


async def test_code_chooses_by_the_words_of_the_buttons() -> None:
    cleaner, session = agent(), AgentSession()
    await cleaner.run("go", session=session)
    asked = transcript(session)
    [form] = asked.forms
    assert "'Always approve this tool' or 'Always approve with these arguments'" in form.text
    form.set_raw("approved", "Always approve this tool")
    assert form.submit()
    [answer] = asked.answer.contents
    assert answer.additional_properties["always_approve"] == "tool"
