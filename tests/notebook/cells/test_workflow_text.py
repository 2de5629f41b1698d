"""The text form of a graph: what it says, and where it says it wrong."""

from __future__ import annotations

import keyword
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import WorkflowTextError
from agentbench.notebook.cells.workflow_text import Arrow, Name, parse_workflow


def arrow(sources: str, targets: str = "", conditions: str = "") -> Arrow:
    parts = [tuple(map(Name, names.split())) for names in (sources, targets, conditions)]
    return Arrow(*parts)


DIAMOND_END = [arrow("b c", "d"), arrow("d", "e")]


def test_a_line_says() -> None:
    cases: list[tuple[str, list[Arrow]]] = [
        ("a -> b", [arrow("a", "b")]),
        ("a->b", [arrow("a", "b")]),
        ("a -> b -> c", [arrow("a", "b"), arrow("b", "c")]),
        ("a -> b if ok", [arrow("a", "b", "ok")]),
        ("a -> b if ok -> c", [arrow("a", "b", "ok"), arrow("b", "c")]),
        ("a => b, c", [arrow("a", "b c")]),
        ("b, c => d", [arrow("b c", "d")]),
        ("a => b, c => d", [arrow("a", "b c"), arrow("b c", "d")]),
        ("a => b, c\nb, c => d -> e", [arrow("a", "b c"), *DIAMOND_END]),
        ("a -> b if x else c", [arrow("a", "b c", "x")]),
        ("a -> b if x else c if y else d", [arrow("a", "b c d", "x y")]),
        ("alone", [arrow("alone")]),
        ("a -> a", [arrow("a", "a")]),
        ("größe -> maß", [arrow("größe", "maß")]),
        ("# all\n\n  a -> b  # one\n\t\nb -> c#two\n", [arrow("a", "b"), arrow("b", "c")]),
        ("a -> b\nb -> a", [arrow("a", "b"), arrow("b", "a")]),
        ("a -> b if x else b", [arrow("a", "b b", "x")]),
    ]
    for text, arrows in cases:
        assert parse_workflow(text) == tuple(arrows)


def test_a_mistake_is_reported_with_its_place_and_what_was_expected() -> None:
    for text, line, column, problem in [
        ("", 1, 1, "no executor"),
        ("# nothing\n", 1, 1, "no executor"),
        ("a ->", 1, 6, "expected the name of an executor; found the end of the line"),
        ("a -> b\n  a b", 2, 5, "expected '->', '=>' or ','; found 'b'"),
        ("-> b", 1, 1, "expected the name of an executor; found '->'"),
        ("a, b", 1, 6, "expected '=>' or ','; found the end of the line"),
        ("a -> b, c", 1, 7, "one executor after '->'. Use '=>' for several; found ','"),
        ("a, b -> c", 1, 6, "expected '=>', which joins several executors into one; found '->'"),
        ("a => b", 1, 3, "expected '->', because there is one executor on each side; found '=>'"),
        ("a, b => c, d", 1, 6, "one executor on one side of '=>'; found several on both"),
        ("a => b, c if x", 1, 11, "A condition belongs to '->'; found 'if'"),
        ("a => b, b", 1, 9, "expected each executor once; found 'b' again"),
        ("a -> b if", 1, 11, "expected the name of a condition; found the end of the line"),
        ("a -> b if x()", 1, 12, "expected a name, '->', '=>', ',' or '#'; found '('"),
        ("a -> b if x and y", 1, 13, "expected '->', '=>' or ','; found 'and'"),
        ("a -> b if not", 1, 11, "expected the name of a condition, which cannot be a Python keyword; found 'not'"),
        ("a -> b if x if y", 1, 13, "expected '->', '=>' or ','; found 'if'"),
        ("a -> b if x else", 1, 18, "expected the name of an executor; found the end"),
        ("a -> b if x else c if y", 1, 25, "'else' and an executor for all other messages; found the end"),
        ("a -> b if x else c -> d", 1, 20, "because a switch leads to several executors; found '->'"),
        ("a > b", 1, 3, "expected '->' or '=>'; found '>'"),
        ("a → b", 1, 3, "expected '->'; found '→'"),
        ("a --> b", 1, 3, "expected '->'; found '-'"),
        ("a -> class", 1, 6, "cannot be a Python keyword; found 'class'"),
        ("a -> if", 1, 6, "expected the name of an executor; found 'if'"),
        ("a -> b\n\nb -> c -> b\nx, a => b", 4, 9, "a and b are connected in line 1 already"),
        ("a -> b -> a -> b", 1, 16, "a and b are connected here already"),
    ]:
        with pytest.raises(WorkflowTextError) as caught:
            parse_workflow(text)
        error = caught.value
        assert (error.line, error.column) == (line, column)
        assert problem in error.problem
        assert str(error).startswith(f"line {line}, column {column}: ")


def test_the_line_is_shown_with_a_mark_below_the_place() -> None:
    with pytest.raises(WorkflowTextError) as caught:
        parse_workflow("a -> b\n\tb ->> c")
    assert str(caught.value).splitlines()[1:] == ["    \tb ->> c", "    \t    ^"]


# ---- laws ------------------------------------------------------------------------------------------------------------

NAMES = st.text(string.ascii_letters + string.digits + "_äß", min_size=1, max_size=6).filter(
    lambda text: text.isidentifier() and not keyword.iskeyword(text)
)


@st.composite
def written_arrows(draw: st.DrawFn) -> tuple[str, Arrow]:
    """An arrow and its text, with blanks wherever they are allowed."""
    first, second, *others = draw(st.lists(NAMES, min_size=4, max_size=6, unique=True))
    blank = draw(st.sampled_from(["", " ", "  ", "\t"]))
    listed = f"{blank},{blank}".join(others)
    return draw(
        st.sampled_from(
            [
                (f"{blank}{first}{blank}", arrow(first)),
                (f"{blank}{first}{blank}->{blank}{second}{blank}", arrow(first, second)),
                (f"{first}->{blank}{second} if {others[0]}{blank}", arrow(first, second, others[0])),
                (f"{first}{blank}=>{blank}{listed}", arrow(first, " ".join(others))),
                (f"{listed}{blank}=>{blank}{first}", arrow(" ".join(others), first)),
                (f"{first}->{others[0]} if x else {second}", arrow(first, f"{others[0]} {second}", "x")),
            ]
        )
    )


@given(written_arrows(), st.text(string.printable.replace("\n", ""), max_size=8))
def test_what_is_written_is_read_regardless_of_blanks_and_comments(written: tuple[str, Arrow], note: str) -> None:
    (comment, *_) = [*f"# {note}".splitlines(), ""]
    assert parse_workflow(f"{written[0]}{comment}") == (written[1],)


@given(st.text(alphabet="ab ->=,#if\nelse", max_size=30))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    try:
        read = parse_workflow(text)
    except WorkflowTextError as error:
        read, place = (), (error.line, error.column)
    else:
        place = (1, 1)
    lines = text.splitlines() or [""]
    assert 1 <= place[0] <= len(lines)
    assert 1 <= place[1] <= len(lines[place[0] - 1]) + 2
    edges = [pair for each in read for pair in each.pairs()]
    assert len(edges) == len(set(edges))
