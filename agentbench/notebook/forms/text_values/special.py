"""Texts of values that are not text: dates and times, and the content of a file."""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Literal

__all__ = ["FILE_LIMIT", "TimeText", "bytes_of_text", "text_of_bytes", "time_text_of"]

# The most that a page may send in one message on a usual server is ten megabytes.
FILE_LIMIT = 5 * 1024 * 1024

_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d+)?)?"
_ZONE = r" ?([Zz]|[+-]\d{2}:?\d{2}(:\d{2})?)?"

TimeKind = Literal["date", "datetime", "time"]


@dataclass(frozen=True)
class TimeText:
    """How a point in time is typed.

    Attributes:
        kind: The picker of the page.
        zone: `aware` if a zone is needed, `naive` if none is allowed, else `either`.
        help: The accepted texts, in words.
    """

    kind: TimeKind
    zone: Literal["aware", "naive", "either"]
    help: str

    def problem(self, text: str) -> str:
        """Return why a text is not accepted, empty if it is. Pydantic would read a number as seconds since 1970."""
        pattern = {"date": _DAY, "datetime": f"{_DAY}[T ]{_CLOCK}{_ZONE}", "time": f"{_CLOCK}{_ZONE}"}[self.kind]
        return "" if re.fullmatch(pattern, text) else f"Type {_SUCH[self.kind]}."


_SUCH = {
    "date": "a date such as 2024-05-17",
    "datetime": "a date and a time such as 2024-05-17 14:30",
    "time": "a time such as 14:30",
}
_ZONES = {
    "aware": ", with a zone: Z for UTC, or +02:00",
    "naive": ", without a zone",
    "either": "; a zone may follow: Z for UTC, or +02:00",
}
_KINDS: dict[type, TimeKind] = {date: "date", datetime: "datetime", time: "time"}
# Classes of pydantic, by name: looking at a type must not load it.
_NAMED: dict[str, tuple[TimeKind, Literal["aware", "naive", "either"]]] = {
    "AwareDatetime": ("datetime", "aware"),
    "NaiveDatetime": ("datetime", "naive"),
    "PastDatetime": ("datetime", "either"),
    "FutureDatetime": ("datetime", "either"),
    "PastDate": ("date", "naive"),
    "FutureDate": ("date", "naive"),
}


def time_text_of(base: Any) -> TimeText | None:
    """Return how values of a type are typed; `None` for types other than dates and times."""
    if not isinstance(base, type):
        return None
    if base.__module__.startswith("pydantic") and base.__name__ in _NAMED:
        kind, zone = _NAMED[base.__name__]
    elif base in _KINDS:
        kind, zone = _KINDS[base], "naive" if base is date else "either"
    else:
        return None
    zone_text = "" if kind == "date" else _ZONES[zone]
    such = _SUCH[kind]
    return TimeText(kind, zone, f"{such[:1].upper()}{such[1:]}{zone_text}")


def text_of_bytes(content: bytes) -> str:
    """Return the content of a file as text, in base64."""
    return base64.b64encode(content).decode("ascii")


def bytes_of_text(text: str, refuse: Callable[[str], Exception]) -> bytes:
    """Return the content of a base64 text; `refuse` makes the error of a message."""
    try:
        content = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        msg = "This is not the content of a file. Expected base64 text."
        raise refuse(msg) from None
    if len(content) > FILE_LIMIT:
        msg = f"The file has {len(content):,} bytes; at most {FILE_LIMIT:,} are accepted."
        raise refuse(msg)
    return content
