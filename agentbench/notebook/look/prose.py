"""Text of a model or a person for display: as it is, or with the part of Markdown that can do no harm.

Paragraphs, headings, lists, emphasis and code become elements whose text is escaped. There is no raw HTML, no picture
and no remote load; a link is its text with the address beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from agentbench._display import Displayable
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.style import read_static
from agentbench.notebook.text.escape import esc

__all__ = ["Prose", "Render", "prose", "prose_blocks"]

Render = Literal["plain", "markdown"]

LIMIT = 20_000
_DEEPEST = 8

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S.*)$")
_ITEM = re.compile(r"^( *)(?:[-*+]|(\d{1,9})[.)])[ \t]+(\S.*)$")

# Bounded, so that the time taken grows with the length of the text and not with its square.
_INLINE = re.compile(
    r"\\(?P<literal>[!#()*+.>\[\]\\_`{}~-])"
    r"|(?P<ticks>`{1,3})(?!`)(?P<code>.{1,2000}?)(?<!`)(?P=ticks)(?!`)"
    r"|!?\[(?P<words>[^\[\]]{0,500})\]\((?P<address>[^()\s]{0,2000})\)"
    r"|\*\*(?=\S)(?P<strong>.{1,500}?)(?<=\S)\*\*"
    r"|(?<!\w)__(?=\S)(?P<strong_>.{1,500}?)(?<=\S)__(?!\w)"
    r"|\*(?=[^\s*])(?P<em>[^*]{1,500}?)(?<=\S)\*"
    r"|(?<!\w)_(?=[^\s_])(?P<em_>.{1,500}?)(?<=\S)_(?!\w)",
    re.DOTALL,
)
_WEB = re.compile(r"https?://[^\s]+", re.IGNORECASE)


def prose(text: str, *, render: Render = "plain", limit: int = LIMIT) -> Prose:
    """Show a text in a cell.

    Args:
        text: The text of a model or a person; not trusted.
        render: `plain` shows it as it is, line ends included. `markdown` reads paragraphs, headings, lists,
            emphasis and code, and nothing else.
        limit: Most characters that are displayed; a cut says how many are left out.

    Raises:
        TypeError: `text` is no text.
        ValueError: `render` is something else, or `limit` is below 1.

    Example:
        prose(result.outputs[-1], render="markdown")
    """
    value: object = text
    if not isinstance(value, str):
        msg = f"text is a {type(value).__name__}; expected a str. For other values: prose(str(value))."
        raise TypeError(msg)
    if render not in get_args(Render):
        msg = f"render={render!r} is not possible. Choose one of {', '.join(get_args(Render))}."
        raise ValueError(msg)
    if limit < 1:
        msg = f"limit={limit!r} is not possible. Expected 1 or more characters."
        raise ValueError(msg)
    return Prose(text, render, limit)


@dataclass(frozen=True, repr=False)
class Prose(Displayable):
    """A text for a cell, made by `prose`, which checks the arguments; the last expression of a cell displays it.

    Attributes:
        source: The text itself, whole.
        render: `plain` or `markdown`.
        limit: Most characters that are displayed.

    Example:
        prose("# A heading", render="markdown").html
    """

    source: str
    render: Render = "plain"
    limit: int = LIMIT

    @property
    def text(self) -> str:
        """The form without HTML: the text as it was written."""
        return esc(self.source, into="text", limit=self.limit)

    @property
    def html(self) -> str:
        """The form for notebooks."""
        style = Markup(f"<style>{read_static('views.css')}</style>")
        return element("div", style, prose_blocks(self.source, self.render, self.limit), class_="ab_view ab_prose")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Prose({len(self.source):,} characters, {self.render})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/html": self.html, "text/plain": self.text}


def _escape_cut(text: str) -> Markup:
    """Escape a text that was cut already."""
    return Markup(esc(text, limit=None))


def prose_blocks(text: str, render: Render, limit: int) -> Markup:
    """Return a text as HTML without a frame and a style, for an element of the class `ab_prose`."""
    escaped = esc(text, into="text", limit=limit)
    if render == "plain":
        return element("div", _escape_cut(escaped), class_="ab_plain")
    return Markup("".join(_blocks(escaped.split("\n"))))


# --- blocks -----------------------------------------------------------------------------------------------------------


def _blocks(lines: Sequence[str]) -> Iterator[Markup]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif fence := _FENCE.match(line):
            end = _end_of_code(lines, at + 1, fence[1])
            yield element("pre", element("code", _escape_cut("\n".join(lines[at + 1 : end]))))
            at = end + 1
        elif heading := _HEADING.match(line):
            # The page has headings of its own, above these.
            yield element(f"h{min(len(heading[1]) + 2, 6)}", _inline(heading[2].rstrip("# ")))
            at += 1
        elif _ITEM.match(line):
            end = _end_of_list(lines, at)
            yield _list(list(_items(lines[at:end])))
            at = end
        else:
            end = next((i for i in range(at + 1, len(lines)) if _begins_block(lines[i])), len(lines))
            yield element("p", _inline("\n".join(each.strip() for each in lines[at:end])))
            at = end


def _begins_block(line: str) -> bool:
    return not line.strip() or any(pattern.match(line) for pattern in (_FENCE, _HEADING, _ITEM))


def _end_of_code(lines: Sequence[str], at: int, fence: str) -> int:
    return next((i for i in range(at, len(lines)) if lines[i].strip().startswith(fence)), len(lines))


def _end_of_list(lines: Sequence[str], at: int) -> int:
    """A list goes on over its items and what is indented below them, and over one empty line before more of it."""
    for i in range(at, len(lines)):
        line = lines[i]
        goes_on = _ITEM.match(line) or (line.startswith("  ") and line.strip())
        if not goes_on and not (not line.strip() and i + 1 < len(lines) and _ITEM.match(lines[i + 1])):
            return i
    return len(lines)


@dataclass(frozen=True, slots=True)
class _Item:
    indent: int
    number: str | None
    words: str


def _items(lines: Sequence[str]) -> Iterator[_Item]:
    item: _Item | None = None
    for line in lines:
        if found := _ITEM.match(line):
            if item is not None:
                yield item
            item = _Item(len(found[1]), found[2], found[3])
        elif item is not None and line.strip():
            item = _Item(item.indent, item.number, f"{item.words}\n{line.strip()}")
    if item is not None:
        yield item


def _list(items: Sequence[_Item], depth: int = 0) -> Markup:
    """Items that are further in than the first belong to the one before them."""
    escaped: list[Markup] = []
    at = 0
    while at < len(items):
        end = at + 1
        while end < len(items) and items[end].indent > items[0].indent and depth < _DEEPEST:
            end += 1
        inner = _list(items[at + 1 : end], depth + 1) if end > at + 1 else None
        escaped.append(element("li", _inline(items[at].words), inner))
        at = end
    number = items[0].number
    start = None if number in (None, "1") else int(str(number))
    return element("ul" if number is None else "ol", *escaped, start=start)


# --- words ------------------------------------------------------------------------------------------------------------


def _inline(text: str, depth: int = 0) -> Markup:
    parts: list[str] = []
    at = 0
    for found in _INLINE.finditer(text) if depth < _DEEPEST else ():
        parts += [_escape_cut(text[at : found.start()]), _markup_of(found, depth)]
        at = found.end()
    parts.append(_escape_cut(text[at:]))
    return Markup("".join(parts))


def _markup_of(found: re.Match[str], depth: int) -> Markup:
    if found["literal"] is not None:
        return _escape_cut(found["literal"])
    if found["code"] is not None:
        return element("code", _escape_cut(found["code"].strip()))
    if found["address"] is not None:
        return _link(found["words"], found["address"], depth)
    strong = found["strong"] if found["strong"] is not None else found["strong_"]
    if strong is not None:
        return element("strong", _inline(strong, depth + 1))
    return element("em", _inline(found["em"] if found["em"] is not None else found["em_"], depth + 1))


def _link(words: str, address: str, depth: int) -> Markup:
    """A reader sees where it leads; only addresses of the web can be followed."""
    beside: Markup = _escape_cut(address)
    if _WEB.fullmatch(address):
        beside = element("a", beside, href=beside, rel="noopener noreferrer", target="_blank")
    return Markup(f"{_inline(words, depth + 1)} ({beside})" if words else beside)
