"""A conversation as HTML: tool calls and reasoning are folded, everything is escaped, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentbench.notebook.cards.conversation.model import (
    ApprovalPart,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    Turn,
)
from agentbench.notebook.cards.conversation.text import speaker
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.prose import Render, prose_blocks
from agentbench.notebook.look.style import read_static

__all__ = ["conversation_html", "turn_rows"]

_TEXT_LIMIT = 8_000


def conversation_html(title: str, turns: Sequence[Turn], facts: str, *, render: Render, hidden: int = 0) -> Markup:
    """Return a conversation as one block of HTML with its own style.

    Args:
        title: The heading; empty for a bare conversation.
        turns: The turns to display.
        facts: One line below: model, tokens, finish reason; may be empty.
        render: How the texts of models are rendered; texts of users are always plain.
        hidden: Number of earlier turns that are omitted.
    """
    return element(
        "div",
        element("style", Markup(read_static("views.css") + read_static("conversation.css"))),
        element("p", element("b", title), class_="ab_head") if title else None,
        element("p", f"… {hidden:,} earlier", class_="ab_fact") if hidden else None,
        *turn_rows(turns, render),
        element("p", facts, class_="ab_fact") if facts else None,
        class_="ab_view ab_talk",
    )


def turn_rows(turns: Sequence[Turn], render: Render) -> Iterator[Markup]:
    """Return each turn as a row: speaker on the left, parts on the right."""
    for turn in turns:
        own: Render = "plain" if turn.role == "user" else render
        parts = [_part(part, own) for part in turn.parts] or [element("div", "(nothing)", class_="ab_muted")]
        known = turn.role if turn.role in ("user", "assistant", "system", "tool") else "other"
        yield element(
            "div",
            element("div", speaker(turn), class_="ab_who", title=turn.role),
            element("div", *parts, class_="ab_what"),
            class_=f"ab_turn ab_from_{known}",
        )


def _part(part: Part, render: Render) -> Markup:
    if isinstance(part, TextPart):
        return element("div", prose_blocks(part.text, render, _TEXT_LIMIT), class_="ab_prose ab_said")
    if isinstance(part, ReasoningPart):
        inside = element("div", prose_blocks(part.text, "plain", _TEXT_LIMIT), class_="ab_prose")
        return element("details", element("summary", "thinking"), inside, class_="ab_thought")
    if isinstance(part, ToolCallPart):
        return _tool_call(part)
    if isinstance(part, ApprovalPart):
        return _approval(part)
    if isinstance(part, MediaPart):
        return _media(part)
    return element("div", part.text, class_="ab_note ab_bad" if part.failed else "ab_note")


def _tool_call(call: ToolCallPart) -> Markup:
    summary = element("summary", element("code", call.signature), _outcome(call))
    body = [_block("arguments", call.arguments), _block("error" if call.failed else "result", call.result)]
    return element("details", summary, *body, class_="ab_call ab_bad" if call.failed else "ab_call")


def _outcome(call: ToolCallPart) -> Markup:
    if call.outcome is None:
        return element("span", " not run yet", class_="ab_muted")
    return element("span", " ✗ " if call.failed else " → ", element("span", call.outcome), class_="ab_outcome")


def _block(label: str, text: str) -> Markup | None:
    return element("div", element("span", label, class_="ab_muted"), element("pre", text)) if text else None


def _approval(approval: ApprovalPart) -> Markup:
    sign = {None: "?", True: "✓", False: "✗"}[approval.answer]
    line = [element("span", sign, class_="ab_sign"), element("span", approval.text)]
    look = "ab_ask" if approval.answer is None else "ab_ask ab_answer"
    if not approval.arguments or approval.answer is not None:
        return element("div", *line, class_=look)
    return element("details", element("summary", *line), _block("arguments", approval.arguments), class_=look)


def _media(media: MediaPart) -> Markup:
    if media.uri is None:
        return element("div", media.label, class_="ab_note")
    picture = element("img", src=_address(media.uri), alt=media.label)
    return element("figure", picture, element("figcaption", media.label, class_="ab_muted"))


def _address(uri: str) -> Markup:
    """Return a `data:` address rebuilt from its letters, so that it can contain nothing else."""
    head, _, data = uri.partition(";base64,")
    kind = "".join(letter for letter in head.removeprefix("data:") if letter.isalnum() or letter in "/+-.")
    return Markup(f"data:{kind};base64," + "".join(c for c in data if c.isalnum() or c in "+/="))
