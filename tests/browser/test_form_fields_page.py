"""Every kind of field as people use it: by mouse, by keys, in both themes, on narrow pages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect
from tests.browser.test_form_page import HARD_TO_HIT, HARD_TO_READ

pytest.importorskip("playwright")

TYPES = """
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from pydantic import AwareDatetime, BaseModel, Field, SecretStr
from agentbench.notebook import form

class Mood(Enum):
    GOOD = 1
    BAD = 2

Level = Literal["trace", "debug", "info", "warning", "error"]

class Address(BaseModel):
    "Where the parcel goes."
    street: str
    city: str = "Paris"

class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9

class Dog(BaseModel):
    kind: Literal["dog"]
    name: str

class Node(BaseModel):
    name: str
    child: "Node | None" = None

class Plain(BaseModel):
    "Fields of one value each."
    title: str = Field(max_length=40, description="What people read first.")
    count: Annotated[int, Field(ge=1, le=5)]
    price: Decimal | None
    urgent: bool
    notify: bool = True
    mood: Mood
    level: Level = "info"
    day: date
    at: AwareDatetime
    key: SecretStr
    data: bytes = b""
    extra: Any = None

class Nested(BaseModel):
    "Fields that hold others."
    address: Address
    amount: int | str
    pet: Cat | Dog = Field(discriminator="kind")
    tags: list[str] = ["red", "green"]
    limits: dict[str, int] = {"cpu": 4}
    tree: Node
    pair: tuple[int, str]
"""

# Fields without a name or with a description that is not there, and ids that are there twice.
NAMELESS = """
(form) => {
  const bad = [];
  const fields = "input:not([type=radio], [aria-hidden]), select, textarea, [role=group], [role=radiogroup]";
  for (const el of form.querySelectorAll(fields)) {
    const named = el.getAttribute("aria-label") || el.labels?.[0]?.textContent
      || document.getElementById(el.getAttribute("aria-labelledby"))?.textContent;
    const described = (el.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean);
    if (!named || described.some((id) => !document.getElementById(id))) bad.push(el.outerHTML);
  }
  const ids = [...form.querySelectorAll("[id]")].map((el) => el.id);
  return [...bad, ...ids.filter((id, at) => ids.indexOf(id) !== at)];
}
"""


@pytest.mark.parametrize(
    ("dark", "width"), [(False, 1280), (True, 1280), (False, 560)], ids=["light", "dark", "narrow"]
)
def test_fields_of_every_kind_are_readable_in_both_themes(open_cells: Any, dark: bool, width: int) -> None:
    shown = open_cells(
        [TYPES, "form(Plain, title='A job')", "form(Nested, title='A parcel')"], dark=dark, width=width, height=2600
    )
    for number in (0, 1):
        form = shown.panel.locator(".abf").nth(number)
        form.get_by_role("button", name="Submit").click()
        expect(form.locator(".abf-summary")).to_contain_text("problems")
        expect(form.locator(".abf-input").first).to_be_focused()
        assert form.evaluate(NAMELESS) == []
        shown.shot(f"fields-{number}-{'dark' if dark else 'light'}-{width}", form)
    texts = shown.panel.locator(".abf :is(.abf-label, .abf-help, .abf-problem, .abf-button, .abf-input)")
    assert texts.evaluate_all(HARD_TO_READ) == []
    targets = shown.panel.locator(".abf :is(button, select, .abf-option, .abf-input)")
    assert targets.evaluate_all(HARD_TO_HIT) == []


def test_rows_are_added_moved_and_removed_by_keys_alone(open_cells: Any) -> None:
    shown = open_cells([TYPES, "made = form(list[str], value=['red', 'green'], title='Tags')\nmade"])
    form = shown.panel.locator(".abf")
    keys = shown.page.keyboard
    form.get_by_label("Answer 2", exact=True).focus()
    for _ in range(2):
        keys.press("Tab")  # up is next, then remove: down is off in the last row
    expect(form.get_by_role("button", name="Remove Answer 2")).to_be_focused()
    keys.press("Tab")
    expect(form.get_by_role("button", name="Add to Answer")).to_be_focused()
    keys.press("Enter")
    expect(form.get_by_label("Answer 3", exact=True)).to_be_focused()
    keys.type("blue")
    keys.press("Tab")
    expect(form.get_by_role("button", name="Move Answer 3 up")).to_be_focused()
    keys.press("Space")
    expect(form.get_by_label("Answer 2", exact=True)).to_have_value("blue")
    form.get_by_role("button", name="Remove Answer 1").press("Enter")
    expect(form.get_by_label("Answer 1", exact=True)).to_have_value("blue")
    form.get_by_role("button", name="Submit").press("Enter")
    expect(form.locator(".abf-status")).to_contain_text("['blue', 'green']")


def test_a_list_of_texts_can_be_typed_one_a_line(open_cells: Any) -> None:
    shown = open_cells([TYPES, "made = form(list[str], value=['red'], title='Tags')\nmade"])
    form = shown.panel.locator(".abf")
    form.get_by_role("button", name="One per line").click()
    lines = form.locator(".abf-rows textarea")
    expect(lines).to_have_value("red")
    lines.fill("red\n\nblue\n")
    form.get_by_role("button", name="As rows").click()
    expect(form.get_by_label("Answer 3", exact=True)).to_have_value("blue")
    form.get_by_role("button", name="Submit").click()
    expect(form.locator(".abf-status")).to_contain_text("['red', '', 'blue']")


def test_the_whole_form_is_edited_as_json_and_back(open_cells: Any) -> None:
    shown = open_cells([TYPES, "made = form(Address, title='Where')\nmade"])
    form = shown.panel.locator(".abf")
    form.get_by_label("Street").fill("Rue 1")
    form.get_by_role("button", name="Edit as JSON").click()
    whole = form.get_by_label("The whole form as JSON")
    expect(whole).to_be_focused()
    expect(whole).to_have_value('{\n  "street": "Rue 1",\n  "city": "Paris"\n}')
    whole.fill('{"street": "Rue 2", ')
    expect(form.locator(".abf-problem").last).to_contain_text("Not valid JSON")
    form.get_by_role("button", name="Back to the fields").click()
    expect(whole).to_have_value('{"street": "Rue 2", ')  # it stays, and so does the text
    shown.shot("form-json", form)
    form.get_by_role("button", name="Submit").click()
    expect(whole).to_be_focused()
    whole.fill('{"street": "Rue 2", "city": "Lyon"}')
    form.get_by_role("button", name="Back to the fields").click()
    expect(form.get_by_label("City")).to_have_value("Lyon")
    form.get_by_role("button", name="Submit").click()
    expect(form.locator(".abf-status")).to_contain_text("Address(street='Rue 2', city='Lyon')")


def test_another_type_is_chosen_and_what_was_typed_waits(open_cells: Any) -> None:
    shown = open_cells(
        [
            TYPES,
            "made = form(Nested, value={'address': {'street': 's'}, 'tree': {'name': 'n'}, 'pair': (1, 'x')})\nmade",
        ]
    )
    form = shown.panel.locator(".abf")
    amount = form.get_by_role("group", name="Amount")
    amount.get_by_role("textbox").fill("5")
    amount.get_by_role("radio", name="str").check()
    expect(amount.get_by_role("textbox")).to_have_value("")
    amount.get_by_role("textbox").fill("five")
    amount.get_by_role("radio", name="int").check()
    expect(amount.get_by_role("textbox")).to_have_value("5")
    amount.get_by_role("radio", name="str").check()
    form.get_by_role("group", name="Pet").get_by_role("radio", name="dog").check()
    form.get_by_role("group", name="Pet").get_by_label("Name").fill("Rex")  # once the fields of a dog are there
    form.get_by_role("group", name="Child").get_by_role("checkbox").uncheck()
    form.get_by_role("button", name="Submit").click()
    child = form.get_by_role("group", name="Child").first.get_by_label("Name")
    expect(child).to_be_focused()  # the first bad field
    child.fill("inner")
    form.get_by_role("button", name="Submit").click()
    expect(form.locator(".abf-status")).to_contain_text("amount='five', pet=Dog(kind='dog', name='Rex')")


def test_a_file_reaches_python_and_a_line_end_stays_what_it_was(open_cells: Any) -> None:
    cells = [
        TYPES,
        "class Sent(BaseModel):\n    data: bytes\n    note: str\nmade = form(Sent, value={'note': 'a\\r\\nb'})\nmade",
    ]
    shown = open_cells(cells)
    form = shown.panel.locator(".abf")
    form.get_by_label("Data").set_input_files({"name": "x.bin", "mimeType": "text/plain", "buffer": b"\x00\xffab"})
    expect(form.locator(".abf-said")).to_have_text("x.bin, 4 bytes")
    note = form.get_by_label("Note")
    note.press("End")
    note.press_sequentially("!")
    form.get_by_role("button", name="Submit").click()
    expect(form.locator(".abf-status")).to_contain_text(r"data=b'\x00\xffab', note=")
    expect(form.locator(".abf-status")).to_contain_text(r"\r\n")


def test_an_inbox_shows_the_requests_of_two_runs_and_keeps_drafts(open_cells: Any) -> None:
    flow = """
from agentbench import Approval, Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.notebook import inbox

class Review(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        data = {"prompt": f"Publish {text}?", "arguments": {"to": "all"}, "editable": True}
        await ctx.request_info(data, Approval)
        await ctx.request_info({"prompt": "How many?", "deadline": "2199-01-01"}, int)
    @response_handler
    async def told(self, request: dict, answer: Approval, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(answer.reason)
    @response_handler
    async def counted(self, request: dict, answer: int, ctx: WorkflowContext[str, int]) -> None:
        await ctx.request_info("And why?", str)
    @response_handler
    async def why(self, request: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        pass

runs = [WorkflowBuilder(start_executor=Review("review"), name=name).build().start(name) for name in ("news", "blog")]
for run in runs:
    await run.result()
box = inbox(*runs)
number = box.requests[1].form
box
"""
    # A form that is still sending is not open any more, but its run knows no answer yet.
    taken = "import asyncio\nwhile number.state != 'answered':\n    await asyncio.sleep(0.05)\nawait runs[0].result()"
    shown = open_cells([flow, taken], height=1900, finished=False)
    forms = shown.panel.locator(".abi .abf")
    expect(forms).to_have_count(4)
    expect(forms.nth(0).locator(".abf-origin")).to_contain_text("news, run ")
    expect(forms.nth(0).locator(".abf-origin")).to_contain_text("waiting")
    forms.nth(2).get_by_label("Reason").fill("a draft")
    forms.nth(1).get_by_label("Your answer").fill("3")
    shown.shot("inbox", shown.panel.locator(".abi"))
    forms.nth(1).get_by_role("button", name="Send").click()
    shown.output(-1)
    expect(forms).to_have_count(4)  # the answered one has made place for the question that followed
    expect(forms.nth(3)).to_contain_text("And why?")
    expect(forms.nth(1).get_by_label("Reason")).to_have_value("a draft")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_requests_of_every_kind_are_shown_and_arguments_are_edited_in_fields(open_cells: Any, dark: bool) -> None:
    asking = """
from agentbench import Approval, WorkflowEvent
from agentbench.notebook import request_form

class Letter(BaseModel):
    text: str
    fee: int = 450

def asking(data, response_type):
    request = WorkflowEvent.request_info("r", "review", data, response_type)
    return request_form(request, respond=lambda request_id, answer: None)

letter = Letter(text="We lend you the lamp.")
data = {"prompt": "Send this letter?", "arguments": letter, "editable": True, "reason_required": True}
asking(data, Approval)
"""
    choice = (
        "asking({'prompt': 'How?', 'options': ['train', 'ship', 'car', 'plane', 'foot'], 'allow_other': True}, str)"
    )
    schema = "{'type': 'object', 'properties': {'a': {'type': 'string', 'not': {}}, 'deep': {'$ref': '#'}}}"
    cells = [
        TYPES,
        asking,
        choice,
        "asking('Which way?', Literal['left', 'right'])",
        "asking('Why?', str)",
        f"form({schema}, title='From a schema')",
        "form(Literal[tuple(f'option {n}' for n in range(40))], title='One of forty')",
        "value = dict(name='e')\nfor n in 'dcba':\n    value = {'name': n, 'child': value}\nform(Node, value=value)",
    ]
    shown = open_cells(cells, dark=dark, height=3200)
    forms = shown.panel.locator(".abf")
    approval = forms.nth(0)
    reject, approve = (approval.get_by_role("button", name=each, exact=True) for each in ("Reject", "Approve"))
    assert reject.bounding_box()["width"] == approve.bounding_box()["width"]
    assert reject.bounding_box()["x"] < approve.bounding_box()["x"]
    approval.get_by_role("button", name="Edit arguments").click()
    expect(approval.get_by_label("Text", exact=True)).to_be_focused()
    approval.get_by_label("Fee").fill("500")
    reject.click()
    expect(approval.get_by_label("Reason")).to_be_focused()
    forms.nth(3).get_by_label("Your answer").fill("so far")
    for at, each in enumerate(forms.all()):
        shown.shot(f"request-{at}-{'dark' if dark else 'light'}", each)
    approval.get_by_role("button", name="Approve with changes").click()
    expect(approval.locator(".abf-status")).to_contain_text(
        "approved with Letter(text='We lend you the lamp.', fee=500)"
    )
    deep = forms.nth(6)
    deep.get_by_role("button", name="Show the fields").first.click()
    expect(deep.get_by_label("Name").nth(4)).to_have_value("e")
    expect(deep.get_by_label("Name").nth(4)).to_be_visible()
