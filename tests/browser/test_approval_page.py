"""The calls of an agent that wait for approval, with their buttons below the conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect

pytest.importorskip("playwright")

AGENT = """
from agentbench import Call, ScriptedChatClient, tool
from agentbench.notebook import transcript

@tool(approval_mode="always_require")
def warn(text: str) -> str:
    return f"sent: {text}"

agent = ScriptedChatClient(
    [Call("warn", {"text": "Storm <b>tonight</b>"}), Call("warn", {"text": "Flood"}), "The warning is out."]
).as_agent(name="warden", tools=[warn])
session = agent.create_session()
response = await agent.run("A storm is coming.", session=session)
"""
WAIT = """
import asyncio
asked = transcript(response)
display(asked)
while asked.forms[0].live:
    await asyncio.sleep(0.05)
await agent.run(asked.answer, session=session)
print(transcript(session).text)
"""


def test_approved_calls_go_on_in_the_same_cell(lab: Any, open_notebook: Any) -> None:
    lab.write("approve", [AGENT, "transcript(session, respond=lambda answer: agent.run(answer, session=session))"])
    page = open_notebook("approve")
    page.run_all()
    talk, form = page.panel.locator(".ab_talk"), page.panel.locator(".abf")
    expect(form).to_contain_text("May it call warn?")
    expect(form).to_contain_text("text: Storm <b>tonight</b>")
    page.shot("agent-approval", page.panel)
    page.button("Approve").click()
    expect(talk).to_contain_text('Approved: warn(text="Storm <b>tonight</b>")')
    expect(form).to_contain_text("text: Flood")
    page.shot("agent-asks-again", page.panel)
    page.button("Reject").click()
    expect(talk).to_contain_text("The warning is out.")
    expect(form).to_have_count(0)
    page.shot("agent-finished", page.panel)


def test_a_rejection_is_the_message_of_the_next_run(lab: Any, open_notebook: Any) -> None:
    lab.write("reject", [AGENT, WAIT])
    page = open_notebook("reject")
    page.run_all(finished=False)
    page.button("Reject").click()
    expect(page.panel.locator(".abf")).to_contain_text("Answered")
    expect(page.panel).to_contain_text("rejected")
    expect(page.panel).to_contain_text('? May it call warn(text="Flood")?')
