"""Reads the file that an editable page lets its reader download: data only, checked before it is used."""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbench.exceptions import MergeError

FORMAT = "agentbench answer 1"
"""The version of the file's format."""

MOST_ITEMS = 50
"""Changes in one file, so that the display shows every one."""

_LARGEST = 5_000_000  # bytes
_DEEPEST = 40
_LONGEST_NAME = 100
_LONGEST_ID = 1000


@dataclass(frozen=True, kw_only=True)
class AnswerFile:
    """The content of a file: edits as (path, value before as JSON text, new value), answers as (request, value)."""

    run: str
    checkpoint: str
    edits: tuple[tuple[str, str, Any], ...]
    answers: tuple[tuple[str, Any], ...]
    name: str


def read_answer_file(path: str | Path) -> AnswerFile:
    """Read a file once and check its form.

    Raises:
        MergeError: It is not a regular file, is too large or too deep, or is not of this format.
    """
    text = _read(Path(path), where := str(path))
    try:
        content = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, where), parse_constant=_no_constant)
    except RecursionError:
        raise MergeError(where, f"its values are nested more than {_DEEPEST} deep") from None
    except ValueError as error:
        if isinstance(error, MergeError):
            raise
        raise MergeError(where, f"it is not JSON ({error})") from None
    _check_value(content, where)
    fields = _fields(
        content, {"format": str, "run": str, "checkpoint": str, "edits": list, "answers": list, "name": str}, "", where
    )
    if fields["format"] != FORMAT:
        raise MergeError(where, f"its format is {fields['format'][:40]!r}, expected {FORMAT!r}")
    name = fields["name"].strip()
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise MergeError(where, f"its name is not one printable line of at most {_LONGEST_NAME} characters")
    edits = [_fields(each, {"path": str, "before": str, "value": object}, "an edit", where) for each in fields["edits"]]
    answers = [_fields(each, {"request": str, "value": object}, "an answer", where) for each in fields["answers"]]
    if len(edits) + len(answers) > MOST_ITEMS or not edits + answers:
        raise MergeError(
            where, f"it has {len(edits)} edits and {len(answers)} answers, expected 1 to {MOST_ITEMS} together"
        )
    for names in ([each["path"] for each in edits], [each["request"] for each in answers]):
        if len(set(names)) < len(names) or any(len(each) > _LONGEST_ID for each in names):
            raise MergeError(where, "it names one place twice, or a place with an overlong name")
    return AnswerFile(
        run=fields["run"],
        checkpoint=fields["checkpoint"],
        edits=tuple((each["path"], each["before"], each["value"]) for each in edits),
        answers=tuple((each["request"], each["value"]) for each in answers),
        name=name,
    )


def _read(path: Path, where: str) -> str:
    # A link could lead to another file between two looks, and a pipe would wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise MergeError(
            where, f"it cannot be opened as a file ({getattr(error, 'strerror', None) or error})"
        ) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise MergeError(where, "it is not a regular file")
    with os.fdopen(file, "rb") as opened:
        content = opened.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise MergeError(where, f"it is larger than {_LARGEST:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise MergeError(where, "it is not UTF-8 text") from None


def _object(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise MergeError(where, "a key occurs twice in it")
    return made


def _no_constant(name: str) -> Any:
    msg = f"{name} is not a JSON number"
    raise ValueError(msg)


def _check_value(content: Any, where: str) -> None:
    level = [content]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += [*value, *value.values()]
            elif isinstance(value, list):
                below += value
            elif isinstance(value, float) and not math.isfinite(value):
                raise MergeError(where, "a number in it is too large")
            elif isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value):
                raise MergeError(where, "a text in it contains half a character (a surrogate)")
        level = below
    if level:
        raise MergeError(where, f"its values are nested more than {_DEEPEST} deep")


def _fields(value: Any, types: dict[str, type], what: str, where: str) -> dict[str, Any]:
    inside = f"{what} in it" if what else "it"
    if not isinstance(value, dict) or value.keys() != types.keys():
        found = f"has the keys {sorted(value)!r:.200}" if isinstance(value, dict) else f"is a {type(value).__name__}"
        raise MergeError(where, f"{inside} {found}, expected an object with exactly {', '.join(types)}")
    for name, kind in types.items():
        if not isinstance(value[name], kind):
            raise MergeError(where, f"{name!r} of {inside} is a {type(value[name]).__name__}, expected {kind.__name__}")
    return value
