"""A workflow written in cells, in a real JupyterLab: executors, the text of the graph, a mistake, a redefinition."""

from __future__ import annotations

from typing import Any

CELLS = [
    "%load_ext agentbench\nfrom agentbench import WorkflowContext",
    "%%executor\nasync def load(topic: str) -> str:\n    return f'a draft about {topic}'",
    "%%executor\nasync def check(draft: str) -> str:\n    return draft.strip()",
    "%%executor id=publish\nasync def release(draft: str, ctx: WorkflowContext[None, str]) -> None:\n"
    "    await ctx.yield_output(draft)",
    "def is_short(draft: str) -> bool:\n    return len(draft) < 10",
    "%%workflow desk\nload -> check               # read it first\ncheck -> load if is_short else release",
    "(await desk.run('cats')).get_outputs()",
    "print(desk.to_python())",
    "%%executor\nasync def check(draft: str) -> str:\n    return draft.strip().title()",
    "%%workflow wrong\nload -> chek",
]


def test_a_workflow_can_be_written_in_cells(lab: Any, open_notebook: Any) -> None:
    lab.write("cells", CELLS)
    page = open_notebook("cells", height=1900)
    page.run_all(finished=False)
    page.panel.get_by_text("Did you mean 'check'?").last.wait_for()
    shown = page.panel.inner_text()
    for text in (
        "takes str",
        "variable release",
        "a draft about cats",
        ".switch(check, [Case(is_short, load)",
        "Older code",
    ):
        assert text in shown
    assert "Traceback" not in shown
    assert page.panel.locator(".jp-OutputArea img, .jp-OutputArea svg").count() >= 1
    page.shot("cells")
