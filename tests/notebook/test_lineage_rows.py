from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbench import CheckpointInfo
from agentbench.notebook.checkpoint_frames import forks
from agentbench.notebook.lineage_rows import MAX_ROWS, lineage_rows, lineage_text, with_origins
from agentbench.notebook.lineage_svg import lineage_svg


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


def test_a_column_serves_again_once_its_branch_has_ended():
    rows = lineage_rows([*CHAIN, cp(4, 0), cp(5, 3), cp(6, 3), cp(7, 5), cp(8, 5)])
    assert [row.column for row in rows] == [0, 0, 0, 0, 1, 0, 2, 0, 1]


def test_the_current_checkpoint_is_ringed():
    rows = lineage_rows(CHAIN, current="cp-2")
    assert [row.is_current for row in rows] == [False, False, True, False]
    assert lineage_svg(rows, title="t").count('class="ab_now"') == 1


def test_long_stretches_are_folded_but_not_what_matters():
    infos = [cp(n, n - 1 if n else None, n_requests=n == 50, source="input" if n == 0 else "step") for n in range(200)]
    infos.append(cp(200, 100, source="fork", forked_from="cp-100"))
    rows = lineage_rows(infos, current="cp-150")
    assert sum(row.folded for row in rows) == 201
    assert len(rows) <= MAX_ROWS
    alone = [row.info.checkpoint_id for row in rows if row.folded == 1]
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


def test_the_text_names_what_a_line_goes_on_from_where_another_branch_stands_between():
    mixed = [
        cp(4, 1, source="fork", forked_from="cp-1"),
        cp(5, 1, source="fork", forked_from="cp-1"),
        cp(6, 4),
        cp(7, 5),
    ]
    text = lineage_text(lineage_rows([*CHAIN, *mixed]), title="t")
    assert text.split("\n")[-2:] == ["  * cp-6  superstep 6, from cp-4", "  * cp-7  superstep 7, from cp-5"]


def test_each_kind_of_checkpoint_has_a_sign_of_its_own():
    infos = [cp(n, n - 1 if n else None) for n in range(100)]
    infos += [cp(100, 50, source="fork", forked_from="cp-50"), cp(101, 100, n_requests=1), cp(102, 101, source="error")]
    svg = lineage_svg(lineage_rows(infos), title="t")
    assert svg.count('class="ab_edit"') == 1
    assert svg.count('class="ab_wait"') == 1
    assert svg.count('class="ab_bad"') == 1
    assert svg.count('r="2"') == 3 * 2  # two folded stretches, three dots each
    assert svg.count("ab_fork") == 2  # its rule and its link


def test_a_text_never_has_more_than_sixty_lines_and_a_title():
    comb = [cp(0, None), *(cp(n, 0) for n in range(1, 150))]
    assert len(lineage_text(lineage_rows(comb), title="t").split("\n")) <= MAX_ROWS + 1


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


def test_a_fork_stands_below_the_point_that_it_left_from():
    fork = cp(4, 1, source="update", forked_from="cp-1")
    own = [cp(5, 4, run_id="run-2"), cp(6, 5, run_id="run-2")]
    known = {info.checkpoint_id: info for info in [*CHAIN, fork, *own]}
    infos = with_origins(own, known)
    assert [info.checkpoint_id for info in infos] == ["cp-1", "cp-4", "cp-5", "cp-6"]
    rows = lineage_rows(infos, branching=forks(list(known.values())))
    assert [row.is_fork for row in rows] == [False, True, False, False]


def test_what_was_resumed_stands_below_what_it_went_on_from():
    own = [cp(4, 2, run_id="run-2")]
    known = {info.checkpoint_id: info for info in [*CHAIN, *own]}
    assert [info.checkpoint_id for info in with_origins(own, known)] == ["cp-2", "cp-4"]


def test_the_name_of_a_run_stands_at_the_fork_that_it_goes_on_from():
    chain = [cp(0, None, run_id="run-1"), cp(1, 0, run_id="run-1")]
    infos = [*chain, cp(2, 0, source="fork", forked_from="cp-0"), cp(3, 2, run_id="run-2"), cp(4, 3, run_id="run-2")]
    groups = lineage_svg(lineage_rows(infos), title="t").split("<g ")[1:]
    assert ["run-2</text>" in group for group in groups] == [False, False, True, False, False]


def test_questions_are_folded_too_where_there_are_very_many_and_counted():
    infos = [cp(n, n - 1 if n else None, n_requests=n % 2, source="input" if n == 0 else "step") for n in range(200)]
    rows = lineage_rows(infos)
    assert [(row.folded, row.asking, row.since) for row in rows] == [(1, 0, 0), (198, 99, 1), (1, 1, 199)]
    assert "198 checkpoints  up to superstep 198, 99 of them ask a person" in lineage_text(rows, title="t")
    assert "1\N{EN DASH}198" in lineage_svg(rows, title="t")


def test_branches_come_back_to_the_left_where_there_is_no_room_at_the_right():
    infos = [cp(0, None)]
    for n in range(1, 60, 2):  # each goes on from the one before the last, which had an heir already
        infos += [cp(n, n - 1), cp(n + 1, n - 1, source="fork", forked_from=f"cp-{n - 1}")]
    assert max(row.column for row in lineage_rows(infos, max_rows=1000)) <= 10
