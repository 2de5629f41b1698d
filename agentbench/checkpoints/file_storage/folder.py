"""The folder of the checkpoints: created on demand, and written by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agentbench._files.lock import FolderLock
from agentbench._files.private_file import is_temporary, sync_folder
from agentbench.exceptions import WorkflowCheckpointException


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
