from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from agentbench import CheckpointInfo
from agentbench.notebook import lineage


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
