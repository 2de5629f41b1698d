"""The canary: if this fails, it is the tool chain and not agentbench."""

from __future__ import annotations

from typing import Any

CELLS = [
    "import ipywidgets as W",
    """
button = W.Button(description='Count')
label = W.HTML('<b class="count">count: 0</b>')
state = {'n': 0}
def on_click(_):
    state['n'] += 1
    label.value = f'<b class="count">count: {state["n"]}</b>'
button.on_click(on_click)
W.VBox([button, label])
""",
]


def test_a_click_on_a_plain_widget_reaches_python_and_comes_back(lab: Any, open_notebook: Any) -> None:
    from playwright.sync_api import expect

    lab.write("counter", CELLS)
    shown = open_notebook("counter")
    shown.run_all()
    for count in (1, 2, 3):
        shown.button("Count").click()
        expect(shown.panel.locator(".count")).to_have_text(f"count: {count}")
