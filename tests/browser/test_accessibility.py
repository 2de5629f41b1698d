"""What axe-core says of everything that a notebook shows, in light and dark: nothing serious."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.browser.axe import violations
from tests.browser.page_parts import expect
from tests.browser.scenes import (
    FORM_SCENES,
    FRAME_SCENES,
    GRAPH,
    GRAPH_SCENES,
    OVERLAYS,
    SETUP,
    STEPPER,
    STEPPER_SCENES,
    Scene,
)

pytest.importorskip("axe_playwright_python")


def cells_of(scenes: Sequence[Scene]) -> list[str]:
    keep = "kept = [*globals().get('kept', ()), globals().get('panel')]"
    return [
        SETUP,
        *(f"{scene.cell.replace('NODES', '5')}\n{keep if 'display' in scene.cell else ''}" for scene in scenes),
    ]


def show_all(open_cells: Any, scenes: Sequence[Scene]) -> Any:
    """One page with all scenes."""
    page = open_cells(cells_of(scenes))
    for number, scene in enumerate(scenes):
        page.press(*scene.press, within=page.panel.locator(".jp-Cell").nth(number + 1))
    return page


def found_in_both_themes(page: Any, *selectors: str, without: Sequence[str] = ()) -> list[str]:
    found = []
    for dark in (False, True):
        page.use_theme(dark=dark)
        page.settle()
        found += violations(page.page, *selectors, without=without)
    return found


@pytest.mark.nightly
def test_a_stepper_has_nothing_serious_in_any_state(open_cells: Any) -> None:
    open_ones = [scene for scene in STEPPER_SCENES if scene.shown == STEPPER and scene not in OVERLAYS]
    page = show_all(open_cells, open_ones)
    expect(page.panel.locator(STEPPER)).to_have_count(len(open_ones), timeout=30_000)
    assert found_in_both_themes(page, STEPPER) == []


@pytest.mark.nightly
def test_menus_and_dialogs_above_a_stepper_have_nothing_serious(open_cells: Any) -> None:
    page = show_all(open_cells, [OVERLAYS[-2]])
    found = []
    for scene in OVERLAYS:
        page.page.keyboard.press("Escape")
        page.press(*scene.press)
        found += found_in_both_themes(page, STEPPER)
    assert found == []


def test_forms_of_every_kind_have_nothing_serious(open_cells: Any) -> None:
    page = show_all(open_cells, FORM_SCENES)
    assert found_in_both_themes(page, ".abf") == []


# JupyterLab shows a stored SVG as an image, and has no way to give it a text; the text lies beside it in the output.
# The boxes in which it scrolls wide tables are its own, too. And ipywidgets gives the handles of its sliders no name.
NOT_OURS = ("image-alt", "scrollable-region-focusable", "aria-input-field-name")


@pytest.mark.nightly
def test_tables_plots_and_graphs_have_nothing_serious(open_cells: Any) -> None:
    graphs = [scene for scene in GRAPH_SCENES if scene.name != "progress"]
    page = show_all(open_cells, (*FRAME_SCENES, *graphs))
    page.panel.locator("table").first.wait_for()
    assert page.panel.locator(".jp-OutputArea-output").count() >= len(FRAME_SCENES)
    assert found_in_both_themes(page, ".jp-Cell-outputArea", without=NOT_OURS) == []
    assert found_in_both_themes(page, GRAPH) == []


@pytest.mark.nightly
def test_graphs_progress_and_a_few_outputs_in_jupyterlab_have_nothing_serious(lab: Any, open_notebook: Any) -> None:
    plain = [scene for scene in STEPPER_SCENES if scene.name == "stepper-plain"]
    outputs = [scene for scene in FRAME_SCENES if scene.name in ("frame-messages", "plot-timeline", "plot-diff")]
    scenes = (*outputs, *GRAPH_SCENES, *plain)
    lab.write("scenes", cells_of(scenes))
    page = open_notebook("scenes", height=1000 * len(scenes))  # so high that all are in sight: others are not on it
    page.run_all()
    assert found_in_both_themes(page, ".jp-Cell-outputArea", without=NOT_OURS) == []
    assert found_in_both_themes(page, GRAPH) == []
