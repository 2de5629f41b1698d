"""Forms as people use them: clicks, keys, mistakes, reloads, hostile texts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect
from tests.notebook.attacks import ATTACKS

pytest.importorskip("playwright")

FLOW = """
import asyncio
from agentbench import Approval, Executor, WorkflowBuilder, WorkflowContext, WorkflowEvent, handler, response_handler
from agentbench.notebook import form, request_form

class Review(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info({"prompt": "Publish this draft?", "text": text, "reason_required": True}, Approval)
    @response_handler
    async def told(self, request: dict, answer: Approval, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{answer.approved} because {answer.reason}")

def asking(data, response_type, respond=lambda request_id, answer: None):
    return request_form(WorkflowEvent.request_info("r", "review", data, response_type), respond=respond)
"""

WAIT = """
from IPython.display import display
workflow = WorkflowBuilder(start_executor=Review("review"), name="w").build()
run = workflow.start("Once upon a time")
await run.result()
asked = request_form(run.pending_requests[0], respond=run.send_response)
display(asked)
while str(asked.state) != "answered":
    await asyncio.sleep(0.05)
await run.result()
print("output:", *run.outputs)
"""

# Contrast as WCAG counts it, of the text of an element against its own background. A canvas tells what a colour comes
# to, however it is written.
CONTRAST = """
(element) => {
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = (colour) => {
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b] = paint.getImageData(0, 0, 1, 1).data;
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  };
  let behind = element;
  const ground = () => getComputedStyle(behind).backgroundColor;
  while (ground().match(/^rgba.*, 0\\)$/)) behind = behind.parentElement ?? frameElement;
  const [a, b] = [light(getComputedStyle(element).color), light(ground())].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}
"""
# What of elements can be seen and is pale or small.
HARD_TO_READ = f"""elements => elements.filter(e => e.checkVisibility()).filter(
  e => ({CONTRAST})(e) < 4.5 || parseFloat(getComputedStyle(e).fontSize) < 12).map(e => e.outerHTML)"""
HARD_TO_HIT = """elements => elements.filter(e => e.checkVisibility()).filter(
  e => e.getBoundingClientRect().height < 24).map(e => e.outerHTML)"""


def test_approving_inside_a_waiting_cell_ends_it(lab: Any, open_notebook: Any) -> None:
    lab.write("approve", [FLOW, WAIT])
    shown = open_notebook("approve")
    shown.run_all(finished=False)
    form = shown.panel.locator(".abf")
    expect(form).to_contain_text("Publish this draft?")
    expect(form).to_contain_text("Once upon a time")
    shown.shot("form-approve", form)
    shown.button("Reject").click()
    expect(form.locator(".abf-problem").first).to_contain_text("reason")
    reason = form.get_by_label("Reason")
    expect(reason).to_be_focused()
    reason.fill("it is short")
    shown.button("Approve").click()
    expect(shown.panel.get_by_text("output: True because it is short")).to_be_visible()
    expect(form.locator(".abf-status")).to_contain_text("Answered here")
    expect(form.get_by_role("button", name="Approve")).to_be_hidden()


def test_a_wrong_number_keeps_its_text_and_says_what_is_wrong(open_cells: Any) -> None:
    shown = open_cells([FLOW, "asked = asking('How many?', int)\nasked"])
    field = shown.panel.get_by_label("Your answer")
    expect(field).to_have_attribute("inputmode", "numeric")
    field.fill("1,5")
    shown.button("Send").click()
    expect(field).to_be_focused()
    expect(field).to_have_value("1,5")
    expect(field).to_have_attribute("aria-invalid", "true")
    described = field.get_attribute("aria-describedby").split()
    told = [shown.page.locator(f"[id='{each}']").text_content() for each in described]
    assert any("comma" in text for text in told)
    shown.shot("form-invalid", shown.panel.locator(".abf"))
    shown.button("Your answer").click()  # the summary's link to the field
    expect(field).to_be_focused()
    field.fill("15")
    field.press("Enter")
    expect(shown.panel.locator(".abf-status")).to_contain_text("Answered here")
    expect(shown.panel.locator(".abf-status")).to_contain_text("15")


def test_a_refused_answer_is_in_the_field_again(open_cells: Any) -> None:
    refusing = "def refuse(request_id, answer):\n    raise ValueError('not while the moon is full')"
    shown = open_cells([FLOW, refusing, "asking('Title?', str, refuse)"])
    field = shown.panel.get_by_label("Your answer")
    field.fill("Ulysses")
    field.press("Control+Enter")
    expect(shown.panel.locator(".abf-status")).to_have_text("Not accepted: not while the moon is full")
    expect(field).to_have_value("Ulysses")
    expect(shown.button("Send")).to_be_enabled()


def test_a_form_is_filled_and_sent_by_keys_alone(open_cells: Any) -> None:
    shown = open_cells([FLOW, "asked = asking({'question': 'Which?', 'choices': list('abcde')}, str)\nasked"])
    form = shown.panel.locator(".abf")
    form.get_by_role("radio", name="a", exact=True).focus()
    shown.page.keyboard.press("ArrowDown")
    expect(form.get_by_role("radio", name="b", exact=True)).to_be_checked()
    shown.page.keyboard.press("Tab")
    expect(shown.button("Send")).to_be_focused()
    shown.page.keyboard.press("Space")
    expect(form.locator(".abf-status")).to_contain_text("Answered here")
    expect(form).to_be_focused()  # its buttons are gone; keys go on from here


def test_a_submitted_value_can_be_changed_and_an_answer_cannot(open_cells: Any) -> None:
    shown = open_cells([FLOW, "form(str, title='Name')", "asking('Title?', str)"])
    for form, send in ((shown.panel.locator(".abf").nth(at), send) for at, send in enumerate(("Submit", "Send"))):
        form.locator("input, textarea").first.fill("Ada")
        form.get_by_role("button", name=send).click()
        expect(form.locator(".abf-status")).to_contain_text("Ada")
    assert [button.is_visible() for button in shown.panel.get_by_text("Change", exact=True).all()] == [True, False]
    shown.shot("form-submitted", shown.panel.locator(".abf").first)
    shown.panel.get_by_text("Change", exact=True).first.click()
    expect(shown.panel.get_by_role("textbox", name="Answer", exact=True)).to_have_value("Ada")


def test_keys_of_a_form_stay_in_it_and_those_of_the_notebook_do_not(open_cells: Any) -> None:
    shown = open_cells([FLOW, "form(str, title='Name')"])
    shown.page.evaluate(
        "window.heard = []; document.body.addEventListener('keydown', (event) => heard.push(event.key))"
    )
    field = shown.panel.locator(".abf input").first
    for keys in ("a", "Control+s", "Control+a", "Control+Enter"):
        field.press(keys)
    assert shown.page.evaluate("heard.filter((key) => key !== 'Control')") == ["s"]


@pytest.mark.nightly
def test_typing_reaches_python_and_survives_a_reload_of_the_page(lab: Any, open_notebook: Any) -> None:
    cells = [
        FLOW,
        "asked = globals().get('asked') or asking('Title?', str)\nasked",
        "while asked.raw != {'value': 'half a ti'}:\n    await asyncio.sleep(0.05)",  # typing is told after a pause
    ]
    lab.write("reload", cells)
    shown = open_notebook("reload", own=True)
    shown.run_all(finished=False)
    shown.panel.get_by_label("Your answer").fill("half a ti")
    expect(shown.panel.locator(".abf-count")).to_have_text("9 characters")
    expect(shown.panel.get_by_text("cells finished")).to_be_visible()
    shown.page.reload()
    shown.wait_until_ready()
    shown.run_all()
    expect(shown.panel.get_by_label("Your answer")).to_have_value("half a ti")


def test_hostile_texts_are_shown_and_do_nothing(open_cells: Any) -> None:
    # JupyterLab folds away what follows the first fifty outputs of a cell.
    some = [
        f"""
for attack in ATTACKS[{at}:{at + 10}]:
    display(asking({{"prompt": attack, "text": attack, "options": [attack[:500], "b"], "allow_other": True}}, str))
"""
        for at in range(0, len(ATTACKS), 10)
    ]
    cells = [
        FLOW,
        "from IPython.display import display\nfrom tests.notebook.attacks import ATTACKS",
        *some,
        """
def refuse(request_id, answer):
    raise ValueError(answer)
refused = asking({"prompt": "?", "options": [ATTACKS[3]]}, str, refuse)
refused.press("choose-0")
display(refused)
""",
    ]
    shown = open_cells(cells)
    shown.panel.locator(".abf").last.scroll_into_view_if_needed()
    expect(shown.panel.locator(".abf-status").last).to_contain_text("<img src=x onerror=window.pwned=1>")
    assert shown.page.evaluate("window.pwned") is None
    assert shown.page.locator(".abf :is(script, iframe, img, object, svg, a, style)").count() == 0


@pytest.mark.nightly
def test_a_form_that_is_closed_at_once_leaves_no_error_on_the_page(lab: Any, open_notebook: Any) -> None:
    cells = [
        FLOW,
        """
from IPython.display import display
for at in range(20):
    asked = asking('Title?', str)
    display(asked)
    await asyncio.sleep(at / 200)
    asked.answer('x')
    asked.close()
""",
        "await asyncio.sleep(4)",  # anywidget waits two seconds for a script
    ]
    lab.write("closed", cells)
    shown = open_notebook("closed")
    shown.run_all()
    assert shown.unread == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_payload_of_a_question_is_shown_as_it_shows_itself_in_a_cell(open_cells: Any, dark: bool) -> None:
    cells = [
        FLOW,
        """
import pandas
class Picture:
    def _repr_html_(self):
        return "<b id=own>mine</b><script>parent.pwned = 1</script><img src=x onerror='parent.pwned = 1'>"
table = pandas.DataFrame({"flight": ["AB1", "AB2"], "price": [120, 95]})
asking({"prompt": "Which flight?", "flights": table, "picture": Picture(), "note": "<b>text</b>"}, str)
""",
        "asking(table, bool)",
    ]
    shown = open_cells(cells, dark=dark)
    form = shown.panel.locator(".abf").first
    table = form.frame_locator("iframe").first.locator("table")
    expect(table.locator("tbody tr")).to_have_count(2)
    expect(table).to_contain_text("AB2")
    assert table.locator("td").first.evaluate(CONTRAST) >= 4.5
    expect(form.frame_locator("iframe").last.locator("#own")).to_have_text("mine")
    expect(form.locator(".abf-context")).to_have_text("note: <b>text</b>")
    assert shown.page.evaluate("window.pwned") is None
    expect(shown.panel.locator(".abf").last.frame_locator("iframe").locator("td")).to_have_count(4)
    # The browser reports what it kept from running in the frame.
    shown.problems[:] = [each for each in shown.problems if "about:srcdoc" not in each]
    shown.shot(f"form-payload-{'dark' if dark else 'light'}")
