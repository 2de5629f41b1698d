"""The one way in which foreign text (ids, payloads, what models and people wrote) reaches HTML, SVG, DOT or plain text.

Everything else in this layer builds its output from constants and from what `esc` returns.
"""

import html
from typing import Literal

from agentbench._extras import require
from agentbench._plain_text import MASK, plain_line, plain_text

__all__ = ["LABEL_LIMIT", "MASK", "PREVIEW_LIMIT", "Target", "esc"]

Target = Literal["html", "svg", "dot", "text", "line"]

PREVIEW_LIMIT = 2048
LABEL_LIMIT = 32


def esc(value: object, *, into: Target = "html", limit: int | None = PREVIEW_LIMIT) -> str:
    r"""Return `value` as text that is inert in its target.

    `value` is a string or anything whose `str()` is meant, with secrets masked; payloads go through `redact.preview`
    first. Control, bidirectional and invisible characters are replaced by their codes (`\u202e`). More than `limit`
    characters (`None`: all) are cut, marked by `…`, in previews with the number of omitted characters.

    `html` and `svg` are element text or a quoted attribute, with line ends; `dot` is a quoted label, as the string
    class that the `graphviz` package does not take for markup; `text` has line ends, `line` none.
    """
    if into == "text":
        return plain_text(value, limit)
    if into in ("html", "svg"):
        return html.escape(plain_text(value, limit), quote=True)
    line = plain_line(value, limit)
    if into == "line":
        return line
    graphviz = require("graphviz", extra="notebook", purpose="draw a graph")
    # Graphviz reads entities inside labels: `&lt;` would come out as `<`. Its quoting takes `<...>` for markup and a
    # backslash for an escape.
    label: str = graphviz.nohtml(graphviz.escape(line.replace("&", "&amp;")))
    return label
