from __future__ import annotations

import itertools
import random
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import CheckpointInfo, WorkflowEvent
from agentbench.notebook import lineage, timeline, usage
from agentbench.notebook.history.run_history import ExecutorCall
from agentbench.notebook.look.svg import text_width
from agentbench.notebook.plots.timeline import lay_out
from agentbench.workflows.events.events import EventStamps
from tests.parts.nightly import nightly


def cp(number: int, parent: int | None, **more: Any) -> CheckpointInfo:
    previous = None if parent is None else f"cp-{parent}"
    return CheckpointInfo("w", f"cp-{number}", number, "", previous_checkpoint_id=previous, **more)


CHAIN = [cp(0, None, source="input"), cp(1, 0), cp(2, 1), cp(3, 2)]


def places(infos: list[CheckpointInfo]) -> list[tuple[float, float]]:
    """Where the sign of each line of a picture is: how far to the right, and how far down."""
    root = ElementTree.fromstring(lineage(infos, width=2000).svg)
    found = []
    for line in (each for each in root.iter() if "data-item" in each.attrib):
        (sign,) = [each for each in line if each.get("class", "").startswith(("ab_dot", "ab_edit"))]
        x, y = re.findall(r"-?[\d.]+", sign.get("d") or f"{sign.get('cx')} {float(sign.get('cy', 0)) - 7}")[:2]
        found.append((float(x), float(y)))
    return found


def test_a_chain_stays_in_one_column():
    assert len({x for x, _ in places(CHAIN)}) == 1


def test_a_fork_gets_a_column_of_its_own_beside_what_goes_on():
    columns = [x for x, _ in places([*CHAIN, cp(4, 1, source="update", forked_from="cp-1"), cp(5, 4), cp(6, 1)])]
    first, second, third = sorted(set(columns))
    assert columns == [first, first, first, first, second, second, third]


def test_long_stretches_are_folded_but_not_what_matters():
    infos = [cp(n, n - 1 if n else None, n_requests=n == 50, source="input" if n == 0 else "step") for n in range(200)]
    infos.append(cp(200, 100, source="fork", forked_from="cp-100"))
    signs = ("* cp-0", ": 49", "* cp-50", ": 49", "* cp-100", ": 49", "@ cp-150", ": 48", "* cp-199", "+ cp-200")
    lines = lineage(infos, current="cp-150").text.split("\n")[1:]
    assert [" ".join(line.split()[:2]) for line in lines] == list(signs)


def test_the_text_indents_branches_and_names_where_they_begin():
    infos = [*CHAIN, cp(4, 1, source="update", forked_from="cp-1", n_messages=2)]
    assert lineage(infos, current="cp-3").text.split("\n") == [
        "5 checkpoints, 1 fork",
        "* cp-0  superstep 0, input",
        "* cp-1  superstep 1",
        "* cp-2  superstep 2",
        "@ cp-3  superstep 3",
        "  + cp-4  superstep 4, update, 2 messages, from cp-1",
    ]


def test_the_text_indents_branches_of_one_checkpoint_equally_however_many_there_are():
    forks = [cp(n, 1, source="fork", forked_from="cp-1") for n in (4, 5, 6)]
    deeper = [cp(7, 6), cp(8, 6, source="fork", forked_from="cp-6")]
    assert lineage([*CHAIN, *forks, *deeper]).text.split("\n")[5:] == [
        "  + cp-4  superstep 4, fork, from cp-1",
        "  + cp-5  superstep 5, fork, from cp-1",
        "  + cp-6  superstep 6, fork, from cp-1",
        "  * cp-7  superstep 7",
        "    + cp-8  superstep 8, fork, from cp-6",
    ]


@given(st.lists(st.integers(0, 30), max_size=40))
def test_branches_never_share_a_column_at_the_same_height(choices: list[int]):
    infos = [cp(0, None), *(cp(n, min(choice, n - 1)) for n, choice in enumerate(choices, 1))]
    signs = places(infos)
    parents = [None, *(min(choice, n - 1) for n, choice in enumerate(choices, 1))]
    for at, parent in enumerate(parents):
        if parent is not None:  # its link runs down its column to its line: nothing else stands there on the way
            assert not [n for n in range(parent + 1, at) if signs[n][0] == signs[at][0]]


def test_questions_are_folded_too_where_there_are_very_many_and_counted():
    infos = [cp(n, n - 1 if n else None, n_requests=n % 2, source="input" if n == 0 else "step") for n in range(200)]
    words = "supersteps 1 to 198, 99 with requests"
    assert f": 198 checkpoints  {words}" in lineage(infos).text
    assert words in lineage(infos).svg


def test_branches_come_back_to_the_left_where_there_is_no_room_at_the_right():
    infos = [cp(0, None)]
    for n in range(1, 30, 2):  # each goes on from the one before the last, which had an heir already
        infos += [cp(n, n - 1), cp(n + 1, n - 1, source="fork", forked_from=f"cp-{n - 1}")]
    assert len({x for x, _ in places(infos)}) <= 11


# ---- timeline layout

MS = 1_000_000


def bar(superstep: int, executor: str, start: int | None, end: int | None, status: str = "completed") -> ExecutorCall:
    return ExecutorCall(superstep, executor, 0, start, end, status)


@st.composite
def runs(draw: st.DrawFn) -> list[ExecutorCall]:
    bars, at = [], draw(st.integers(0, 10**18))
    for superstep in range(draw(st.integers(0, 12))):
        for lane in range(draw(st.integers(1, 4))):
            end = draw(st.none() | st.integers(0, 10**12).map(lambda took, at=at: at + took))  # type: ignore[misc]
            bars.append(bar(superstep, f"e{lane}", at, end))
        at += draw(st.integers(0, 10**13))
    return bars


@given(runs(), st.sampled_from(["time", "step"]), st.floats(120, 2000))
def test_every_bar_is_drawn_once_and_inside_the_picture(bars: list[ExecutorCall], by: str, width: float):
    layout = lay_out(bars, width=width, by=by)  # type: ignore[arg-type]
    assert sum(len(mark.bars) for mark in layout.marks) == len(bars)
    for mark in layout.marks:
        assert mark.x >= -0.01
        assert mark.x + mark.width <= width + 0.01
        assert mark.width > 0
        assert {layout.lanes[mark.lane]} == {each.executor for each in mark.bars}


@given(runs())
def test_what_began_later_is_never_further_left(bars: list[ExecutorCall]):
    layout = lay_out(bars, width=600)
    if layout.by == "time":
        placed = sorted((mark.bars[0].start_ns or 0, mark.x) for mark in layout.marks)
        assert all(before[1] <= after[1] + 0.01 for before, after in itertools.pairwise(placed))


def test_widths_are_proportional_to_time():
    layout = lay_out([bar(0, "a", 0, 10 * MS), bar(1, "b", 10 * MS, 40 * MS)], width=400)
    assert [mark.width for mark in layout.marks] == pytest.approx([100, 300])
    assert (layout.by, layout.breaks) == ("time", [])


def test_a_long_pause_is_cut_out_and_named():
    minutes = 300_000 * MS
    layout = lay_out([bar(0, "a", 0, 10 * MS), bar(1, "a", minutes, minutes + 10 * MS)], width=430)
    (cut,) = layout.breaks
    assert (cut.x, cut.width) == pytest.approx((200, 30))
    assert cut.ns == minutes - 10 * MS
    assert [mark.width for mark in layout.marks] == pytest.approx([200, 200])
    assert all(not cut.x < x < cut.x + cut.width for x, _ in layout.ticks)


def test_work_that_has_not_ended_lasts_to_the_end_of_what_is_known():
    layout = lay_out([bar(0, "a", 0, None, "running"), bar(0, "b", 0, 50, "completed")], width=100)
    assert [mark.width for mark in layout.marks] == [100, 100]


@pytest.mark.parametrize("by", ["time", "step"])
def test_many_bars_are_folded_into_columns_with_the_status_that_asks_for_attention(by: str):
    bars = [bar(n, "a", n * MS, n * MS + MS // 2, "failed" if n == 2500 else "completed") for n in range(5000)]
    layout = lay_out(bars, width=600, by=by)  # type: ignore[arg-type]
    assert len(layout.marks) <= 2000
    assert layout.per_column > 1
    assert [mark.status for mark in layout.marks].count("failed") == 1
    assert (layout.bands[0].first, layout.bands[-1].last) == (0, 4999)


# ---- plot room

SIZES = (1, 3, 30, 300, nightly(3000))
NAMES = ("plan", "search", "a rather long name of an executor that must be cut", "review")


def events(supersteps: int) -> list[WorkflowEvent[Any]]:
    rng = random.Random(supersteps)
    made: list[WorkflowEvent[Any]] = []
    at = 0
    for step in range(supersteps):
        for name in rng.sample(NAMES, 2):
            used = {"model": name, "usage": {"input_token_count": rng.randrange(9000), "output_token_count": 7}}
            three: list[WorkflowEvent[Any]] = [
                WorkflowEvent.executor_invoked(name),
                WorkflowEvent("model_usage", used, executor_id=name),
                WorkflowEvent.executor_completed(name),
            ]
            for event in three:
                event._stamps = EventStamps(len(made) + 1, "run-1", step, at)
                at += rng.randrange(10**9)
                made.append(event)
    return made


def infos(count: int) -> list[CheckpointInfo]:
    rng = random.Random(count)
    made: list[CheckpointInfo] = []
    for n in range(count):
        fork = n > 2 and rng.random() < 0.06
        parent = None if n == 0 else f"cp-{rng.randrange(n) if fork else n - 1}"
        source = "fork" if fork else "step"
        more: dict[str, Any] = {"n_messages": rng.randrange(3), "n_requests": int(n % 7 == 3), "source": source}
        made.append(
            CheckpointInfo("w", f"cp-{n}", n, "", previous_checkpoint_id=parent, run_id=f"run-{n // 50}", **more)
        )
    return made


def lines(svg: str) -> dict[float, list[tuple[float, float, str]]]:
    """Texts by their height: where each begins and ends, and what it says."""
    found: dict[float, list[tuple[float, float, str]]] = {}
    for each in ElementTree.fromstring(svg).iter():
        if each.tag.endswith("}text"):
            said = "".join(each.itertext())
            size = 12.0 if "ab_small" in each.get("class", "") else 13.0
            wide, x = text_width(said, size), float(each.attrib["x"])
            start = {"end": x - wide, "middle": x - wide / 2}.get(each.get("text-anchor", ""), x)
            found.setdefault(float(each.attrib["y"]), []).append((start, start + wide, said))
    return found


def pictures(size: int) -> dict[str, str]:
    run, chain = events(size), infos(size)
    prices = dict.fromkeys(NAMES, (1.0, 2.0))
    return {
        "timeline": timeline(run).svg,
        "timeline by step": timeline(run, by="step").svg,
        "lineage": lineage(chain, current=chain[-1]).svg,
        "narrow lineage": lineage(chain, width=560).svg,
        "usage": usage(run, prices=prices).svg,
        "usage by executor": usage(run, by="executor", prices=prices).svg,
        "usage without prices": usage(run).svg,
    }


@pytest.mark.parametrize("size", SIZES)
def test_texts_in_one_line_do_not_overlap(size: int):
    for name, svg in pictures(size).items():
        for said in lines(svg).values():
            for before, after in itertools.pairwise(sorted(said)):
                assert before[1] <= after[0] + 2, (name, before, after)


@pytest.mark.parametrize("size", SIZES)
def test_nothing_that_is_said_leaves_the_picture(size: int):
    for name, svg in pictures(size).items():
        width = float(ElementTree.fromstring(svg).attrib["width"])
        for start, end, said in itertools.chain.from_iterable(lines(svg).values()):
            assert -2 <= start < end <= width + 2, (name, said)


@pytest.mark.parametrize("size", SIZES)
def test_pictures_stay_small_however_long_a_run_was(size: int):
    for name, svg in pictures(size).items():
        root = ElementTree.fromstring(svg)
        assert float(root.attrib["width"]) <= 1100, name
        assert float(root.attrib["height"]) <= 5000, name
        assert len(svg) <= 500_000, name


def test_a_short_chain_makes_a_small_picture():
    root = ElementTree.fromstring(lineage(infos(3)).svg)
    assert float(root.attrib["width"]) < 420


def test_numbers_of_supersteps_are_round_where_not_all_have_room():
    said = lines(timeline(events(300), by="step").svg)
    (numbers,) = [
        [int(word) for _, _, word in sorted(line) if word.isdecimal()]
        for line in said.values()
        if any(word == "superstep" for _, _, word in line)
    ]
    assert len(numbers) > 5
    assert len({after - before for before, after in itertools.pairwise(numbers)}) == 1
    assert all(number % 10 == 0 for number in numbers)
