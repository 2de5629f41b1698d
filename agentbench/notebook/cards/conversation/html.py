"""A conversation as HTML: tool calls and reasoning are folded, everything is escaped, nothing is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from agentbench.notebook.cards.conversation.model import ApprovalPart, CallPart, NotePart, Part, TextPart, Turn
from agentbench.notebook.cards.conversation.text import SIGNS
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.prose import Render, prose_blocks
from agentbench.notebook.look.style import read_static

__all__ = ["conversation_html"]

_TEXT_LIMIT = 8_000


def conversation_html(turns: Sequence[Turn], *, facts: str = "", render: Render = "plain", hidden: int = 0) -> Markup:
    """Return a conversation as one block of HTML with its own style: a row for each turn, facts below.

    Args:
        turns: The turns to display.
        facts: One line: model, tokens, finish reason; may be empty.
        render: How the texts of models are rendered; texts of users are always plain.
        hidden: Number of earlier turns that are omitted.
    """
    return element(
        "div",
        element("style", Markup(read_static("views.css") + read_static("conversation.css"))),
        element("p", f"… {hidden:,} earlier", class_="ab_fact") if hidden else None,
        *(_row(turn, "plain" if turn.role == "user" else render) for turn in turns),
        element("p", facts, class_="ab_fact") if facts else None,
        class_="ab_view ab_talk",
    )


def _row(turn: Turn, render: Render) -> Markup:
    parts = [_part(part, render) for part in turn.parts] or [element("div", "(nothing)", class_="ab_muted")]
    known = turn.role if turn.role in ("user", "assistant", "system", "tool") else "other"
    return element(
        "div",
        element("div", turn.name or turn.role, class_="ab_who", title=turn.role),
        element("div", *parts, class_="ab_what"),
        class_=f"ab_turn ab_from_{known}",
    )


def _part(part: Part, render: Render) -> Markup:
    if isinstance(part, TextPart):
        if not part.is_reasoning:
            return element("div", prose_blocks(part.text, render, _TEXT_LIMIT), class_="ab_prose ab_said")
        inside = element("div", prose_blocks(part.text, "plain", _TEXT_LIMIT), class_="ab_prose")
        return element("details", element("summary", "thinking"), inside, class_="ab_thought")
    if isinstance(part, CallPart):
        return _call(part)
    return _approval(part) if isinstance(part, ApprovalPart) else _note(part)


def _call(call: CallPart) -> Markup:
    if call.outcome is None:
        outcome = element("span", " not run yet", class_="ab_muted")
    else:
        text = element("span", call.outcome)
        outcome = element("span", " ✗ " if call.failed else " → ", text, class_="ab_outcome")
    summary = element("summary", element("code", call.signature), outcome)
    body = [_block("arguments", call.arguments), _block("error" if call.failed else "result", call.result)]
    return element("details", summary, *body, class_="ab_call ab_bad" if call.failed else "ab_call")


def _block(label: str, text: str) -> Markup | None:
    return element("div", element("span", label, class_="ab_muted"), element("pre", text)) if text else None


def _approval(approval: ApprovalPart) -> Markup:
    line = [element("span", SIGNS[approval.approved], class_="ab_sign"), element("span", approval.text)]
    if approval.approved is not None:
        return element("div", *line, class_="ab_ask ab_answer")
    if not approval.arguments:
        return element("div", *line, class_="ab_ask")
    return element("details", element("summary", *line), _block("arguments", approval.arguments), class_="ab_ask")


def _note(note: NotePart) -> Markup:
    if note.picture is None:
        return element("div", note.text, class_="ab_note ab_bad" if note.failed else "ab_note")
    picture = element("img", src=Markup(note.picture), alt=note.text)
    return element("figure", picture, element("figcaption", note.text, class_="ab_muted"))
