from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbench import CheckpointInfo
from agentbench.notebook.plots.lineage import lineage_svg
from agentbench.notebook.plots.lineage_rows import MAX_ROWS, lineage_rows, lineage_text


def cp(number: int, parent: int | None, **more: Any) -> CheckpointInfo:
    previous = None if parent is None else f"cp-{parent}"
    return CheckpointInfo("w", f"cp-{number}", number, "", previous_checkpoint_id=previous, **more)


CHAIN = [cp(0, None, source="input"), cp(1, 0), cp(2, 1), cp(3, 2)]


def test_a_chain_stays_in_one_column():
    assert [(row.column, row.parent, row.is_end) for row in lineage_rows(CHAIN)] == [
        (0, None, False),
        (0, 0, False),
        (0, 1, False),
        (0, 2, True),
    ]


def test_a_fork_gets_a_column_of_its_own_beside_what_goes_on():
    rows = lineage_rows([*CHAIN, cp(4, 1, source="update", forked_from="cp-1"), cp(5, 4), cp(6, 1)])
    assert [row.column for row in rows] == [0, 0, 0, 0, 1, 1, 2]
    assert [row.is_fork for row in rows] == [False, False, False, False, True, False, True]


def test_long_stretches_are_folded_but_not_what_matters():
    infos = [cp(n, n - 1 if n else None, n_requests=n == 50, source="input" if n == 0 else "step") for n in range(200)]
    infos.append(cp(200, 100, source="fork", forked_from="cp-100"))
    rows = lineage_rows(infos, current="cp-150")
    assert sum(len(row.infos) for row in rows) == 201
    assert len(rows) <= MAX_ROWS
    alone = [row.info.checkpoint_id for row in rows if not row.is_folded]
    assert alone == ["cp-0", "cp-50", "cp-100", "cp-150", "cp-199", "cp-200"]


def test_the_text_indents_branches_and_names_where_they_begin():
    rows = lineage_rows([*CHAIN, cp(4, 1, source="update", forked_from="cp-1", n_messages=2)], current="cp-3")
    assert lineage_text(rows, title="5 checkpoints").split("\n") == [
        "5 checkpoints",
        "* cp-0  superstep 0, input",
        "* cp-1  superstep 1",
        "* cp-2  superstep 2",
        "@ cp-3  superstep 3",
        "  + cp-4  superstep 4, update, 2 messages, from cp-1",
    ]


def test_the_text_indents_branches_of_one_checkpoint_equally_however_many_there_are():
    forks = [cp(n, 1, source="fork", forked_from="cp-1") for n in (4, 5, 6)]
    deeper = [cp(7, 6), cp(8, 6, source="fork", forked_from="cp-6")]
    text = lineage_text(lineage_rows([*CHAIN, *forks, *deeper]), title="t")
    assert text.split("\n")[5:] == [
        "  + cp-4  superstep 4, fork, from cp-1",
        "  + cp-5  superstep 5, fork, from cp-1",
        "  + cp-6  superstep 6, fork, from cp-1",
        "  * cp-7  superstep 7",
        "    + cp-8  superstep 8, fork, from cp-6",
    ]


@given(st.lists(st.integers(0, 30), max_size=40))
def test_branches_never_share_a_column_at_the_same_height(choices: list[int]):
    infos = [cp(0, None), *(cp(n, min(choice, n - 1)) for n, choice in enumerate(choices, 1))]
    rows = lineage_rows(infos)
    lines = [
        (row.column, (row.parent or 0) + 1, at)
        for at, row in enumerate(rows)
        if row.parent is not None and at > row.parent + 1
    ]
    # A link runs down its column to its row: nothing else stands there on the way.
    for column, first, last in lines:
        assert not [at for at in range(first, last) if rows[at].column == column]


def test_questions_are_folded_too_where_there_are_very_many_and_counted():
    infos = [cp(n, n - 1 if n else None, n_requests=n % 2, source="input" if n == 0 else "step") for n in range(200)]
    rows = lineage_rows(infos)
    assert [len(row.infos) for row in rows] == [1, 198, 1]
    words = "supersteps 1 to 198, 99 of them ask a person"
    assert f"198 checkpoints  {words}" in lineage_text(rows, title="t")
    assert words in lineage_svg(rows, title="t")


def test_branches_come_back_to_the_left_where_there_is_no_room_at_the_right():
    infos = [cp(0, None)]
    for n in range(1, 60, 2):  # each goes on from the one before the last, which had an heir already
        infos += [cp(n, n - 1), cp(n + 1, n - 1, source="fork", forked_from=f"cp-{n - 1}")]
    assert max(row.column for row in lineage_rows(infos, max_rows=1000)) <= 10
