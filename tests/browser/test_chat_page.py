"""A person talks with an agent, answers a handoff and an approval, and opens past runs, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.axe import violations
from tests.browser.page_parts import expect
from tests.browser.scenes import SETUP, TALK

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

RUNS = """
storage = InMemoryCheckpointStorage()
for topic in ("cats", "dogs"):
    await build(5).start(topic, checkpoint_storage=storage).result()
"""


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
