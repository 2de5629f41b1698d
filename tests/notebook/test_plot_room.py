"""Pictures stay readable whatever the length of a run: nothing overlaps, nothing leaves the picture."""

from __future__ import annotations

import itertools
import random
from typing import Any
from xml.etree import ElementTree

import pytest

from agentbench import CheckpointInfo, WorkflowEvent
from agentbench.notebook import lineage, timeline, usage
from agentbench.notebook.look.svg import text_width
from agentbench.workflows.events.events import EventStamps

SIZES = (1, 3, 30, 300, 3000)
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
