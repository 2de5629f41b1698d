from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import pytest

from agentbench import WorkflowEvent
from agentbench.notebook import usage
from agentbench.workflows.events.events import EventStamps

PRICES = {"small": (1.0, 2.0), "large": (10.0, 20.0)}


def events(calls: int, *, executor: str = "a", model: str = "small", cached: int = 0) -> list[WorkflowEvent[Any]]:
    made: list[WorkflowEvent[Any]] = []
    for step in range(calls):
        counts = {"input_token_count": 100 * (step + 1), "output_token_count": 50, "cached_token_count": cached}
        event: WorkflowEvent[Any] = WorkflowEvent(
            "model_usage", {"model": model, "usage": counts}, executor_id=executor
        )
        event._stamps = EventStamps(step + 1, "run-1", step, step * 10**6)
        made.append(event)
    return made


def elements(svg: str, tag: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(svg).iter() if each.tag.rpartition("}")[2] == tag]


def words(svg: str) -> list[str]:
    return [each.text or "" for each in elements(svg, "text")]


def test_the_text_is_a_table_with_a_sum():
    assert usage(events(3), prices=PRICES).text == (
        "usage of run-1: 3 model calls, 600 tokens in, 150 out, cost 0.000900\n"
        "superstep  calls   in  out  cached      cost\n"
        "        0      1  100   50       0  0.000200\n"
        "        1      1  200   50       0  0.000300\n"
        "        2      1  300   50       0  0.000400\n"
        "      all      3  600  150       0  0.000900"
    )


def test_a_cost_that_is_not_known_of_every_call_is_not_drawn():
    told = [*events(2), *events(1, executor="b", model="unheard-of")]
    svg = usage(told, prices=PRICES).svg
    assert 'class="ab_cost' not in svg
    assert "no cost: a price is missing" in words(svg)
    assert 'class="ab_cost' in usage(events(2), prices=PRICES).svg


@pytest.mark.parametrize("count", [1, 3, 30, 300, 5000])
def test_columns_never_leave_the_picture_or_run_into_each_other(count: int):
    root = ElementTree.fromstring(usage(events(count), prices=PRICES, width=600).svg)
    assert root.get("width") == "600"
    bars = [each for each in root.iter() if each.tag.endswith("}rect") and each.get("class") == "ab_in"]
    ends = [(float(each.attrib["x"]), float(each.attrib["x"]) + float(each.attrib["width"])) for each in bars[:-1]]
    assert 1 <= len(ends) <= 150
    assert all(x >= 0 and end <= 600 for x, end in ends)
    assert all(end < x for (_, end), (x, _) in itertools.pairwise(ends))


def test_cached_tokens_are_hatched_within_the_input():
    svg = usage(events(2, cached=40)).svg
    assert svg.count('fill="url(#ab_cached)"') == 3  # two columns and the legend
    assert "of these cached" in words(svg)
    assert "of these cached" not in words(usage(events(2)).svg)


def test_long_texts_keep_the_first_and_the_last_lines():
    lines = usage(events(500)).text.splitlines()
    assert len(lines) <= 60
    assert any("more" in line for line in lines)
    assert lines[-1].split()[0] == "all"
