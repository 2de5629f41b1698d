"""The one way in which foreign text (ids, payloads, what models and people wrote) reaches HTML, SVG, DOT or plain text.

Everything else in this layer builds its output from constants and from what `esc` returns.
"""

import html
import re
from typing import Literal

from agentbench._extras import require
from agentbench._secrets import is_secret

__all__ = ["LABEL_LIMIT", "MASK", "PREVIEW_LIMIT", "Target", "esc"]

Target = Literal["html", "svg", "dot", "text", "line"]

PREVIEW_LIMIT = 2048
LABEL_LIMIT = 32

MASK = "•••"

# Control characters (but line end and tab), bidirectional overrides, invisible format characters, lone surrogates and
# the code points that XML forbids. ZWNJ and ZWJ stay: scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def esc(value: object, *, into: Target = "html", limit: int | None = PREVIEW_LIMIT) -> str:
    r"""Return `value` as text that is inert in its target.

    Control, bidirectional and invisible characters are replaced by their codes (`\u202e`); longer text is cut.

    Args:
        value: A string, or anything whose `str()` is meant. Secrets are masked. Payloads go through
            `redaction.preview` first.
        into: `html` and `svg`: element text or a quoted attribute; line ends stay. `dot`: a quoted label, as the string
            class that the `graphviz` package does not take for markup. `text`: plain text with its line ends. `line`:
            plain text in one line.
        limit: Most characters of `value`, `None` for all. A cut is marked by `…`, and in previews by the number of
            omitted characters.
    """
    text = _readable(value, limit)
    if into in ("html", "svg"):
        return html.escape(text, quote=True)
    if into == "text":
        return text
    line = text.replace("\n", " ").replace("\t", " ")
    if into == "line":
        return line
    graphviz = require("graphviz", extra="notebook", purpose="draw a graph")
    # Graphviz reads entities inside labels: `&lt;` would come out as `<`. Its quoting takes `<...>` for markup and a
    # backslash for an escape.
    label: str = graphviz.nohtml(graphviz.escape(line.replace("&", "&amp;")))
    return label


def _readable(value: object, limit: int | None) -> str:
    if is_secret(value):
        return MASK
    text = value if isinstance(value, str) else str(value)
    size = len(text)
    if limit is not None and size > limit:
        text = text[: limit - 1] + "…" if limit < 200 else f"{text[:limit]}… ({size - limit:,} more characters)"
    return _UNSAFE.sub(_code_of, text.replace("\r\n", "\n"))


def _code_of(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
