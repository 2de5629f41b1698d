"""A conversation as HTML, with tool calls and reasoning folded, and as plain text; foreign text is escaped."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentbench._secrets import mask_secrets
from agentbench._text.escape import esc
from agentbench.notebook.cards.conversation.model import Part, Turn
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.prose import Render, prose_blocks
from agentbench.notebook.look.style import read_static

_TEXT_LIMIT = 8_000
_WIDTH = 100
_MOST_LINES = 24
_SHORT_ROUND = 240
"""The number of characters up to which a round is open."""
_CLASSES = {"call": "ab_call", "ask": "ab_ask", "answer": "ab_ask ab_answer", "note": "ab_note"}


def conversation_html(turns: Sequence[Turn], *, above: str = "", facts: str = "", render: Render = "plain") -> Markup:
    """Return a conversation as one block of HTML with its own style: a row for each turn.

    `render` applies to texts of models; texts of users are plain.
    """
    return element(
        "div",
        element("style", Markup(read_static("views.css") + read_static("conversation.css"))),
        element("p", above, class_="ab_fact") if above else None,
        *(_row(turn, "plain" if turn.role == "user" else render) for turn in turns),
        element("p", facts, class_="ab_fact") if facts else None,
        class_="ab_view ab_talk",
    )


def rounds_html(rounds: Sequence[tuple[Sequence[Turn], Mapping[str, Any] | None]], first: int) -> Markup:
    """Return the rounds of an agent, each with its turns and the verdict of a judge; the number of the first is given.

    A long round is closed, unless it is the last one. Its line has the verdict and the beginning of reason and answer.
    """
    last = first + len(rounds) - 1
    return element(
        "div",
        element("style", Markup(read_static("views.css") + read_static("conversation.css"))),
        *(_round(turns, verdict, number, last) for number, (turns, verdict) in enumerate(rounds, start=first)),
        class_="ab_view ab_rounds",
    )


def _round(turns: Sequence[Turn], verdict: Mapping[str, Any] | None, number: int, last: int) -> Markup:
    texts = [part.text for turn in turns for part in turn.parts if part.kind == "text"]
    if number > 1:  # a loop wrote it, not a person
        turns = [replace(turn, name="follow-up") if turn.role == "user" else turn for turn in turns]
    rows = [_row(turn, "plain") for turn in turns]
    line = [element("b", f"Round {number} of {last}")]
    if verdict is not None:
        sign, words = ("✓", "accepted") if verdict["is_met"] else ("✗", "not accepted")
        line += [Markup(" "), element("span", f"{sign} {words}", class_=None if verdict["is_met"] else "ab_not")]
        reason = Turn("judge", "judge", (Part("text", str(mask_secrets(verdict["reason"]))),))
        rows.append(_row(reason, "plain"))
    gist = [*([] if verdict is None else [str(mask_secrets(verdict["reason"]))]), *texts[-1:]]
    if gist:
        words = " · ".join(esc(text, into="line", limit=80) for text in gist)
        line += [Markup(" "), element("span", words, class_="ab_gist")]
    is_open = number == last or sum(map(len, texts)) <= _SHORT_ROUND
    talk = element("div", *rows, class_="ab_talk")
    return element("details", element("summary", *line), talk, open="" if is_open else None)


def _row(turn: Turn, render: Render) -> Markup:
    parts = [_part(part, render) for part in turn.parts] or [element("div", "(nothing)", class_="ab_muted")]
    role = turn.role if turn.role in ("user", "assistant", "system", "tool") else "other"
    return element(
        "div",
        element("div", turn.name or turn.role, class_="ab_who", title=turn.role),
        element("div", *parts, class_="ab_what"),
        class_=f"ab_turn ab_from_{role}",
    )


def _part(part: Part, render: Render) -> Markup:
    if part.kind == "text":
        return element("div", prose_blocks(part.text, render, _TEXT_LIMIT), class_="ab_prose ab_said")
    if part.kind == "thinking":
        inside = element("div", prose_blocks(part.text, "plain", _TEXT_LIMIT), class_="ab_prose")
        return element("details", element("summary", "thinking"), inside, class_="ab_thought")
    if part.picture is not None:
        picture = element("img", src=Markup(part.picture), alt=part.text)
        return element("figure", picture, element("figcaption", part.text, class_="ab_muted"))
    if part.kind == "call":
        outcome = element("span", f" {part.sign} ", element("span", part.outcome), class_="ab_outcome")
        line = [
            element("code", part.text),
            outcome if part.sign else element("span", " not run yet", class_="ab_muted"),
        ]
    else:
        sign = element("span", part.sign, class_="ab_sign") if part.sign else None
        line = [*([sign, Markup(" ")] if sign else []), element("span", part.text)]
    kind = _CLASSES[part.kind] + (" ab_bad" if part.failed else "")
    if not part.folded:
        return element("div", *line, class_=kind)
    blocks = (
        element("div", element("span", label, class_="ab_muted"), element("pre", text)) for label, text in part.folded
    )
    return element("details", element("summary", *line), *blocks, class_=kind)


def conversation_lines(turns: Sequence[Turn]) -> list[str]:
    """Return a conversation as lines of plain text in two columns: speakers and their parts."""
    names = [esc(turn.name or turn.role, into="line", limit=24) for turn in turns]
    margin = max((len(name) for name in names), default=0) + 2
    lines: list[str] = []
    for name, turn in zip(names, turns, strict=True):
        parts = (
            (part.text, part.sign, part.outcome) if part.kind == "call" else (part.sign, part.text)
            for part in turn.parts
        )
        texts = (" ".join(filter(None, words)) for words in parts)
        body = [line for text in texts for line in _wrap(text, _WIDTH - margin)] or ["(nothing)"]
        lines += [f"{name if at == 0 else '':{margin}}{line}".rstrip() for at, line in enumerate(body)]
    return lines


def _wrap(text: str, width: int) -> list[str]:
    lines = [
        piece
        for line in esc(text, into="text").split("\n")
        for piece in textwrap.wrap(line, max(width, 40), break_on_hyphens=False) or [""]
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} more lines"]
    return lines
