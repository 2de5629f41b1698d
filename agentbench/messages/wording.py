"""How values are named in one line of text."""

from __future__ import annotations

import re
from typing import Any, Final

_MOST: Final = 60
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


def shortened(value: Any, most: int = _MOST) -> str:
    """Return the `repr` of a value, cut where it is long.

    Args:
        value: Anything. A long text is cut before it is written, whatever its size.
        most: So many characters of it are shown.
    """
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]!r}… ({len(value):,} characters)"
    text = _ADDRESS.sub("", repr(value))
    return text if len(text) <= 2 * most else f"{text[: 2 * most]}…"


def size_of_data_uri(uri: str) -> int:
    """The number of bytes in a `data:` URI, as its length tells."""
    header, _, data = uri.partition(",")
    if not header.lower().endswith(";base64"):
        return len(data)
    return len(data) * 3 // 4 - data[-2:].count("=")
