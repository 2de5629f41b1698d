"""File names for ids and chains, which may be any text."""

from __future__ import annotations

import hashlib
import os
import re

from agentbench.exceptions import WorkflowCheckpointException

SUFFIX = ".json"
JOURNAL_SUFFIX = ".checkpoints"
_LONGEST_NAME = 255
_HARMLESS = re.compile(r"[A-Za-z0-9_-]{5,200}")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)", re.IGNORECASE)
_UNSAFE_ON_WINDOWS = re.compile(r'[<>:"|?*\x00-\x1f]')
_NOT_READABLE = re.compile(r"[^a-z0-9]+")


def file_name(checkpoint_id: str) -> str:
    """Return `<id>.json`; WorkflowCheckpointException for an id that is not a valid file name."""
    if not _HARMLESS.fullmatch(checkpoint_id) and (reason := _why_not(checkpoint_id)):
        message = (
            f"{checkpoint_id!r} cannot be the id of a checkpoint in files: it {reason}. Expected a text that can name "
            "a file on every system."
        )
        raise WorkflowCheckpointException(message)
    return checkpoint_id + SUFFIX


def journal_name(workflow_name: str) -> str:
    """Return the file name of a chain: the readable part of the chain's name, and digits that are unique to it."""
    slug = _NOT_READABLE.sub("-", workflow_name.lower())[:40].strip("-")
    digest = hashlib.blake2b(workflow_name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return (f"{slug}-{digest}" if slug else digest) + JOURNAL_SUFFIX


def _why_not(checkpoint_id: str) -> str | None:
    try:
        length = len(os.fsencode(checkpoint_id)) + len(SUFFIX)
    except UnicodeEncodeError:
        return "is text that cannot be encoded"
    rules = {
        "is empty": not checkpoint_id,
        "is the name of a folder": checkpoint_id in (".", ".."),
        "holds a path separator": "/" in checkpoint_id or "\\" in checkpoint_id,
        "holds a null character": "\0" in checkpoint_id,
        "ends in a dot or a space, which Windows drops": checkpoint_id.endswith((".", " ")),
        "names a device of Windows": _DEVICE.match(checkpoint_id) is not None,
        "holds a character that Windows refuses": os.name == "nt" and bool(_UNSAFE_ON_WINDOWS.search(checkpoint_id)),
        f"is longer than {_LONGEST_NAME - len(SUFFIX)} bytes": length > _LONGEST_NAME,
    }
    return next((reason for reason, applies in rules.items() if applies), None)
