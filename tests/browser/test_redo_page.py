"""A changed cell: the panel above it says so, and a click does the run again."""

from __future__ import annotations

from typing import Any

from tests.browser.page_parts import banner, expect, header
from tests.browser.scenes import REDO_CELL, SETUP

CHANGED = """
@executor
async def finish(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text + "!")
"""


def test_a_panel_notices_a_changed_cell_and_redoes_the_run_without_a_model(lab: Any, open_notebook: Any) -> None:
    lab.write("redo", [SETUP, f"{REDO_CELL}\npanel", CHANGED])
    page = open_notebook("redo")
    page.run_all()
    expect(banner(page)).to_contain_text("finish changed after superstep 2 ran.")
    page.button("Redo from superstep 2").click()
    # The model would have said "Answer 1".
    expect(banner(page)).to_contain_text("Answer 0! Before the redo: Answer 0.")
    expect(header(page)).to_contain_text("finished")
