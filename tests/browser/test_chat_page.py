"""A person talks with an agent, answers a handoff and an approval, and opens past runs, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.axe import violations
from tests.browser.scenes import SETUP, TALK

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
RUNS = """
storage = InMemoryCheckpointStorage()
for topic in ("cats", "dogs"):
    await build(5).start(topic, checkpoint_storage=storage).result()
"""


def expect(what: Any) -> Any:
    from playwright.sync_api import expect as real

    real.set_options(timeout=30_000)
    return real(what)


def nothing_serious(page: Any, *selectors: str) -> bool:
    found = []
    for dark in (True, False):
        page.use_theme(dark=dark)
        page.settle()
        found += violations(page.page, *selectors)
    assert found == []
    return True


def test_a_person_talks_with_an_agent_approves_its_call_and_forks_a_turn(lab: Any, open_notebook: Any) -> None:
    lab.write("talk", [SETUP, TALK, "talk = chat(press('Another answer.'))\ntalk"])
    page = open_notebook("talk", height=1600)
    page.run_all()
    chat = page.panel.locator(".abc").first
    log, box = chat.locator(".abc-log"), chat.get_by_label("Message to press")
    expect(log).to_contain_text("No messages yet.")
    box.fill("How wet was it?")
    box.press("Enter")
    expect(log).to_contain_text("the wettest day of the year")
    expect(log).to_contain_text('weather(day="2012-11-19", station="Seattle")')
    expect(box).to_have_value("")
    log.locator("summary").first.click()
    expect(log).to_contain_text("54.1 mm of rain, wind 6.0 m/s")
    # Keys that are commands of the notebook are letters here.
    box.press_sequentially("Print it, ddaab.")
    box.press("Enter")
    form = page.panel.locator(".abf")
    expect(form).to_contain_text("May it call print_paper?")
    expect(box).to_be_hidden()
    assert nothing_serious(page, ".abc", ".abf")
    page.shot("chat-asks", page.panel)
    page.button("Approve").click()
    expect(log).to_contain_text("1000 copies of 'A wet Monday'")
    expect(log).to_contain_text("The paper is out.")
    expect(form).to_have_count(0)
    page.button("Fork turn 1").click()
    other = page.panel.locator(".abc").nth(1)
    expect(other).to_contain_text("press, fork of turn 1")
    expect(other).not_to_contain_text("The paper is out.")
    other.get_by_role("textbox").fill("And now?")
    other.get_by_role("button", name="Send").click()
    expect(other).to_contain_text("Another answer.")
    expect(chat).not_to_contain_text("Another answer.")
    page.shot("chat-forked", page.panel)
    other.get_by_role("button", name="Close").click()
    expect(page.panel.locator(".abc")).to_have_count(1)
    assert nothing_serious(page, ".abc")


def test_a_run_opens_with_a_click_in_a_stepper_or_for_reading(open_cells: Any) -> None:
    page = open_cells([SETUP, RUNS, "runs(storage)", "runs(storage, build(5))"], height=2400)
    read, step = page.panel.locator(".abr").nth(0), page.panel.locator(".abr").nth(1)
    expect(read.locator("tbody tr")).to_have_count(2)
    expect(read).to_contain_text("waiting for an answer")
    read.get_by_role("button", name="Open for reading").first.press("Enter")
    expect(read.frame_locator("iframe").locator("body")).to_contain_text("Publish this draft?")
    step.get_by_role("button", name="Open in a stepper").last.click()
    form = page.panel.locator(".abf")
    expect(form).to_contain_text("Publish this draft?")
    assert nothing_serious(page, ".abr")
    page.shot("runs-opened", page.panel)
    page.button("Approve").click()
    expect(form).to_contain_text("Answered here")
    page.button("Run").click()
    expect(page.panel.locator(".abs-banner")).to_contain_text("Finished.")
    step.get_by_role("button", name="Refresh").click()
    expect(step.locator("tbody tr")).to_have_count(3)
    expect(step).to_contain_text("finished")


def cells_until(name: str, last: str) -> list[str]:
    """The code of a notebook, up to the cell that contains a text."""
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    end = next(at for at, source in enumerate(code) if last in source)
    return code[: end + 1]


@pytest.mark.nightly
def test_a_person_answers_the_handoff_and_the_review_of_notebook_16(lab: Any, open_notebook: Any) -> None:
    *before, shown = cells_until("16_orchestrations.ipynb", "talk = chat(office)")
    review = next(at for at, source in enumerate(before) if source.endswith("\nform"))
    lab.write("sixteen", [*before[: review + 1], *before[review + 2 :], shown])
    page = open_notebook("sixteen", height=2400)
    page.run_all()
    form = page.panel.locator(".abf")
    expect(form).to_have_count(2)
    expect(form.nth(0)).to_contain_text("Is this answer good?")
    page.button("Approve as it is").click()
    expect(form.nth(0)).to_contain_text("Approve as it is")
    expect(form.nth(0)).to_contain_text("Answered here")
    expect(form.nth(1)).to_contain_text("Which order was it?")
    send = form.nth(1).get_by_role("button", name="Send")
    send.click()
    expect(form.nth(1)).to_contain_text("Type a message, or press End conversation.")
    form.nth(1).get_by_role("textbox").fill("Order 7.")
    page.shot("handoff-asks", page.panel)
    assert nothing_serious(page, ".abc", ".abf")
    send.click()
    log = page.panel.locator(".abc-log")
    expect(log).to_contain_text("Order 7.")
    expect(log).to_contain_text("Paid back.")
    page.button("End conversation").click()
    expect(form).to_have_count(1)
    expect(page.panel.locator(".abc-status")).to_have_text("ready")


@pytest.mark.nightly
def test_a_person_changes_and_approves_the_call_of_notebook_12(lab: Any, open_notebook: Any) -> None:
    answered = "import asyncio\nwhile form.state != 'answered':\n    await asyncio.sleep(0.05)"
    cells = cells_until("12_agents_in_workflows.ipynb", "printed = []")
    [*_, then] = cells_until("12_agents_in_workflows.ipynb", 'form.set_raw("edited"')
    lab.write("twelve", [*cells, answered, then])
    page = open_notebook("twelve", height=2400)
    page.run_all(finished=False)
    form = page.panel.locator(".abf")
    expect(form).to_contain_text("May it call print_paper?")
    page.button("Edit arguments").click()
    box = form.get_by_role("textbox")
    box.fill('{"headline": "A wet Monday", "copies": 70}')
    page.button("Approve with changes").click()
    expect(form).to_contain_text("copies: 70")
    expect(page.panel).to_contain_text("('A wet Monday', 70)")
