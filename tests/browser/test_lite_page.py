"""The site of `agentbench site` in a browser, where Python runs in the page: nothing leaves this machine.

All tests share one site: its build takes most of a minute, and it is kept for the next session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lite_site import LitePage, built_site, serving, write_notebook
from tests.browser.notebook_page import SAVE, Page
from tests.browser.page_parts import banner, expect, header
from tests.lite.pyodide_runtime import MissingRuntimeError, fetch_runtime
from tests.tools.refresh_notebooks import NOTEBOOKS

TOUR = [
    "02_supersteps",
    "03_edges_and_routing",
    "04_state",
    "06_human_in_the_loop",
    "09_async_in_notebooks",
    "11_agents_offline",
    "12_agents_in_workflows",
    "13_state_graph",
    "15_evaluation",
    "16_orchestrations",
]
SIZE = {"width": 1280, "height": 1000}

FLOW = """
from agentbench import Approval, Executor, FileCheckpointStorage, WorkflowBuilder, WorkflowContext
from agentbench import handler, response_handler
from agentbench.notebook import inbox, stepper

class Draft(Executor):
    @handler
    async def draft(self, topic: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("topic", topic)
        await ctx.send_message(f"A text about {topic}")

class Review(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info({"prompt": f"Publish '{text}'?"}, Approval)

    @response_handler
    async def decide(self, question: dict, answer: Approval, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{ctx.get_state('topic')}: {answer.approved}, {answer.reason}")

def flow():
    return WorkflowBuilder(name="review").connect(Draft(id="draft"), Review(id="review")).build()

storage = FileCheckpointStorage("kept")
"""
WORK = [
    FLOW,
    "panel = stepper(flow(), 'cats', storage=storage)\npanel",
    "runs = [flow().start('dogs'), flow().start('birds')]\nfor run in runs:\n    await run.result()\ninbox(*runs)",
    "print([(await run.result()).outputs for run in runs])",
    "panel.save('run.html').name",
]
KEPT = [
    FLOW,
    "run = flow().start('fish', checkpoint_storage=storage)\nprint((await run.result()).final_state)",
    "latest = await storage.get_latest(workflow_name='review')\n"
    "resumed = flow().start(resume_from=latest.checkpoint_id, checkpoint_storage=storage)\n"
    "await resumed.result()\n"
    "print(resumed.pending_requests[0].data['prompt'])",
    "await resumed.respond(resumed.pending_requests[0], Approval(True, 'at last'))\n"
    "print((await resumed.result()).outputs)",
    "print('as it was')",
]
LESSON = [
    "from grading import grade\nprint([grade(int(line)) for line in open('scores.txt')])",
    "from agentbench import WorkflowBuilder, WorkflowContext, executor\n"
    "from agentbench.notebook import events_frame\n"
    "@executor\n"
    "async def judge(score: int, ctx: WorkflowContext[str, str]) -> None:\n"
    "    await ctx.yield_output(grade(score))\n"
    "run = WorkflowBuilder(start_executor=judge, name='judge').build().start(71)\n"
    "print((await run.result()).outputs)",
    "events_frame(run)",
]


CELLS = {"work": WORK, "kept": KEPT, "lesson": LESSON}


@pytest.fixture(scope="module")
def base(chromium: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site."""
    for package in ("jupyterlite_core", "jupyterlite_pyodide_kernel", "pdoc"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    kept = getattr(request.config, "cache", None)
    cache = Path(kept.mkdir("lite")) if kept else tmp_path_factory.mktemp("lite")
    try:
        pyodide = fetch_runtime(cache).pyodide
    except MissingRuntimeError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"there is no Pyodide here: {error}")
    mine = tmp_path_factory.mktemp("notebooks")
    (mine / "scores.txt").write_text("85\n40\n")
    (mine / "grading.py").write_text("def grade(score):\n    return 'passed' if score >= 50 else 'failed'\n")
    notebooks = [write_notebook(mine / f"{name}.ipynb", cells) for name, cells in CELLS.items()]
    is_nightly = any(item.get_closest_marker("nightly") for item in request.session.items)  # named, or at night
    tour = sorted(NOTEBOOKS.glob("*.ipynb" if is_nightly else "01*.ipynb"))
    with serving(built_site(cache, pyodide, [*tour, *notebooks])) as address:
        yield address


@pytest.fixture
def open_lite(base: str, pages: Any) -> Iterator[Callable[..., LitePage]]:
    """Open a notebook of the site in a browser that knows nothing of other tests; asserts that nothing went wrong."""
    context = pages.context.browser.new_context(viewport=SIZE)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    opened: list[LitePage] = []

    def open_it(name: str, *, start: str | None = None) -> LitePage:
        opened.append(page := LitePage(context.new_page(), base, notebook=f"{name}.ipynb"))
        if start is None:
            page.open()
        else:
            page.page.goto(f"{base}/index.html")
            page.page.get_by_role("link", name=start).click()
            page.wait_until_ready()
        return page

    yield open_it
    context.close()
    assert [problem for page in opened for problem in page.problems_of_site()] == []
    assert any(url.endswith(".wasm") for url in asked)  # those of the kernel are among them
    assert [url for url in asked if not url.startswith((base, "data:", "blob:", "file:"))] == []


def test_the_first_notebook_is_opened_from_the_first_page_and_runs_to_its_end(open_lite: Any) -> None:
    page = open_lite("01_first_workflow", start="Open the workbench")
    page.run()
    assert page.errors() == []
    expect(header(page).last).to_contain_text("superstep 1")
    page.shot("lite-first")


@pytest.mark.nightly
@pytest.mark.parametrize("name", TOUR)
def test_notebooks_of_the_tour_run_to_their_end(open_lite: Any, name: str) -> None:
    page = open_lite(name)
    page.run()
    assert page.errors() == []


@pytest.mark.nightly
def test_a_run_is_stepped_answered_forked_and_saved_by_clicks(open_lite: Any, tmp_path: Path) -> None:
    page = open_lite("work")
    page.run(0, 1)
    for superstep in (0, 1):
        page.button("Step").click()
        expect(header(page)).to_contain_text(f"superstep {superstep}")
    asked = page.panel.locator(".abs-requests .abf")
    page.shot("lite-question")
    asked.get_by_label("Reason").fill("it is short")
    asked.get_by_role("button", name="Approve").click()
    page.button("Step").click()
    expect(header(page)).to_contain_text("finished")
    first = page.panel.locator(".abs-run").text_content()
    page.press("Back", "Back")  # to the question, past the checkpoint with its answer
    expect(banner(page)).to_contain_text("Viewing checkpoint 2 of 4")
    page.button("Fork").click()
    expect(page.panel.locator(".abs-run")).not_to_have_text(first)
    asked.get_by_role("button", name="Reject").click()
    page.button("Run").click()
    expect(header(page)).to_contain_text("finished")

    page.run(2)
    forms = page.panel.locator(".abi .abf")
    expect(forms).to_have_count(2)
    forms.first.get_by_role("button", name="Approve").click()
    expect(forms.first).to_contain_text("Answered")
    assert "[['dogs: True, '], []]" in page.run(3)

    assert "run.html" in page.run(4)
    saved = tmp_path / "run.html"
    saved.write_text(page.read("run.html"), encoding="utf-8")
    alone = page.page.context.new_page()
    alone.goto(saved.as_uri())
    expect(alone.locator(".abs-header")).to_contain_text("finished")
    alone.get_by_role("button", name="Back", exact=True).click()
    expect(alone.locator(".abs-header")).to_contain_text("waiting for an answer")


@pytest.mark.nightly
def test_checkpoints_and_edits_outlive_a_reload_and_a_closed_tab(open_lite: Any) -> None:
    page = open_lite("kept")
    assert "IDLE_WITH_PENDING_REQUESTS" in page.run(0, 1)
    cell = page.panel.locator(".jp-CodeCell").last
    cell.locator(".cm-content").click()
    page.page.keyboard.press("Control+a")
    page.page.keyboard.type("print('edited')")
    page.page.evaluate(SAVE)

    page.page.reload()
    page.wait_until_ready()
    expect(page.panel.locator(".jp-CodeCell").last).to_contain_text("edited")
    assert "Publish 'A text about fish'?" in page.run(0, 2)
    page.page.close()

    page = open_lite("kept")
    expect(page.panel.locator(".jp-CodeCell").last).to_contain_text("edited")
    assert "['fish: True, at last']" in page.run(0, 2, 3)


@pytest.mark.nightly
def test_a_lesson_finds_its_file_and_module_and_says_what_is_missing_for_a_table(open_lite: Any) -> None:
    page = open_lite("lesson")
    assert "['passed', 'failed']" in page.run(0)
    assert "['passed']" in page.run(1)
    said = page.run(2)
    assert "MissingExtraError" in said
    assert "%pip install pandas" in said


def test_pages_without_python_load_everything_that_they_ask_for(base: str, pages: Any) -> None:
    context = pages.context.browser.new_context(viewport=SIZE)
    page = Page(context.new_page(), base)
    failed: list[str] = []
    page.page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    page.page.on("requestfailed", lambda request: failed.append(request.url))
    page.page.goto(f"{base}/index.html")
    for name in ("Read the notebooks", "A first workflow"):
        page.page.get_by_role("link", name=name).click()
        page.page.wait_for_load_state("networkidle")
    live = page.page.get_by_role("link", name="Open it live").get_attribute("href")
    assert live.endswith("lab/lab/index.html?path=01_first_workflow.ipynb")
    for name in ("agentbench", "API reference"):
        page.page.get_by_role("link", name=name).first.click()
        page.page.wait_for_load_state("networkidle")
    expect(page.page.get_by_role("heading", name="agentbench", exact=True)).to_be_visible()
    context.close()
    assert page.problems == []
    assert failed == []
