"""The folder of the checkpoints and the names of its files: created on demand, written by one process at a time."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agentbench._files.lock import FolderLock
from agentbench._files.private_file import is_temporary, sync_folder
from agentbench.exceptions import SchemaVersionError, WorkflowCheckpointException


class CheckpointFolder:
    """A folder for its owner only; created, with its parents, if it does not exist."""

    def __init__(self, path: str, lock_name: str, *, fsync: bool = False) -> None:
        self.path = path
        self._start = os.path.join(path, "")
        self.lock = FolderLock(self.path_of(lock_name))
        self._is_tidy = False
        parent = os.path.dirname(os.path.abspath(path))
        try:
            os.makedirs(parent, exist_ok=True)
            os.mkdir(path, 0o700)
            os.chmod(path, 0o700)  # regardless of the umask
            if fsync:
                sync_folder(parent)
        except FileExistsError:
            self.require()
        except OSError as error:
            reason = f"cannot be made ({error.strerror})"
            raise self._unusable(reason) from error

    def path_of(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return self._start + name

    def require(self) -> None:
        """Raise an error if the folder is gone."""
        if not os.path.isdir(self.path):
            reason = "no longer exists, or is not a folder"
            raise self._unusable(reason)

    @contextmanager
    def writing(self, *, patient: bool = True) -> Iterator[None]:
        """Exclude all other writers."""
        try:
            self.lock.acquire(patient=patient)
        except BlockingIOError:
            raise
        except TimeoutError as error:
            raise WorkflowCheckpointException(str(error)) from error
        except OSError as error:
            self.require()
            reason = f"cannot be written to ({error.strerror})"
            raise self._unusable(reason) from error
        try:
            if not self._is_tidy:  # no other process is writing now, so unfinished files belong to killed ones
                for name in filter(is_temporary, os.listdir(self.path)):
                    with suppress(OSError):
                        os.unlink(self.path_of(name))
                self._is_tidy = True
            yield
        finally:
            self.lock.release()

    def _unusable(self, reason: str) -> WorkflowCheckpointException:
        message = (
            f"The folder of checkpoints {self.path!r} {reason}. Expected a folder that this process may write to; "
            "create it, or pass another path."
        )
        return WorkflowCheckpointException(message)


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


class UnreadableCheckpointError(WorkflowCheckpointException):
    """A file, or a line of one, should contain a checkpoint but does not, or not one that can be read here."""

    def __init__(self, checkpoint_id: str, path: str, reason: str, *, holds: str | None = None) -> None:
        self.checkpoint_id, self.path, self.reason, self.holds = checkpoint_id, path, reason, holds
        super().__init__(f"Checkpoint {checkpoint_id!r} cannot be read from {path!r}: {reason}.")


class NewerFormatError(UnreadableCheckpointError, SchemaVersionError):
    """A file was written by a newer version of agentbench."""
