"""What axe-core says of everything that a notebook shows, in light and dark: nothing serious."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.browser.axe import violations
from tests.browser.scenes import FORM_SCENES, FRAME_SCENES, GRAPH_SCENES, SETUP, STEPPER_SCENES, Scene

pytest.importorskip("axe_playwright_python")

pytestmark = pytest.mark.usefixtures("flow_beside_the_notebooks")


def show_all(lab: Any, open_notebook: Any, scenes: Sequence[Scene]) -> Any:
    """One notebook with all scenes, on a page so high that all cells are in sight: others are not on the page either."""
    keep = "kept = [*globals().get('kept', ()), globals().get('panel')]"
    cells = [f"{scene.cell.replace('NODES', '5')}\n{keep if 'display' in scene.cell else ''}" for scene in scenes]
    lab.write("scenes", [SETUP, *cells])
    page = open_notebook("scenes", height=1000 * len(scenes))
    page.run_all()
    assert page.panel.locator("[data-mime-type='application/vnd.jupyter.error']").all_inner_texts() == []
    for scene in scenes:
        for name in scene.press:
            for button in page.button(name).all():
                if button.is_visible():
                    button.click()
    return page


def found_in_both_themes(page: Any, *selectors: str) -> list[str]:
    found = []
    for dark in (False, True):
        page.use_theme(dark=dark)
        page.settle()
        found += violations(page.page, *selectors)
    return found


def test_a_stepper_has_nothing_serious_in_any_state(lab: Any, open_notebook: Any) -> None:
    page = show_all(lab, open_notebook, STEPPER_SCENES)
    assert page.panel.locator(".abs-frame").count() == len(STEPPER_SCENES) - 1  # one is closed
    assert found_in_both_themes(page, ".abs-frame") == []


def test_forms_of_every_kind_have_nothing_serious(lab: Any, open_notebook: Any) -> None:
    page = show_all(lab, open_notebook, FORM_SCENES)
    assert found_in_both_themes(page, ".abf") == []


def test_graphs_tables_plots_and_progress_have_nothing_serious(lab: Any, open_notebook: Any) -> None:
    page = show_all(lab, open_notebook, (*FRAME_SCENES, *GRAPH_SCENES))
    assert found_in_both_themes(page, ".jp-Cell-outputArea") == []
