"""A panel of many widgets as one: what travels between its page and its parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench import Approval, Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.notebook import as_anywidget, configure, form, stepper
from agentbench.notebook.runtime import widgets

SECRET = "correct-horse-battery-staple"


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info({"prompt": text}, Approval)

    @response_handler
    async def answered(self, asked: dict, answer: Approval, ctx: WorkflowContext[str, str]) -> None:  # type: ignore[type-arg]
        await ctx.yield_output("published" if answer else "rejected")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """All messages of the one widget, which its parts do not send by themselves."""
    found: list[dict[str, Any]] = []

    def send(self: Any, content: dict[str, Any], buffers: Any = None) -> None:
        json.dumps(content)  # it has to travel
        if type(self).__name__ == "_OneWidget":
            found.append(content)

    monkeypatch.setattr(widgets.MessageWidget, "send", send)
    return found


@pytest.fixture
def panel() -> Any:
    made = stepper(WorkflowBuilder(start_executor=Ask(id="ask"), name="flow").build(), SECRET)
    yield made
    made.close()


def leaves(tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The parts in a tree, by what they are: the part of a stepper, or the class."""
    if "children" in tree:
        return {name: each for child in tree["children"] for name, each in leaves(child).items()}
    return {tree.get("state", {}).get("part") or tree.get("module", "html"): tree}


def test_a_view_that_is_ready_gets_boxes_and_parts_with_their_modules(panel: Any, sent: list[dict[str, Any]]) -> None:
    one = as_anywidget(panel)
    assert one is as_anywidget(panel)
    one._on_message({"kind": "ready", "view": "v", "buffers": []})
    [tree] = [each for each in sent if each["kind"] == "tree"]
    parts = leaves(tree["root"])
    assert (tree["view"], sorted(parts)) == ("v", ["GraphPanel", "log", "side", "top"])
    assert "abs-frame" in tree["root"]["names"]
    assert all("export default" in part["script"] and part["sheet"] for part in parts.values())
    assert SECRET not in json.dumps(one.get_state(), default=str)  # traits are saved with a notebook


def test_presses_reach_their_part_and_questions_reach_the_page(panel: Any, sent: list[dict[str, Any]]) -> None:
    one = as_anywidget(panel)
    one._on_message({"kind": "ready", "view": "v", "buffers": []})
    parts = leaves(sent[-1]["root"])
    panel.run()
    panel._screen.page.draw()
    asked = [each for each in sent if each["kind"] == "children" and each["children"]][-1]
    assert [child["module"] for child in asked["children"]] == ["FormPanel"]
    graph = [each for each in sent if each["kind"] == "state" and each["part"] == parts["GraphPanel"]["id"]]
    assert any("patch" in each["state"] for each in graph)
    said = {"kind": "tell", "part": parts["top"]["id"], "buffers": []}
    one._on_message({**said, "content": {"kind": "press", "view": "v", "name": "back"}})
    one._on_message({**said, "content": "nonsense"})
    one._on_message({**said, "part": "unheard-of"})
    one._on_message({"kind": "set", "part": parts["GraphPanel"]["id"], "state": {"breakpoints": ["n0"]}, "buffers": []})
    assert [str(each.where) for each in panel.breakpoints] == ["ask"]
    one._on_message(
        {"kind": "set", "part": parts["GraphPanel"]["id"], "state": {"height": "tall", "svg": 3}, "buffers": []}
    )
    one._on_message({"kind": "set", "part": parts["GraphPanel"]["id"], "state": {"_esm": "alert(1)"}, "buffers": []})
    assert "alert" not in panel._screen.page.panel._esm


def test_what_is_one_widget_already_stays_it_and_closes_with_its_panel(panel: Any) -> None:
    question = form(bool, title="Sure?")
    assert as_anywidget(question) is question.widget
    assert question._display_() is question.widget
    one = panel._display_()
    assert one is as_anywidget(panel)
    panel.close()
    assert one.comm is None


def test_without_live_panels_a_picture_is_displayed(panel: Any) -> None:
    configure(live_graph=False)
    try:
        assert "flow" in panel._display_().text
    finally:
        configure(live_graph=True)
