"""What JupyterLab writes into the file of a notebook: nothing that was asked, typed or computed in a panel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.page_parts import expect

SECRET = "S3CRET"

# The word is put together, so that it does not stand in the file as code.
CELLS = [
    """
from dataclasses import dataclass
from pydantic import SecretStr
from agentbench import Executor, WorkflowBuilder, WorkflowContext, WorkflowEvent, handler, response_handler
from agentbench.notebook import configure, form, inbox, request_form, stepper
secret = "S3C" + "RET"

@dataclass
class Ask:
    prompt: str
    api_key: str

class Review(Executor):
    @handler
    async def review(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("draft", secret)
        await ctx.request_info(Ask(secret, secret), str)

    @response_handler
    async def answered(self, asked: Ask, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{secret} {answer}")

def flow():
    return WorkflowBuilder(start_executor=Review(id="review"), name="flow").build()
""",
    "panel = stepper(flow(), secret)\npanel",
    "key = form(SecretStr, title='Key')\nkey",
]
SAVE_STATE = "() => jupyterapp.commands.execute('@jupyter-widgets/jupyterlab-manager:saveWidgetState')"


@pytest.fixture
def saving_states(request: pytest.FixtureRequest) -> Any:
    """Pages that this is given save the state of all widgets, until the test ends."""
    pages: list[Any] = []

    def switch(page: Any) -> None:
        page.page.evaluate(SAVE_STATE)
        pages.append(page)

    yield switch
    for page in pages:
        page.page.evaluate(SAVE_STATE)  # the server would remember it


def test_a_saved_notebook_holds_nothing_of_a_run_or_a_form_even_with_the_state_of_its_widgets(
    lab: Any, open_notebook: Any, saving_states: Any
) -> None:
    lab.write("saved", CELLS)
    page = open_notebook("saved", own=True)
    page.run_all()
    page.button("Run").click()
    asked = page.panel.locator(".abs-requests .abf")
    expect(asked).to_contain_text(SECRET)  # it is asked, and on the page
    asked.get_by_label("Your answer").fill(f"{SECRET} draft")
    page.panel.locator("input[type=password]").fill(f"{SECRET} key")
    page.save()
    kept = lab.file("saved").read_text()
    assert SECRET not in kept
    assert "Stepper(flow, no superstep yet, ready)" in kept

    page.button("Submit").click()
    page.button("Send").click()
    expect(page.panel.locator(".abs-header")).to_contain_text("finished")
    expect(page.panel.locator(".abs-frame")).to_contain_text(f"{SECRET} draft")
    saving_states(page)
    page.save()
    kept = lab.file("saved").read_text()
    states = json.loads(kept)["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    assert len(states) > 5
    assert SECRET not in kept
