"""Displays the text of a model or a person, as plain text or with a safe subset of Markdown.

Paragraphs, headings, lists, emphasis and code, parsed by mistune, become elements with escaped text. There is
no raw HTML, no picture and no remote load; a link is its text followed by the address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from agentbench._display import Displayable
from agentbench._extras import require
from agentbench._limits import require_limit
from agentbench._text.escape import esc
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.style import read_static

Render = Literal["plain", "markdown"]

LIMIT = 20_000
_TAGS = {"paragraph": "p", "strong": "strong", "emphasis": "em", "codespan": "code", "list": "ul", "list_item": "li"}
_WEB = re.compile(r"https?://[^\s]+", re.IGNORECASE)


def prose(text: str, *, render: Render = "plain", limit: int = LIMIT) -> Prose:
    """Show a text in a cell.

    Args:
        text: The text of a model or a person; not trusted.
        render: `plain` shows the text unchanged, including line breaks. `markdown` renders paragraphs, headings,
            lists, emphasis and code, and nothing else.
        limit: Maximum number of displayed characters; the number of omitted ones is shown.

    Raises:
        TypeError: `text` is not a str.
        ValueError: `render` is none of these, or `limit` is below 1.

    Example:
        prose(result.outputs[-1], render="markdown")
    """
    value: object = text
    if not isinstance(value, str):
        msg = f"text is a {type(value).__name__}; expected a str. For other values, use prose(str(value))."
        raise TypeError(msg)
    require_rendering(render, limit)
    return Prose(text, render, limit)


def require_rendering(render: object, limit: int) -> None:
    """Raise `ValueError` for invalid arguments of `prose` and `transcript`."""
    require_limit("limit", limit, least=1)
    if render not in get_args(Render):
        msg = f"render={render!r}: expected one of {', '.join(get_args(Render))}."
        raise ValueError(msg)


@dataclass(frozen=True, repr=False)
class Prose(Displayable):
    """A text for a cell, made by `prose`, which checks the arguments; the last expression of a cell displays it.

    Example:
        prose("# A heading", render="markdown").html
    """

    source: str
    render: Render = "plain"
    limit: int = LIMIT

    @property
    def text(self) -> str:
        """The plain text, unchanged."""
        return esc(self.source, into="text", limit=self.limit)

    @property
    def html(self) -> str:
        """The text as HTML."""
        style = Markup(f"<style>{read_static('views.css')}</style>")
        return element("div", style, prose_blocks(self.source, self.render, self.limit), class_="ab_view ab_prose")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Prose({len(self.source):,} characters, {self.render})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/html": self.html, "text/plain": self.text}


def _escape_cut(text: str) -> Markup:
    """Escape a text that is already cut."""
    return Markup(esc(text, limit=None))


def prose_blocks(text: str, render: Render, limit: int) -> Markup:
    """Return a text as HTML without a frame and a style, for an element of the class `ab_prose`."""
    escaped = esc(text, into="text", limit=limit)
    if render == "plain":
        return element("div", _escape_cut(escaped), class_="ab_plain")
    return _markup(_parser()(escaped))


@cache
def _parser() -> Any:
    """Return a parser of the supported part of Markdown; everything else stays text."""
    markdown = require("mistune", extra="notebook", purpose="read Markdown").create_markdown(renderer=None)
    markdown.block.rules = markdown.block.list_rules = ["fenced_code", "atx_heading", "list", "blank_line"]
    markdown.inline.rules = ["escape", "codespan", "emphasis", "link", "link_close"]
    return markdown


def _markup(tokens: Sequence[Mapping[str, Any]]) -> Markup:
    return Markup("".join(map(_element, tokens)))


def _element(token: Mapping[str, Any]) -> Markup:
    inside = _markup(token["children"]) if "children" in token else _escape_cut(token.get("raw", ""))
    attributes = token.get("attrs", {})
    match token["type"]:
        case "block_code":
            return element("pre", element("code", _escape_cut(token["raw"].removesuffix("\n"))))
        case "heading":  # the page's own headings rank above these
            return element(f"h{min(attributes['level'] + 2, 6)}", inside)
        case "list" if attributes["ordered"]:
            return element("ol", inside, start=attributes.get("start"))
        case "link" | "image":
            return _link(inside, attributes["url"], attributes.get("title"))
        case kind:
            return element(_TAGS[kind], inside) if kind in _TAGS else inside


def _link(words: Markup, address: str, title: str | None) -> Markup:
    """Return a link with its visible address; only web addresses are clickable."""
    beside: str = _escape_cut(address)
    if _WEB.fullmatch(address):
        beside = element("a", beside, href=beside, rel="noopener noreferrer", target="_blank")
    beside += f", {_escape_cut(title)}" if title else ""
    return Markup(f"{words} ({beside})" if words else beside)
