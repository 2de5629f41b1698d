from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("anywidget")

from agentbench import (
    Call,
    Executor,
    ScriptedChatClient,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    handler,
    response_handler,
    tool,
)
from agentbench.notebook import request_form, stepper
from agentbench.notebook.forms.inbox import RequestForms


def asked(request_id: str, data: Any = "Title?", response_type: Any = str) -> WorkflowEvent[Any]:
    return WorkflowEvent.request_info(request_id, "review", data, response_type)


@pytest.fixture
def shown() -> Any:
    made = RequestForms(lambda request_id, value: None)
    yield made
    made.close()


def test_what_asks_something_else_under_the_same_id_gets_a_form_of_its_own(shown):
    shown.show([asked("a", "Title?")], "", 1)
    shown._forms["a"].set_raw("value", "a draft")
    assert shown.show([asked("a", "Price?")], "", 1)
    assert shown._forms["a"].raw == {}


class Asks(Executor):
    @handler
    async def ask(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        await ctx.request_info({"prompt": f"Title of {number}?"}, str)

    @response_handler
    async def answered(self, question: dict, answer: str, ctx: WorkflowContext[int, str]) -> None:  # type: ignore[type-arg]
        await ctx.yield_output(answer)


def test_a_branch_of_a_run_keeps_what_was_typed_before():
    made = stepper(WorkflowBuilder(start_executor=Asks("asks")).build(), 1)
    forms = RequestForms(made.respond)
    made.run()
    before = made.pending
    forms.show([*before], "", 1)
    (form,) = forms._forms.values()
    form.set_raw("value", "a draft")
    made.branch()
    assert made.pending[0] is not before[0]
    forms.show([*made.pending], "", 1)
    assert list(forms._forms.values()) == [form]
    assert form.submit()
    made.run()
    assert made.handle.outputs == ["a draft"]
    forms.close()
    made.close()


async def test_the_tool_calls_of_an_agent_in_a_workflow_are_approved_or_rejected():
    sent: list[str] = []

    @tool(approval_mode="always_require")
    def warn(text: str, api_key: str = "") -> str:
        """Send a warning."""
        sent.append(f"{text} {api_key}")
        return "sent"

    calls = [Call("warn", {"text": "storm", "api_key": "sk-1"}), Call("warn", {"text": "flood"})]
    agent = ScriptedChatClient([calls, "Done."]).as_agent(name="warden", tools=[warn])
    run = WorkflowBuilder(start_executor=agent, name="warnings").build().start("A storm is coming.")
    await run.result()
    storm, flood = (request_form(each, respond=run.respond) for each in run.pending_requests)
    assert storm.text.splitlines()[:4] == ["Question from warden", "May it call warn?", "text: storm", "api_key: •••"]
    assert "sk-1" not in str(storm.raw)
    storm.set_raw("edited", '{"text": "a light storm"}')
    for form, decision in ((storm, "Approve"), (flood, "Reject")):
        form.set_raw("approved", decision)
        assert await asyncio.to_thread(form.submit)
    await run.result()
    assert sent == ["a light storm sk-1"]
    assert [form.text.partition(" UTC on ")[2][12:] for form in (storm, flood)] == [
        "approved with text: a light storm",
        "rejected",
    ]
