"""The text form of a graph for `%%workflow`: parses text into edges with positions. Evaluates nothing.

load -> check -> report            one after another
check -> repair if has_gaps        only messages for which the condition is true
check -> repair if has_gaps else report
                                   a switch: to the first whose condition is true, otherwise to the last
load => left, right, middle        fan-out: each message goes to all of them
left, right => join                fan-in
alone                              an executor without edges
# a comment
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NoReturn

from agentbench.exceptions import WorkflowTextError

_TOKEN = re.compile(r"#.*|[^\W\d]\w*|->|=>|\S")
_SLIPS = {">": "'->' or '=>'", "-": "'->'", "=": "'=>'", "→": "'->'", "⇒": "'=>'", ";": "the end of the line"}
_EXECUTOR, _CONDITION = "the name of an executor", "the name of a condition"


@dataclass(frozen=True)
class Name:
    """A name and its position in the text, both from 1; equal to the same name elsewhere."""

    text: str
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Arrow:
    """One arrow of the text; an executor without edges is an arrow without targets.

    A fan-in has several sources, a fan-out or a switch several targets; a switch has a condition for all but the last.
    """

    sources: tuple[Name, ...]
    targets: tuple[Name, ...] = ()
    conditions: tuple[Name, ...] = ()

    @property
    def is_switch(self) -> bool:
        """Whether it goes to the first target whose condition is true, otherwise to the last."""
        return 0 < len(self.conditions) < len(self.targets)

    def pairs(self) -> Iterator[tuple[Name, Name]]:
        """Yield its edges as (sender, receiver), each once."""
        return product(self.sources, dict.fromkeys(self.targets))


def parse_workflow(text: str) -> tuple[Arrow, ...]:
    """Parse the text form of a graph into its arrows, in order.

    Raises `WorkflowTextError` for invalid text, with the position and the expected input.
    """
    lines = text.splitlines()
    arrows: list[Arrow] = []
    connected: dict[tuple[Name, Name], Name] = {}
    for number, line in enumerate(lines, start=1):
        for arrow in _Line(line, number).arrows():
            for source, target in arrow.pairs():
                before = connected.setdefault((source, target), target)
                if before is not target:
                    where = "here" if before.line == number else f"in line {before.line}"
                    problem = (
                        f"{source} and {target} are connected {where} already. Two executors have one edge each way"
                    )
                    raise WorkflowTextError(problem, line=number, column=target.column, source=line)
            arrows.append(arrow)
    if not arrows:
        problem = "the text has no executor. Expected lines such as: load -> report"
        raise WorkflowTextError(problem, line=max(len(lines), 1), column=1)
    return tuple(arrows)


class _Line:
    """Parses one line from left to right."""

    def __init__(self, text: str, number: int) -> None:
        self._text, self._number, self._at = text, number, 0
        self._tokens = [Name(m[0], number, m.start() + 1) for m in _TOKEN.finditer(text) if m[0][0] != "#"]
        for token in self._tokens:
            if token.text not in ("->", "=>", ",") and not token.text.isidentifier():
                self._fail(_SLIPS.get(token.text, "a name, '->', '=>', ',' or '#'"), token)
        last = self._tokens[-1] if self._tokens else Name("")
        self._tokens.append(Name("", number, last.column + len(last.text) + 1))  # the end of the line

    def arrows(self) -> Iterator[Arrow]:
        if not self._next.text:
            return
        sources = self._names()
        if len(sources) == 1 and not self._next.text:
            yield Arrow(sources)
        while self._next.text or len(sources) > 1:
            sign = self._next
            if self._take("->"):
                arrow = self._single(sources, sign)
            elif self._take("=>"):
                arrow = self._fan(sources, sign)
            else:
                self._fail("'->', '=>' or ','" if len(sources) == 1 else "'=>' or ','")
            yield arrow
            if not self._next.text:
                return
            if arrow.is_switch:
                self._fail("the end of the line, because a switch leads to several executors")
            sources = arrow.targets

    def _single(self, sources: tuple[Name, ...], sign: Name) -> Arrow:
        """Parse the part after `->`."""
        if len(sources) > 1:
            self._fail("'=>', which joins several executors into one", sign)
        targets, conditions = [self._name(_EXECUTOR)], []
        if self._next.text == ",":
            self._fail("one executor after '->'. Use '=>' for several")
        while self._take("if"):
            conditions.append(self._name(_CONDITION))
            if self._take("else"):
                targets.append(self._name(_EXECUTOR))
            elif len(targets) > 1:
                self._fail("'else' and an executor for all other messages")
            else:
                break
        return Arrow(sources, tuple(targets), tuple(conditions))

    def _fan(self, sources: tuple[Name, ...], sign: Name) -> Arrow:
        """Parse the part after `=>`."""
        targets = self._names()
        if len(sources) > 1 and len(targets) > 1:
            self._fail("one executor on one side of '=>'", sign, "several on both")
        if len(sources) == len(targets) == 1:
            self._fail("'->', because there is one executor on each side", sign)
        if self._next.text == "if":
            self._fail("'->', '=>' or the end of the line. A condition belongs to '->'")
        return Arrow(sources, targets)

    def _names(self) -> tuple[Name, ...]:
        names = [self._name(_EXECUTOR)]
        while self._take(","):
            name = self._name(_EXECUTOR)
            if name in names:
                self._fail("each executor once", name, f"{name.text!r} again")
            names.append(name)
        return tuple(names)

    def _name(self, expected: str) -> Name:
        token = self._next
        if not token.text.isidentifier() or keyword.iskeyword(token.text):
            is_odd = token.text.isidentifier() and token.text not in ("if", "else")
            self._fail(f"{expected}, which cannot be a Python keyword" if is_odd else expected)
        self._at += 1
        return token

    @property
    def _next(self) -> Name:
        return self._tokens[self._at]

    def _take(self, text: str) -> bool:
        found = self._next.text == text
        self._at += found
        return found

    def _fail(self, expected: str, at: Name | None = None, found: str = "") -> NoReturn:
        at = at or self._next
        found = found or (repr(at.text) if at.text else "the end of the line")
        problem = f"expected {expected}; found {found}"
        raise WorkflowTextError(problem, line=self._number, column=at.column, source=self._text)
