"""A run as one file to hand around: what it shows after each superstep, and what is never in it."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRun,
    handler,
    response_handler,
    run_sync,
)
from agentbench.exceptions import MissingExtraError
from agentbench.notebook import configure, stepper
from tests.notebook.attacks import ATTACKS
from tests.parts.errors import raises

SECRET = "correct-horse-battery-staple"


@dataclass
class Question:
    prompt: str
    api_key: str = SECRET


class Count(Executor):
    """Sends what it gets, one more, to itself or on."""

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int | str]) -> None:
        ctx.set_state("count", {"number": number, "password": SECRET, "seen": list(range(number))})
        await ctx.send_message(number + 1 if number < 2 else "done")


class Ask(Executor):
    broken = False

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        if self.broken:
            raise ValueError("no more paper")
        await ctx.request_info(Question(f"Print {text}?"), bool)

    @response_handler
    async def answered(self, asked: Question, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("printed", ok)
        await ctx.yield_output(asked.prompt)


def flow(*, broken: bool = False) -> Workflow:
    count, ask = Count(id="count"), Ask(id="ask")
    ask.broken = broken
    builder = WorkflowBuilder(start_executor=count, name="counting")
    return builder.add_edge(count, count).add_edge(count, ask).build()


def run_to_end(run: WorkflowRun, *answers: Any) -> WorkflowRun:
    """Drive a run to its end or its failure, with answers to its requests."""

    async def drive() -> None:
        await run.result()
        for answer in answers:
            await run.respond(run.pending_requests[0], answer)
            await run.result()

    run_sync(drive())
    return run


class Saved:
    """What the page of a saved run shows, frame by frame."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        found = re.search(r'<script type="application/json" id="run">(.*?)</script>', self.text, re.DOTALL)
        assert found is not None
        self.content: dict[str, Any] = json.loads(found[1])
        self.frames: list[dict[str, Any]] = self.content["frames"]

    def part(self, place: int) -> Any:
        return self.content["parts"][place]

    @property
    def headers(self) -> list[tuple[str, str]]:
        views = [self.part(frame["view"]) for frame in self.frames]
        return [(view["header"]["superstep"], view["header"]["status"]) for view in views]

    @property
    def banners(self) -> list[str]:
        return [self.part(frame["view"])["banner"]["text"] for frame in self.frames]

    def title(self, frame: int, tab: str) -> str:
        title: str = self.part(self.frames[frame]["tabs"][tab])["title"]
        return title

    def rows(self, frame: int, tab: str) -> dict[str, str]:
        places = self.part(self.part(self.frames[frame]["tabs"][tab])["rows"])
        return {row[0]: row[2] for row in map(self.part, places)}

    def states(self, frame: int) -> list[str]:
        return list(self.part(self.frames[frame]["states"]).values())


def test_there_is_a_frame_for_the_start_and_for_each_superstep(tmp_path: Path) -> None:
    run = run_to_end(flow().start(0, checkpoint_storage=InMemoryCheckpointStorage()), True)
    saved = Saved(run.save(tmp_path / "run.html"))
    assert saved.headers == [
        ("no superstep yet", "ready"),
        ("superstep 0", "in progress"),
        ("superstep 1", "in progress"),
        ("superstep 2", "in progress"),
        ("superstep 3", "waiting for an answer"),
        ("superstep 4", "finished"),
    ]
    assert (saved.title(0, "state"), saved.rows(0, "state")) == ("The input, before superstep 0", {"input": "0"})
    assert saved.banners[0] == "Superstep 0 is next: the input goes to count."
    assert saved.banners[3] == "Superstep 3 is next: ask gets 1 message."
    assert saved.banners[5] == "Finished. Output: Print done?"
    assert saved.rows(0, "messages") == {"Workflow → count": "0"}
    assert saved.rows(2, "messages") == {"count → count": "2"}
    assert saved.rows(3, "messages") == {"count → ask": "done"}
    assert saved.rows(2, "state")["count"] == "{'number': 1, 'password': •••, 'seen': [0]}"
    assert saved.rows(5, "state")["printed"] == "True"
    assert "output" in saved.title(4, "output")
    assert list(saved.rows(5, "output").values()) == ["Print done?"]
    assert "Checkpoint 2 (superstep 1) compared with 1" in saved.title(2, "diff")
    assert "waiting" in saved.states(4)
    assert "waiting" not in saved.states(5)
    lines = [saved.content["log"][: frame["total"]] for frame in saved.frames]
    assert lines[0] == []
    assert lines[1] == [["step", "superstep 0: count got 1 message"]]
    assert lines[5][-1] == ["text", "output of ask: Print done?"]


def test_a_run_that_waits_shows_its_question(tmp_path: Path) -> None:
    run = run_to_end(flow().start(2, checkpoint_storage=InMemoryCheckpointStorage()))
    saved = Saved(run.save(tmp_path / "run.html"))
    assert saved.headers[-1] == ("superstep 1", "waiting for an answer")
    assert saved.banners[-1] == "ask asks: Question(prompt='Print done?', api_key=•••)"


def test_a_question_shows_itself_as_in_a_cell_and_is_open_at_first(tmp_path: Path) -> None:
    class AskTable(Executor):
        @handler
        async def ask(self, rows: int, ctx: WorkflowContext) -> None:
            await ctx.request_info(pd.DataFrame({"word": ["end"] * rows}), bool)

        @response_handler
        async def on_answer(self, asked: pd.DataFrame, answer: bool, ctx: WorkflowContext) -> None:
            """Takes any answer."""

    run = run_to_end(WorkflowBuilder(start_executor=AskTable(id="ask")).build().start(2))
    saved = Saved(run.save(tmp_path / "run.html"))
    assert saved.content["tab"] == "request"
    assert saved.title(-1, "request") == "1 request"
    [place] = saved.part(saved.frames[-1]["tabs"]["request"])["displays"]
    _, caption, media, html = saved.part(place)
    assert (caption, media) == ("ask asks: DataFrame", "text/html")
    assert "<table" in html


def test_a_run_that_failed_shows_its_error_and_no_way_to_retry(tmp_path: Path) -> None:
    run = flow(broken=True).start(2, checkpoint_storage=InMemoryCheckpointStorage())
    with raises(ValueError, "no more paper"):
        run_to_end(run)
    saved = Saved(run.save(tmp_path / "run.html"))
    assert saved.headers[-1] == ("superstep 1", "failed")
    assert saved.banners[-1] == "ask failed: ValueError: no more paper"
    assert "failed" in saved.states(-1)
    assert "raise ValueError" in saved.part(saved.frames[-1]["view"])["banner"]["details"]
    assert saved.rows(-1, "state")["count"].startswith("{'number': 2")  # what it had reached


def test_a_run_that_has_not_begun_and_one_that_paused_show_what_is_next(tmp_path: Path) -> None:
    run = flow().start(0)
    saved = Saved(run.save(tmp_path / "run.html"))
    assert saved.headers == [("no superstep yet", "ready")]
    assert saved.rows(0, "messages") == {"Workflow → count": "0"}
    run_sync(run.step())
    saved = Saved(run.save(tmp_path / "run.html"))
    assert saved.headers[-1] == ("superstep 0", "paused")
    assert saved.rows(-1, "messages") == {"count → count": "1"}


def test_without_checkpoints_the_state_is_that_of_the_events(tmp_path: Path) -> None:
    saved = Saved(run_to_end(flow().start(1), True).save(tmp_path / "run.html"))
    assert saved.rows(1, "state")["count"].startswith("{'number': 1")
    assert saved.rows(2, "state")["count"].startswith("{'number': 2")
    assert saved.title(2, "diff") == "No checkpoint yet, nothing to compare"
    assert "ran" in saved.states(3)
    element = next(iter(saved.frames[-1]["nodes"]))  # of the first executor, which ran long before
    assert ["now", "ran before"] in saved.part(saved.frames[-1]["nodes"][element])["facts"]


def test_a_run_without_checkpoints_and_observation_says_that_its_state_is_not_known(tmp_path: Path) -> None:
    run = run_to_end(flow().start(1, options=unobserved()), True)
    saved = Saved(run.save(tmp_path / "run.html"))
    assert [status for _, status in saved.headers][-1] == "finished"
    assert saved.title(2, "state") == "The state is not known: this run saved no checkpoints"


def unobserved() -> Any:
    from agentbench.workflows.executors.options import RunOptions

    return RunOptions(observe=False)


def test_a_step_that_failed_and_was_taken_again_is_shown_twice(tmp_path: Path) -> None:
    workflow = flow(broken=True)
    panel = stepper(workflow, 2)
    panel.run()
    vars(workflow.executors["ask"])["broken"] = False
    panel.step()
    saved = Saved(panel.save(tmp_path / "run.html"))
    panel.close()
    assert [status for _, status in saved.headers] == ["ready", "in progress", "failed", "waiting for an answer"]


def test_a_stepper_saves_what_led_to_now_and_nothing_of_the_other_branch(tmp_path: Path) -> None:
    panel = stepper(flow(), 0)
    panel.run()
    panel.goto(panel.checkpoints[1])
    panel.edit("count.number", 77)
    panel.step()
    saved = Saved(panel.save(tmp_path / "run.html"))
    panel.close()
    assert [superstep for superstep, _ in saved.headers] == [
        "no superstep yet",
        "superstep 0",
        "superstep 1",
        "superstep 2",
    ]
    assert len(panel.reports) == 5  # the branch that was left is in the stepper, and not in the file


def test_secrets_are_not_in_the_file(tmp_path: Path) -> None:
    run = run_to_end(flow().start(0, checkpoint_storage=InMemoryCheckpointStorage()), True)
    assert SECRET not in run.save(tmp_path / "run.html").read_text(encoding="utf-8")


class Leak(Executor):
    """Tells a secret that it was sent in all places where texts are free."""

    @handler
    async def leak(self, config: dict[str, str], ctx: WorkflowContext[str, pd.DataFrame]) -> None:
        key = config["api_key"]
        print(f"calling with {key}")
        print("then with Authorization: Bearer 77-only-in-the-log")
        await ctx.yield_output(pd.DataFrame({"user": ["Ada"], "password": ["shown <only> here"]}))
        await ctx.yield_output(pd.DataFrame({"notes": [f"sent {key}"]}))
        raise ValueError(f"{key} was refused; token='in-the-error-alone'")


def test_secrets_are_masked_in_log_traceback_message_and_html_of_outputs(tmp_path: Path) -> None:
    key = 'sk-"quoted" & <long>-1234'
    run = WorkflowBuilder(start_executor=Leak(id="leak")).build().start({"api_key": key})
    with raises(ValueError, "refused"):
        run_to_end(run)
    saved = Saved(run.save(tmp_path / "run.html"))
    assert "••• was refused" in saved.banners[-1]
    assert ["text", "leak: calling with •••"] in saved.content["log"]
    displays = [saved.part(each) for each in saved.part(saved.frames[-1]["tabs"]["output"])["displays"]]
    assert len(displays) == 2
    assert all("•••" in html for _, _, _, html in displays)
    for secret in ("quoted", "shown", "77-only", "in-the-error"):
        assert secret not in json.dumps(saved.content)


def test_hostile_texts_stay_within_the_data_of_the_file(tmp_path: Path) -> None:
    class Evil(Executor):
        @handler
        async def go(self, texts: list[str], ctx: WorkflowContext[list[str], str]) -> None:
            for number, text in enumerate(texts):
                ctx.set_state(text or str(number), {text: [text]})
            await ctx.yield_output(" ".join(texts))

    plain = run_to_end(flow().start(2)).save(tmp_path / "plain.html").read_text(encoding="utf-8")
    workflow = WorkflowBuilder(start_executor=Evil(id=ATTACKS[0]), name=ATTACKS[1]).build()
    text = run_to_end(workflow.start(ATTACKS)).save(tmp_path / "run.html").read_text(encoding="utf-8")
    assert text.count("<script") == plain.count("<script")
    assert text.count("</script") == plain.count("</script")
    assert not re.search(r"<img|<iframe(?! )|<svg[^>]*onload", text.replace("`<style>", ""))


def test_the_page_may_run_its_own_script_and_load_nothing(tmp_path: Path) -> None:
    text = run_to_end(flow().start(2)).save(tmp_path / "run.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "script-src 'sha256-" in policy[1]
    assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}  # the name of SVG


@pytest.mark.nightly
def test_fifty_supersteps_with_tables_and_states_stay_below_a_megabyte(tmp_path: Path) -> None:
    class Grow(Executor):
        @handler
        async def grow(self, table: pd.DataFrame, ctx: WorkflowContext[pd.DataFrame]) -> None:
            means = table.mean().round(3).to_dict()
            ctx.set_state("means", means)
            ctx.set_state("history", [*(ctx.get_state("history") or []), means])
            if len(ctx.get_state("history")) <= 50:
                await ctx.send_message(table + 1)

    grow = Grow(id="grow")
    workflow = WorkflowBuilder(start_executor=grow, name="growing", max_iterations=60).add_edge(grow, grow).build()
    table = pd.DataFrame({f"column {n}": range(n, n + 100) for n in range(6)})
    run = run_to_end(workflow.start(table, checkpoint_storage=InMemoryCheckpointStorage()))
    path = run.save(tmp_path / "run.html")
    assert len(Saved(path).frames) == 52
    assert path.stat().st_size < 1_000_000


@pytest.mark.nightly
def test_what_is_large_is_cut_and_says_so(tmp_path: Path) -> None:
    class Large(Executor):
        @handler
        async def go(self, size: int, ctx: WorkflowContext[str, list[Any]]) -> None:
            inside: list[Any] = []
            inside.append(inside)
            ctx.set_state("matrix", [[f"{row} {n}" for n in range(size)] for row in range(size)])
            ctx.set_state("text", "word " * 100_000)
            await ctx.yield_output(inside)

    run = run_to_end(WorkflowBuilder(start_executor=Large(id="large")).build().start(300))
    path = run.save(tmp_path / "run.html")
    assert "more are not in this file" in Saved(path).text
    assert path.stat().st_size < 1_000_000


def test_the_same_run_gives_the_same_file_and_the_time_only_where_times_differ_anyway(tmp_path: Path) -> None:
    run = run_to_end(flow().start(2))
    assert re.search(r"A saved run of counting, \d{4}-\d\d-\d\d ", Saved(run.save(tmp_path / "run.html")).text)
    configure(deterministic=True)
    texts = [Saved(run_to_end(flow().start(2)).save(tmp_path / "run.html")).text for _ in range(2)]
    assert "A saved run of counting. " in texts[0]
    assert texts[0].replace("run-1", "").replace("run-2", "") == texts[1].replace("run-1", "").replace("run-2", "")


def test_without_the_notebook_extra_an_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = flow().start(2)
    for name in [each for each in sys.modules if each.startswith("agentbench.notebook.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with raises(MissingExtraError, "notebook"):
        run.save(tmp_path / "run.html")


@pytest.mark.parametrize("forked", ["stepper", "run"])
def test_a_fork_includes_the_steps_before_it(forked: str, tmp_path: Path) -> None:
    panel = stepper(flow(), 0)
    panel.run()
    if forked == "stepper":
        fork: Any = panel.fork(panel.checkpoints[1], edits={"count.number": 77})
        fork.run()
    else:
        fork = run_sync(panel.handle.fork(panel.checkpoints[1], state_updates={"count": {"number": 77}}))
        run_sync(fork.result())
    saved = Saved(fork.save(tmp_path / "fork.html"))
    panel.close()
    assert [superstep for superstep, _ in saved.headers] == [
        "no superstep yet", "superstep 0", "superstep 1", "superstep 2", "superstep 3",
    ]  # fmt: skip
    assert saved.rows(1, "messages") or saved.rows(1, "events")
    assert saved.rows(2, "state")["count"].startswith("{'number': 1")
    assert saved.headers[-1][1] == "waiting for an answer"


@pytest.mark.parametrize("again", [False, True], ids=["same process", "another process"])
def test_a_page_of_a_branch_lets_its_reader_change_the_values_of_the_branch(again: bool, tmp_path: Path) -> None:
    storage = InMemoryCheckpointStorage()
    first = run_to_end(flow().start(0, checkpoint_storage=storage))
    run = run_to_end(run_sync(first.fork(first.checkpoints[1], state_updates={"count": {"number": 77}})))
    if again:
        run = run_to_end(flow().start(resume_from=run.started_from, checkpoint_storage=storage))
    page = run.save(tmp_path / "run.html", editable=True).read_text(encoding="utf-8")
    found = re.search(r'id="sheet">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    sheet = json.loads(found[1])
    assert sheet["frames"][2] == run.started_from
    places = [sheet["places"][place] for place in sheet["checkpoints"][run.started_from]["places"]]
    assert ("count.number", "77") in [(place[1], place[4]) for place in places]


def test_what_only_checkpoints_tell_of_the_steps_before_is_included(tmp_path: Path) -> None:
    storage = InMemoryCheckpointStorage()
    first = run_to_end(flow().start(0, checkpoint_storage=storage))
    asked = first.checkpoints[-1].checkpoint_id
    del first
    run = flow().start(resume_from=asked, checkpoint_storage=storage)
    run_to_end(run, True)
    saved = Saved(run.save(tmp_path / "run.html"))
    assert saved.headers[:5] == [
        ("no superstep yet", "ready"), ("superstep 0", "in progress"), ("superstep 1", "in progress"),
        ("superstep 2", "in progress"), ("superstep 3", "waiting for an answer"),
    ]  # fmt: skip
    assert saved.rows(2, "state")["count"].startswith("{'number': 1")
    assert saved.headers[-1] == ("superstep 5", "finished")


def test_a_chain_whose_beginning_was_deleted_begins_with_its_first_checkpoint(tmp_path: Path) -> None:
    storage = InMemoryCheckpointStorage()
    first = run_to_end(flow().start(0, checkpoint_storage=storage))
    run_sync(storage.delete(first.checkpoints[0].checkpoint_id))
    run = run_to_end(flow().start(resume_from=first.checkpoints[2].checkpoint_id, checkpoint_storage=storage))
    saved = Saved(run.save(tmp_path / "run.html"))
    assert [superstep for superstep, _ in saved.headers] == ["superstep 1", "superstep 2", "superstep 3"]
    assert saved.rows(0, "state")["count"].startswith("{'number': 1")
