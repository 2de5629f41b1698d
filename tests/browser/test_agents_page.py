"""What a person sees of agents in a workflow, and of a workflow inside a node, in a page."""

from __future__ import annotations

from typing import Any

from tests.browser.page_parts import banner, expect, header, node

SHOW = """
from agentbench import Agent, WorkflowBuilder, WorkflowExecutor, tool
from agentbench.notebook import *
from agentbench.testing import Call, ScriptedChatClient

@tool(approval_mode='always_require')
def publish(title: str, copies: int = 1) -> str:
    'Print an article.'
    return f'{copies} x {title}'

writer = Agent(ScriptedChatClient(['A draft about rain in <b>Bergen</b>.']), 'Write.', name='writer')
script = [Call('publish', {'title': 'Rain', 'copies': 500}), 'It is printed.']
editor = Agent(ScriptedChatClient(script), 'Publish.', name='editor', tools=[publish])
desk = WorkflowBuilder(name='desk', start_executor=writer).add_edge(writer, editor).build()
office = WorkflowExecutor(desk, 'office', allow_direct_output=True, propagate_request=True)
panel = stepper(WorkflowBuilder(name='house', start_executor=office).build(), 'Write about rain', height=320)
panel
"""


def test_a_sub_workflow_is_opened_and_its_agents_are_read_and_answered(open_cells: Any) -> None:
    shown = open_cells([SHOW])
    expect(header(shown)).to_contain_text("ready")
    shown.button("Step").click()
    expect(banner(shown)).to_contain_text("office is waiting for an answer")
    node(shown, "office").dblclick()
    expect(node(shown, "editor")).to_have_attribute("aria-label", "editor, waiting, 14 tokens")
    node(shown, "writer").click()
    expect(shown.panel.locator(".abs-facts")).to_contain_text("scripted")
    talk = shown.panel.frame_locator(".abs-output iframe")
    expect(talk.locator("body")).to_contain_text("A draft about rain in <b>Bergen</b>.")
    shown.button("Edit arguments").click()
    shown.panel.get_by_label("Arguments").fill('{"title": "Rain", "copies": 3}')
    shown.button("Approve with changes").click()
    expect(header(shown)).to_contain_text("paused")
    shown.button("Run").click()
    expect(banner(shown)).to_contain_text("Finished. Output")
    node(shown, "editor").click()
    expect(talk.locator("body")).to_contain_text("3 x Rain")
    expect(talk.locator("body")).to_contain_text("It is printed.")


INSIDE = """
from agentbench import WorkflowBuilder, WorkflowContext, WorkflowExecutor, executor
from agentbench.notebook import *

@executor(id='draft')
async def draft(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)

@executor(id='check')
async def check(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(f'{text}, checked')

desk = WorkflowBuilder(name='desk', start_executor=draft).add_edge(draft, check).build()
office = WorkflowExecutor(desk, 'office', allow_direct_output=True)
panel = stepper(WorkflowBuilder(name='house', start_executor=office).build(), 'rain', height=320)
panel
"""


def test_a_person_steps_inside_a_sub_workflow(open_cells: Any) -> None:
    shown = open_cells([INSIDE])
    expect(header(shown)).to_contain_text("ready")
    node(shown, "office").dblclick()
    shown.button("Step").focus()
    shown.page.keyboard.press("i")
    expect(header(shown)).to_contain_text("paused")
    expect(banner(shown)).to_contain_text("inside office, after its superstep 0")
    expect(node(shown, "draft")).to_have_attribute("aria-label", "draft, done")
    expect(node(shown, "check")).not_to_have_attribute("aria-label", "check, done")
    shown.shot("stepper-inside")
    shown.page.keyboard.press("i")
    expect(banner(shown)).to_contain_text("Finished. Output")
    expect(node(shown, "check")).to_have_attribute("aria-label", "check, done")
