"""Plots to work with: the switch of a timeline, the rows of a lineage, and pictures in cells."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect

CELL = """
from IPython.display import display
from agentbench import InMemoryCheckpointStorage
from agentbench.notebook import compare, configure, lineage, timeline, usage
from tests.notebook.graphs import research
configure(deterministic=True)
storage = InMemoryCheckpointStorage()
async def ran():
    run = research().start('bees', checkpoint_storage=storage)
    await run.result()
    return run
one, other = await ran(), await ran()
rows = lineage(one).panel()
display(timeline(one).panel(), rows)
told = display('nothing', display_id=True)
rows.on_select(lambda each: told.update(f'chose {each}'))
"""

PICTURES = """
from IPython.display import display
for each in (timeline(one), lineage(storage), usage(one), compare(one, other)): display(each)
"""


@pytest.fixture(params=[False, True], ids=["light", "dark"])
def plots(open_cells: Any, request: pytest.FixtureRequest) -> Any:
    return open_cells([CELL, PICTURES], dark=request.param)


def test_plots_are_worked_with_by_mouse_and_by_keyboard(plots: Any) -> None:
    notebook, keyboard = plots.panel, plots.page.keyboard
    expect(notebook.get_by_text("real time").nth(1)).to_be_visible()
    notebook.get_by_role("radio", name="equal steps").click()
    expect(notebook.get_by_role("radio", name="equal steps")).to_be_checked()
    expect(notebook.get_by_role("radio", name="equal steps")).to_be_focused()
    keyboard.press("ArrowLeft")
    expect(notebook.get_by_role("radio", name="real time")).to_be_checked()
    rows = notebook.locator("[data-item]")
    rows.nth(1).click()
    expect(notebook.get_by_text("chose cp-0002")).to_be_visible()
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    expect(notebook.get_by_text("chose cp-0003")).to_be_visible()
    expect(rows.nth(2)).to_have_attribute("aria-selected", "true")
    expect(notebook.locator(".jp-OutputArea-output img, .jp-RenderedSVG img")).to_have_count(5)
    plots.shot("plots", notebook)
