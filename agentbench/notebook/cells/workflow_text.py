"""The text form of a graph, as `%%workflow` takes it: text in, statements with positions out. Evaluates nothing.

load -> check -> report            one after the other
check -> repair if has_gaps        only what the condition lets through
check -> repair if has_gaps else report
                                   a switch: to the first whose condition holds, or else to the last
load => left, right, middle        fan-out: each message goes to all of them
left, right => join                fan-in
alone                              an executor without edges
# a comment
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from agentbench.exceptions import WorkflowTextError

__all__ = ["FanIn", "FanOut", "Link", "Name", "Only", "Statement", "Switch", "names_in", "pairs_of", "parse_workflow"]

_TOKEN = re.compile(r"(?P<blank>\s+|#.*)|(?P<name>[^\W\d]\w*)|(?P<sign>->|=>|,)|(?P<other>.)")
_WORDS = ("if", "else")
_SLIPS = {">": "'->' or '=>'", "-": "'->'", "=": "'=>'", "→": "'->'", "⇒": "'=>'", ";": "the end of the line"}


@dataclass(frozen=True)
class Name:
    """A name and its position in the text; equal to the same name elsewhere.

    Attributes:
        text: The name.
        line: From 1.
        column: From 1, in characters.
    """

    text: str
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Only:
    """An executor that is there, whether or not it has edges."""

    name: Name


@dataclass(frozen=True)
class Link:
    """`source -> target`, maybe with a condition."""

    source: Name
    target: Name
    condition: Name | None = None


@dataclass(frozen=True)
class Switch:
    """`source -> target if condition else ... else default`: the first whose condition holds."""

    source: Name
    cases: tuple[tuple[Name, Name], ...]
    """Condition and target of each."""
    default: Name


@dataclass(frozen=True)
class FanOut:
    """`source => targets`."""

    source: Name
    targets: tuple[Name, ...]


@dataclass(frozen=True)
class FanIn:
    """`sources => target`."""

    sources: tuple[Name, ...]
    target: Name


Statement = Only | Link | Switch | FanOut | FanIn


def parse_workflow(text: str) -> tuple[Statement, ...]:
    """Read the text form of a graph.

    Args:
        text: Any number of lines.

    Returns:
        What they say, in their order; a chain becomes one statement for each of its arrows.

    Raises:
        WorkflowTextError: A line is not of this form; the error has its position, and what was expected.
    """
    lines = text.splitlines()
    statements: list[Statement] = []
    joined: dict[tuple[str, str], Name] = {}
    for number, line in enumerate(lines, start=1):
        for statement in _Line(line, number).statements():
            _refuse_doubles(statement, joined, line)
            statements.append(statement)
    if not statements:
        problem = "there is no executor in it. Expected lines such as: load -> report"
        raise WorkflowTextError(problem, line=max(len(lines), 1), column=1)
    return tuple(statements)


def pairs_of(statement: Statement) -> Iterator[tuple[Name, Name]]:
    """The edges of a statement: who sends and who receives."""
    if isinstance(statement, Link):
        yield statement.source, statement.target
    elif isinstance(statement, FanOut):
        yield from ((statement.source, target) for target in statement.targets)
    elif isinstance(statement, FanIn):
        yield from ((source, statement.target) for source in statement.sources)
    elif isinstance(statement, Switch):
        # Cases of one switch may lead to the same place.
        targets = {target.text: target for target in (*(case[1] for case in statement.cases), statement.default)}
        yield from ((statement.source, target) for target in targets.values())


def _refuse_doubles(statement: Statement, joined: dict[tuple[str, str], Name], line: str) -> None:
    for source, target in pairs_of(statement):
        before = joined.setdefault((source.text, target.text), target)
        if before is not target:
            where = "here already" if before.line == target.line else f"in line {before.line} already"
            problem = f"{source} and {target} are connected {where}. Two executors have one edge in each direction"
            raise WorkflowTextError(problem, line=target.line, column=target.column, source=line)


@dataclass(frozen=True)
class _Token:
    text: str
    column: int
    is_name: bool


class _Line:
    """Reads one line from left to right."""

    def __init__(self, text: str, number: int) -> None:
        self._text, self._number = text, number
        self._tokens = list(self._split())
        self._at = 0

    def statements(self) -> Iterator[Statement]:
        """The statements of a line; none for an empty one."""
        if self._peek() is None:
            return
        sources = self._names("the name of an executor")
        if self._peek() is None and len(sources) == 1:
            yield Only(sources[0])
            return
        statement: Statement
        while True:
            if self._take("->"):
                targets, statement = self._arrow(sources)
            elif self._take("=>"):
                targets, statement = self._fan(sources)
            else:
                self._fail("'->', '=>' or ','" if len(sources) == 1 else "'=>' or ','")
            yield statement
            if self._peek() is None:
                return
            if isinstance(statement, Switch):
                self._fail("the end of the line, since a switch leads to several executors")
            sources = targets

    # ---- what may stand there ----------------------------------------------------------------------------------------

    def _arrow(self, sources: Sequence[Name]) -> tuple[tuple[Name, ...], Link | Switch]:
        """The statement after `->`."""
        if len(sources) > 1:
            self._fail_at(self._tokens[self._at - 1].column, "'=>', which joins several executors in one", "'->'")
        target = self._name("the name of an executor")
        if self._sees(","):
            self._fail("one executor after '->'. To reach several write '=>'")
        if not self._take("if"):
            return (target,), Link(sources[0], target)
        condition = self._name("the name of a condition")
        if not self._sees("else"):
            return (target,), Link(sources[0], target, condition)
        cases = [(condition, target)]
        while True:
            self._take("else")
            target = self._name("the name of an executor")
            if not self._take("if"):
                return (target,), Switch(sources[0], tuple(cases), target)
            cases.append((self._name("the name of a condition"), target))
            if not self._sees("else"):
                self._fail("'else' and an executor for what no condition lets through")

    def _fan(self, sources: tuple[Name, ...]) -> tuple[tuple[Name, ...], FanOut | FanIn]:
        """The statement after `=>`."""
        sign = self._tokens[self._at - 1].column
        targets = self._names("the name of an executor")
        if len(sources) > 1 and len(targets) > 1:
            self._fail_at(sign, "one executor on one of the two sides of '=>'", "several on both")
        if len(sources) == len(targets) == 1:
            self._fail_at(sign, "'->', since there is one executor on each side", "'=>'")
        if self._sees("if"):
            self._fail("'->', '=>' or the end of the line. A condition belongs to '->'")
        if len(sources) == 1:
            return targets, FanOut(sources[0], targets)
        return targets, FanIn(sources, targets[0])

    def _names(self, expected: str) -> tuple[Name, ...]:
        names = [self._name(expected)]
        while self._take(","):
            name = self._name(expected)
            if name in names:
                self._fail_at(name.column, "each executor once", f"{name.text!r} again")
            names.append(name)
        return tuple(names)

    def _name(self, expected: str) -> Name:
        token = self._peek()
        if token is None or not token.is_name or token.text in _WORDS:
            self._fail(expected)
        if keyword.iskeyword(token.text):
            self._fail(f"{expected}, which cannot be a keyword of Python")
        self._at += 1
        return Name(token.text, self._number, token.column)

    # ---- the line as a row of words and signs ------------------------------------------------------------------------

    def _split(self) -> Iterator[_Token]:
        for match in _TOKEN.finditer(self._text):
            if match["other"]:
                found = match["other"]
                self._fail_at(match.start() + 1, _SLIPS.get(found, "a name, '->', '=>', ',' or '#'"), repr(found))
            if not match["blank"]:
                yield _Token(match[0], match.start() + 1, bool(match["name"]))

    def _peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _sees(self, text: str) -> bool:
        token = self._peek()
        return token is not None and token.text == text

    def _take(self, text: str) -> bool:
        found = self._sees(text)
        self._at += found
        return found

    def _fail(self, expected: str) -> NoReturn:
        token = self._peek()
        if token is not None:
            self._fail_at(token.column, expected, repr(token.text))
        last = self._tokens[-1]
        self._fail_at(last.column + len(last.text) + 1, expected, "the end of the line")

    def _fail_at(self, column: int, expected: str, found: str) -> NoReturn:
        problem = f"expected {expected}; found {found}"
        raise WorkflowTextError(problem, line=self._number, column=column, source=self._text)


def names_in(statements: Sequence[Statement]) -> list[Name]:
    """The executors, each once, in the order in which they are named."""
    found: dict[str, Name] = {}
    for statement in statements:
        if isinstance(statement, Only):
            found.setdefault(statement.name.text, statement.name)
        for pair in pairs_of(statement):
            for name in pair:
                found.setdefault(name.text, name)
    return list(found.values())
