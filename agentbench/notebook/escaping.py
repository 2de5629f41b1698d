"""The one way in which foreign text (ids, payloads, what models and people wrote) reaches HTML, SVG, DOT or plain text.

Everything else in this layer builds its output from constants and from what `esc` returns.
"""

import html
import re
import reprlib
from collections.abc import Mapping
from typing import Literal

from agentbench._extras import require

__all__ = ["LABEL_LIMIT", "MASK", "PREVIEW_LIMIT", "Target", "esc", "is_secret_name", "preview"]

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

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")

# Whole words of a key, so that `token` is masked and `tokens_in` is not.
_SECRET_WORDS = frozenset(
    {"authorization", "cookie", "credential", "credentials", "passwd", "password", "secret", "token"}
)
_SECRET_PAIRS = ("api_key", "apikey", "access_key", "private_key", "client_secret", "headers")


def esc(value: object, *, into: Target = "html", limit: int | None = PREVIEW_LIMIT) -> str:
    r"""Return `value` as text that is inert where it is going to stand.

    Control, bidirectional and invisible characters are shown as `\u202e`, never passed on; longer text is cut.

    Args:
        value: A string, or anything whose `str()` is meant. Secrets are masked. Payloads go through `preview` first.
        into: `html` and `svg`: element text or a quoted attribute; line ends stay. `dot`: a quoted label, as the string
            class that the `graphviz` package does not take for markup. `text`: plain text with its line ends. `line`:
            plain text in one line.
        limit: Most characters of `value` that are shown, `None` for all. A cut is marked by `…`, and in previews by
            the number of characters left out.
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
    # backslash for an escape unless told otherwise.
    label: str = graphviz.nohtml(graphviz.escape(line.replace("&", "&amp;")))
    return label


def preview(value: object, *, limit: int = PREVIEW_LIMIT) -> str:
    """Return one value of a user's as short text for `esc`: strings as they are, everything else as its `repr`.

    Values under keys that name a secret are masked, and a `repr` that raises is named instead of raised: a view must
    not fail because of what it shows.
    """
    if isinstance(value, str):
        return MASK if _is_secret(value) else value
    return _Previewer(limit).repr(value)


def is_secret_name(key: object) -> bool:
    """Tell whether a key (of a mapping, a field, a header) names something that is not to be shown."""
    if not isinstance(key, str):
        return False
    name = key.lower().replace("-", "_").replace(" ", "_")
    return any(pair in name for pair in _SECRET_PAIRS) or not _SECRET_WORDS.isdisjoint(name.split("_"))


def _is_secret(value: object) -> bool:
    return callable(getattr(type(value), "get_secret_value", None))


def _readable(value: object, limit: int | None) -> str:
    if _is_secret(value):
        return MASK
    text = value if isinstance(value, str) else str(value)
    size = len(text)
    if limit is not None and size > limit:
        text = text[: limit - 1] + "…" if limit < 200 else f"{text[:limit]}… ({size - limit:,} more characters)"
    return _UNSAFE.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class _Previewer(reprlib.Repr):
    """`repr` that stops early on large values and masks what sits under a secret's name."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 20
        self.maxstring = self.maxother = limit
        self.maxlong = 80

    def repr1(self, x: object, level: int) -> str:
        if _is_secret(x):
            return MASK
        if isinstance(x, Mapping) and type(x) is not dict:
            return f"{type(x).__name__}({self.repr_dict(dict(x), level)})"
        return super().repr1(x, level)

    def repr_instance(self, x: object, level: int) -> str:
        try:
            text = repr(x)
        except Exception as error:  # noqa: BLE001 - `repr` is user code
            return f"<{type(x).__name__}: its repr raised {type(error).__name__}>"
        # An address tells a reader nothing and differs in every run.
        text = _ADDRESS.sub("", text)
        return text if len(text) <= self.maxother else text[: self.maxother] + "…"

    def repr_dict(self, x: Mapping[object, object], level: int) -> str:
        if level <= 0 and x:
            return "{…}"
        items = [
            f"{self.repr1(key, level - 1)}: {MASK if is_secret_name(key) else self.repr1(value, level - 1)}"
            for key, value in list(x.items())[: self.maxdict]
        ]
        if len(x) > self.maxdict:
            items.append(f"… {len(x) - self.maxdict:,} more")
        return "{" + ", ".join(items) + "}"
