"""Text files of stores: named by ids, below a folder that no link leaves, and replaced in one step."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import unicodedata
from base64 import b32encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from agentbench._files.private_file import read_private, refuse_links, write_private

_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)", re.IGNORECASE)
_PREFIX: Final = "~session-"
_LONGEST: Final = 240
"""File systems allow 255 bytes, including the suffix."""


def read_text(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> str:
    """Return the text of a file below a folder; raise ValueError if a link leads to it."""
    refuse_links(folder, path)
    data, _ = read_private(os.path.abspath(path), sys.maxsize)
    return data.decode("utf-8", "replace")


def read_json(
    folder: str | os.PathLike[str], path: str | os.PathLike[str], loads: Callable[[str], Any] = json.loads
) -> Any:
    """Return the JSON value in a file below a folder, or None if there is no file."""
    try:
        text = read_text(folder, path)
    except FileNotFoundError:
        return None
    try:
        return loads(text)
    except ValueError as error:
        message = f"{path} is not valid JSON: {error}. Fix or remove the file."
        raise ValueError(message) from error


def replace_text(folder: str | os.PathLike[str], path: str | os.PathLike[str], text: str | bytes) -> None:
    """Replace a file below a folder, which is created; raise ValueError if a link leads to it."""
    refuse_links(folder, path)
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    write_private(os.path.abspath(path), data)


def stem_of(session_id: str | None, *, ignores_case: bool = False) -> str:
    """Return the file name for a session without suffix: unique for each id, `default` without one.

    An id that can be a file name on every system is used unchanged; with `ignores_case` only if no other id differs
    from it only by case or by the composition of accented letters.
    """
    if not session_id:
        return "default"
    data = session_id.encode("utf-8", "surrogatepass")
    if (
        all(character.isalnum() or character in "._-" for character in session_id)
        and session_id.casefold() != "default"  # the name for histories without a session
        and not session_id.startswith(".")
        and not session_id.endswith(".")
        and not _DEVICE.match(session_id)
        and len(data) <= _LONGEST
        and not (ignores_case and unicodedata.normalize("NFC", session_id).casefold() != session_id)
    ):
        return session_id
    encoded = b32encode(data).lower() if ignores_case else urlsafe_b64encode(data)
    stem = _PREFIX + encoded.decode().rstrip("=")
    return stem if len(stem) <= _LONGEST else f"~digest-{hashlib.sha256(data).hexdigest()}"


def folder_ignores_case(folder: str) -> bool:
    """Return whether file names in a folder ignore case; `False` if the folder is not writable."""
    probe = os.path.join(folder, f".probe-{uuid4().hex}-a")
    try:
        with open(probe, "xb"):
            pass
    except OSError:
        return False
    try:
        return os.path.exists(probe[:-1] + "A")
    finally:
        os.unlink(probe)
