from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRun,
    handler,
    response_handler,
    run_sync,
)
from agentbench.notebook import lineage, timeline
from agentbench.notebook.runtime import settings
from agentbench.testing import CountingIds, TickingClock, set_runtime_defaults
from tests.parts.errors import raises

pytestmark = pytest.mark.usefixtures("counted")


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.request_info(text, bool)

    @response_handler
    async def told(self, request: str, answer: bool, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"{answer}")


class Show(Executor):
    @handler
    async def show(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)


async def reviewed(storage: Any = None, name: str = "ask") -> WorkflowRun:
    asks = Ask(name)
    workflow = WorkflowBuilder(start_executor=asks, name="w").add_edge(asks, Show("show")).build()
    run = workflow.start("Publish?", checkpoint_storage=storage or InMemoryCheckpointStorage())
    await run.result()
    await run.send_response(run.pending_requests[0].request_id, True)
    await run.result()
    return run


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter() if element.tag.endswith("}text")]


def test_a_timeline_shows_lanes_supersteps_and_questions():
    plot = timeline(run_sync(reviewed()))
    shown = words(plot.svg)
    assert {"ask", "show", "0", "2", "3", "request to a person", "completed", "real time"} <= set(shown)
    titles = [element.text or "" for element in parsed(plot.svg).iter() if element.tag.endswith("}title")]
    assert "ask, superstep 0: completed; 3 ms; waited 10 ms for a person; 1 in, 0 out; 1 request" in titles
    assert plot.svg.count('class="ab_await"') == 1  # the line from the question to the answer


def test_the_same_run_gives_the_same_picture_byte_for_byte():
    first = timeline(run_sync(reviewed())).svg
    set_runtime_defaults(clock=TickingClock(), ids=CountingIds())
    assert timeline(run_sync(reviewed())).svg == first


@pytest.mark.parametrize("make", [timeline, lineage])
def test_a_picture_is_complete_and_loads_nothing(make: Any):
    svg = make(run_sync(reviewed())).svg
    root = parsed(svg)
    assert root.get("role") == "img"
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert "prefers-color-scheme:dark" in svg
    for risky in ("<script", "<image", "href", "@import", "http://www.w3.org/1999/xlink", "url(http"):
        assert risky not in svg
    addresses = set(re.findall(r"https?://[^\"' ]+", svg))
    assert addresses == {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("make", [timeline, lineage])
def test_text_is_large_enough_and_the_picture_no_wider_than_requested(make: Any):
    root = parsed(make(run_sync(reviewed()), width=600).svg)
    assert root.get("width") == "600"
    sizes = [float(size) for size in re.findall(r"(?:font-size:|font:)([\d.]+)px", make(run_sync(reviewed())).svg)]
    assert min(sizes) >= 12
    for element in root.iter():
        if element.tag.endswith("}text"):
            assert 0 <= float(element.get("x", "0")) <= 600


@pytest.mark.parametrize("make", [timeline, lineage])
def test_a_plot_gives_pictures_and_text_to_a_front_end_and_nothing_else(make: Any):
    plot = make(run_sync(reviewed()))
    assert set(plot._repr_mimebundle_()) == {"image/svg+xml", "image/png", "text/plain"}
    assert set(plot._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert set(plot._repr_mimebundle_(exclude=["text/plain", "image/png"])) == {"image/svg+xml"}


def test_a_plot_is_saved_by_its_suffix(tmp_path: Path):
    plot = timeline(run_sync(reviewed()))
    assert plot.save(tmp_path / "t.svg").read_text(encoding="utf-8") == plot.svg
    assert plot.save(tmp_path / "t.TXT").read_text(encoding="utf-8") == plot.text
    assert plot.save(str(tmp_path / "t.csv")).read_text(encoding="utf-8").startswith("superstep,executor,start")
    with raises(ValueError, ".svg", ".txt", ".csv"):
        plot.save(tmp_path / "t.png")


def test_the_text_of_a_timeline_has_a_line_per_superstep():
    assert timeline(run_sync(reviewed())).text == (
        "timeline of run-1: supersteps 0 to 3, 2 executors, 22 ms\n"
        "superstep 0: ask (1 request, 3 ms, waited 10 ms for a person)\n"
        "superstep 1: nothing was delivered\n"
        "superstep 2: ask (1 ms)\n"
        "superstep 3: show (2 ms)"
    )


def test_comparable_notebooks_have_no_durations_in_text():
    before = settings.current().deterministic
    settings.configure(deterministic=True)
    try:
        text = timeline(run_sync(reviewed())).text
    finally:
        settings.configure(deterministic=before)
    assert not re.search(r"\d ?(ns|µs|ms|s|min|h)\b", text)
    assert "ask (1 request)" in text
