"""The only way in which foreign text (ids, payloads, texts of models and people) enters HTML, SVG, DOT or plain text.

Everything else in this layer builds its output from constants and results of `esc`.
"""

import html
from typing import Literal

from agentbench._plain_text import MASK, plain_line, plain_text

__all__ = ["LABEL_LIMIT", "MASK", "PREVIEW_LIMIT", "Target", "esc"]

Target = Literal["html", "svg", "text", "line"]

PREVIEW_LIMIT = 2048
LABEL_LIMIT = 32


def esc(value: object, *, into: Target = "html", limit: int | None = PREVIEW_LIMIT) -> str:
    r"""Return `value` as text that is safe in its target.

    `value` is a string, or its `str()` is used, with secrets masked; pass payloads through `redact.preview`
    first. Control, bidirectional and invisible characters are replaced by their codes (`\u202e`). More than `limit`
    characters (`None`: no limit) are cut and marked by `…`, in previews with the number of omitted characters.

    `html` and `svg` are element text or a quoted attribute, with line breaks; `text` has line breaks, `line` has none.
    """
    if into == "text":
        return plain_text(value, limit)
    if into in ("html", "svg"):
        return html.escape(plain_text(value, limit), quote=True)
    return plain_line(value, limit)
