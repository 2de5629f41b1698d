"""Names of files for session ids, which may be any text."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from base64 import b32encode, urlsafe_b64encode
from typing import Final
from uuid import uuid4

_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)", re.IGNORECASE)
_PREFIX: Final = "~session-"
#: File systems allow 255 bytes; some are for the suffix.
_LONGEST: Final = 240


def stem_of(session_id: str | None, *, ignores_case: bool = False) -> str:
    """Return the name of a session's file, without suffix: different for each id, `default` without one.

    An id that can name a file on every system is its own name; with `ignores_case` only if no other id differs from it
    by case alone, or in how letters with accents are composed.
    """
    if not session_id:
        return "default"
    data = session_id.encode("utf-8", "surrogatepass")
    if (
        all(character.isalnum() or character in "._-" for character in session_id)
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
    """Whether a folder takes names for the same that differ by case; `False` if it cannot be written to."""
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
