"""The text form of a graph: what it says, and where it says it wrong."""

from __future__ import annotations

import keyword
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.exceptions import WorkflowTextError
from agentbench.notebook.cells.workflow_text import (
    FanIn,
    FanOut,
    Link,
    Name,
    Only,
    Statement,
    Switch,
    names_in,
    pairs_of,
    parse_workflow,
)


def n(text: str) -> Name:
    return Name(text)


DIAMOND_END: list[Statement] = [FanIn((n("b"), n("c")), n("d")), Link(n("d"), n("e"))]


def test_a_line_says() -> None:
    cases: list[tuple[str, list[Statement]]] = [
        ("a -> b", [Link(n("a"), n("b"))]),
        ("a->b", [Link(n("a"), n("b"))]),
        ("a -> b -> c", [Link(n("a"), n("b")), Link(n("b"), n("c"))]),
        ("a -> b if ok", [Link(n("a"), n("b"), n("ok"))]),
        ("a -> b if ok -> c", [Link(n("a"), n("b"), n("ok")), Link(n("b"), n("c"))]),
        ("a => b, c", [FanOut(n("a"), (n("b"), n("c")))]),
        ("b, c => d", [FanIn((n("b"), n("c")), n("d"))]),
        ("a => b, c => d", [FanOut(n("a"), (n("b"), n("c"))), FanIn((n("b"), n("c")), n("d"))]),
        ("a => b, c\nb, c => d -> e", [FanOut(n("a"), (n("b"), n("c"))), *DIAMOND_END]),
        ("a -> b if x else c", [Switch(n("a"), ((n("x"), n("b")),), n("c"))]),
        ("a -> b if x else c if y else d", [Switch(n("a"), ((n("x"), n("b")), (n("y"), n("c"))), n("d"))]),
        ("alone", [Only(n("alone"))]),
        ("a -> a", [Link(n("a"), n("a"))]),
        ("größe -> maß", [Link(n("größe"), n("maß"))]),
        ("# all\n\n  a -> b  # one\n\t\nb -> c#two\n", [Link(n("a"), n("b")), Link(n("b"), n("c"))]),
        ("a -> b\nb -> a", [Link(n("a"), n("b")), Link(n("b"), n("a"))]),
        ("a -> b if x else b", [Switch(n("a"), ((n("x"), n("b")),), n("b"))]),
    ]
    for text, statements in cases:
        assert parse_workflow(text) == tuple(statements)


def test_a_mistake_is_reported_with_its_place_and_what_was_expected() -> None:
    for text, line, column, problem in [
        ("", 1, 1, "there is no executor"),
        ("# nothing\n", 1, 1, "there is no executor"),
        ("a ->", 1, 6, "expected the name of an executor; found the end of the line"),
        ("a -> b\n  a b", 2, 5, "expected '->', '=>' or ','; found 'b'"),
        ("-> b", 1, 1, "expected the name of an executor; found '->'"),
        ("a, b", 1, 6, "expected '=>' or ','; found the end of the line"),
        ("a -> b, c", 1, 7, "one executor after '->'. To reach several write '=>'; found ','"),
        ("a, b -> c", 1, 6, "expected '=>', which joins several executors in one; found '->'"),
        ("a => b", 1, 3, "expected '->', since there is one executor on each side; found '=>'"),
        ("a, b => c, d", 1, 6, "one executor on one of the two sides of '=>'; found several on both"),
        ("a => b, c if x", 1, 11, "A condition belongs to '->'; found 'if'"),
        ("a => b, b", 1, 9, "expected each executor once; found 'b' again"),
        ("a -> b if", 1, 11, "expected the name of a condition; found the end of the line"),
        ("a -> b if x()", 1, 12, "expected a name, '->', '=>', ',' or '#'; found '('"),
        ("a -> b if x and y", 1, 13, "expected '->', '=>' or ','; found 'and'"),
        ("a -> b if not", 1, 11, "expected the name of a condition, which cannot be a keyword of Python; found 'not'"),
        ("a -> b if x else", 1, 18, "expected the name of an executor; found the end"),
        ("a -> b if x else c if y", 1, 25, "'else' and an executor for what no condition lets through; found the end"),
        ("a -> b if x else c -> d", 1, 20, "since a switch leads to several executors; found '->'"),
        ("a > b", 1, 3, "expected '->' or '=>'; found '>'"),
        ("a → b", 1, 3, "expected '->'; found '→'"),
        ("a --> b", 1, 3, "expected '->'; found '-'"),
        ("a -> class", 1, 6, "cannot be a keyword of Python; found 'class'"),
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


def test_names_come_in_the_order_of_the_text_with_their_places() -> None:
    names = names_in(parse_workflow("b -> a if low\na => c, d\nlone"))
    assert [(name.text, name.line, name.column) for name in names] == [
        ("b", 1, 1),
        ("a", 1, 6),
        ("c", 2, 6),
        ("d", 2, 9),
        ("lone", 3, 1),
    ]


# ---- laws ------------------------------------------------------------------------------------------------------------

NAMES = st.text(string.ascii_letters + string.digits + "_äß", min_size=1, max_size=6).filter(
    lambda text: text.isidentifier() and not keyword.iskeyword(text)
)
BLANKS = st.sampled_from(["", " ", "  ", "\t"])


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    first, *others = draw(st.lists(NAMES.map(Name), min_size=4, max_size=6, unique_by=lambda name: name.text))
    kind = draw(st.sampled_from(["only", "link", "if", "out", "in", "switch"]))
    made: dict[str, Statement] = {
        "only": Only(first),
        "link": Link(first, others[0]),
        "if": Link(first, others[0], others[1]),
        "out": FanOut(first, tuple(others)),
        "in": FanIn(tuple(others), first),
        "switch": Switch(first, ((others[0], others[1]),), others[2]),
    }
    return made[kind]


def written(statement: Statement, blank: str) -> str:
    """The text of a statement, with blanks wherever they may stand."""
    if isinstance(statement, Only):
        return f"{blank}{statement.name}{blank}"
    if isinstance(statement, Link):
        condition = "" if statement.condition is None else f" if {statement.condition}"
        return f"{blank}{statement.source}{blank}->{blank}{statement.target}{condition}{blank}"
    if isinstance(statement, FanOut):
        return f"{statement.source}{blank}=>{blank}{f'{blank},{blank}'.join(map(str, statement.targets))}"
    if isinstance(statement, FanIn):
        return f"{f'{blank},{blank}'.join(map(str, statement.sources))}{blank}=>{blank}{statement.target}"
    cases = " else ".join(f"{target} if {condition}" for condition, target in statement.cases)
    return f"{statement.source}{blank}->{blank}{cases} else {statement.default}{blank}"


@given(statements(), BLANKS, st.text(string.printable.replace("\n", ""), max_size=8))
def test_what_is_written_is_read_regardless_of_blanks_and_comments(statement: Statement, blank: str, note: str) -> None:
    (comment, *_) = [*f"# {note}".splitlines(), ""]
    assert parse_workflow(f"{written(statement, blank)}{comment}") == (statement,)


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
    edges = [(source.text, target.text) for statement in read for source, target in pairs_of(statement)]
    assert len(edges) == len(set(edges))
