"""Where an export goes: a file that takes its place when it is complete, and never the place of checkpoints."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import TextIO

from agentbench.checkpoints.opening import is_sqlite_file, local_path, shown_address
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import WorkflowCheckpointException

_BESIDE_DATABASE = ("-wal", "-shm", "-journal")
_MANIFEST = b'{"agentbench_checkpoint":'
_LOG_OF_FOLDER = ".agentbench.index"


@contextlib.contextmanager
def written(path: str, *, source: str, force: bool) -> Iterator[TextIO]:
    """Open a file for its owner only, which takes its place when it is complete; `-` is the standard output.

    Args:
        path: As a person wrote it.
        source: The address of the storage that is read.
        force: Whether a file that is there is replaced. Checkpoints never are.

    Raises:
        WorkflowCheckpointException: It must not be written, or cannot.
    """
    if path == "-":
        yield sys.stdout
        return
    _refuse_checkpoints(path, source)
    _refuse_unusable(path, force=force)
    folder, name = os.path.split(os.path.abspath(path))
    with _told(path):
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}."[:50], suffix=".tmp", dir=folder)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            yield file
        with _told(path):
            os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def require_other_place(source: str, target: str) -> None:
    """Refuse to copy a folder or file to itself, however the two addresses are spelled.

    Raises:
        WorkflowCheckpointException: It is the same one.
    """
    here, there = local_path(source), local_path(target)
    if here is not None and there is not None and _is_same(here, there):
        raise _is_the_same(source, target)


def require_other_storage(storage: CheckpointStorage, other: CheckpointStorage, *, source: str, target: str) -> None:
    """Refuse to copy a storage to itself, also one of a server, which its text names without its password.

    Raises:
        WorkflowCheckpointException: It is the same one.
    """
    if repr(storage) == repr(other):
        raise _is_the_same(source, target)


def _is_the_same(source: str, target: str) -> WorkflowCheckpointException:
    msg = (
        f"{shown_address(target)!r} is the same storage as {shown_address(source)!r}. Expected another one for the "
        "copies."
    )
    return WorkflowCheckpointException(msg)


def _refuse_checkpoints(path: str, source: str) -> None:
    """Refuse what holds checkpoints, or may, whether it is to be replaced or not."""
    here, real = local_path(source), os.path.realpath(path)
    if here is not None:
        where = os.path.realpath(here)
        if _is_same(here, path) or real in {where + suffix for suffix in _BESIDE_DATABASE}:
            raise _refused(path, "it is what is being exported")
        if os.path.isdir(where) and _lies_in(real, where):
            raise _refused(path, "it lies in the folder that is being exported")
    if os.path.lexists(os.path.join(os.path.dirname(real), _LOG_OF_FOLDER)):
        raise _refused(path, "it lies in a folder of checkpoints")
    if os.path.isdir(real) or not os.path.isfile(real):
        return
    with _told(path), open(real, "rb") as file:
        start = file.read(len(_MANIFEST))
    if is_sqlite_file(real):
        raise _refused(path, "it is a database of SQLite")
    if start == _MANIFEST:
        raise _refused(path, "it is a checkpoint")


def _refuse_unusable(path: str, *, force: bool) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or path.endswith(os.sep):
        msg = f"{path!r} is a folder. Expected the name of a file; to copy to a storage in a folder, use --to."
        raise WorkflowCheckpointException(msg)
    if not os.path.isdir(folder):
        msg = f"{path!r} cannot be written: there is no folder {os.path.dirname(path)!r}. Make it first."
        raise WorkflowCheckpointException(msg)
    if os.path.exists(path) and not os.path.isfile(path):
        msg = f"{path!r} is no plain file. Leave -o out, and send the standard output there."
        raise WorkflowCheckpointException(msg)
    if os.path.lexists(path) and not force:
        msg = f"{path!r} is there already. Choose another name, or replace it with --force."
        raise WorkflowCheckpointException(msg)


def _lies_in(real: str, folder: str) -> bool:
    while True:
        if _is_same(real, folder):
            return True
        if (above := os.path.dirname(real)) == real:
            return False
        real = above


def _is_same(first: str, second: str) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:  # one is not there
        return os.path.realpath(first) == os.path.realpath(second)


def _refused(path: str, why: str) -> WorkflowCheckpointException:
    msg = f"{path!r} is not written to: {why}. Choose a file elsewhere."
    return WorkflowCheckpointException(msg)


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Name what a person wrote, not what stands in for it."""
    try:
        yield
    except OSError as error:
        msg = f"{path!r} cannot be written: {error.strerror or error}."
        raise WorkflowCheckpointException(msg, error) from error
