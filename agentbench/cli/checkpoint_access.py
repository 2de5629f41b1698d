"""Opens the storages, checkpoints and classes that a command line names."""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
from collections.abc import Iterator, Sequence

from agentbench.checkpoints.access import list_infos, list_workflow_names
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.opening import displayed_address, open_storage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import (
    AgentFrameworkException,
    CheckpointNotFoundError,
    UnknownStoredTypeError,
    WorkflowCheckpointException,
)
from agentbench.serialization.class_names import register_class

REFERENCE = "an id, the beginning of an id, latest, latest:CHAIN or CHAIN@NUMBER"
_MOST_NAMED = 5
_SCRIPT = "__mp_main__"  # multiprocessing's name for a script's module; its main part does not run


@contextlib.contextmanager
def open_target(target: str, *, create: bool = False) -> Iterator[CheckpointStorage]:
    """Open the storage at an address, and close it afterwards."""
    try:
        storage = open_storage(target, create=create)
    except ValueError as error:
        msg = f"{displayed_address(target)!r} is not the address of a checkpoint storage: {error}"
        raise WorkflowCheckpointException(msg, error) from error
    try:
        yield storage
    finally:
        getattr(storage, "close", lambda: None)()


async def require_chain(storage: CheckpointStorage, name: str, *, target: str) -> None:
    """Raise an error for the name of a chain that does not exist; it lists the existing ones."""
    names = await list_workflow_names(storage)
    if name not in names:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        there = (", ".join(map(repr, names[:_MOST_NAMED])) or "none") + more
        msg = f"There is no chain {name!r} in {displayed_address(target)}. Chains: {there}."
        raise WorkflowCheckpointException(msg)


async def find_checkpoint(storage: CheckpointStorage, reference: str, *, target: str) -> WorkflowCheckpoint:
    """Load the checkpoint that the user named, as described by `REFERENCE`; `latest` is the newest of all chains."""
    found = await _matching(storage, reference)
    if not found:
        try:
            return await storage.load(reference)  # a checkpoint missing from lists explains why it cannot be read
        except CheckpointNotFoundError:
            msg = (
                f"There is no checkpoint {reference!r} in {displayed_address(target)}. Expected {REFERENCE}; "
                f"agentbench checkpoints list prints the existing ones."
            )
            raise CheckpointNotFoundError(reference, msg) from None
    if len(found) > 1:
        named = ", ".join(f"{info.checkpoint_id} ({info.workflow_name!r})" for info in found[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
        msg = f"{reference!r} matches {len(found):,} checkpoints: {named}{more}. Type more characters of the id."
        raise WorkflowCheckpointException(msg)
    return await storage.load(found[0].checkpoint_id)


async def _matching(storage: CheckpointStorage, reference: str) -> list[CheckpointInfo]:
    if reference == "latest":
        heads = [await list_infos(storage, workflow_name=name, limit=1) for name in await list_workflow_names(storage)]
        return sorted((info for head in heads for info in head), key=lambda info: info.timestamp)[-1:]
    if reference.startswith("latest:"):
        return await list_infos(storage, workflow_name=reference.partition(":")[2], limit=1)
    chain, at, number = reference.rpartition("@")
    if at and number.isdecimal():
        return [info for info in await list_infos(storage, workflow_name=chain) if info.seq == int(number)]
    start = reference.rstrip("….")
    found = [info for info in await list_infos(storage) if start and info.checkpoint_id.startswith(start)]
    return [info for info in found if info.checkpoint_id == reference] or found


def import_classes(names: Sequence[str]) -> None:
    """Import the modules, or scripts without their main part, that define the classes in checkpoints."""
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            if not name.endswith(".py") and not name.replace(".", "").isidentifier():
                msg = "there is no such module. Expected a dotted name, or the file of a script: --import SCRIPT.py"
                raise ValueError(msg)
            if not name.endswith(".py"):
                importlib.import_module(name)
                continue
            for value in runpy.run_path(name, run_name=_SCRIPT).values():
                if isinstance(value, type) and value.__module__ == _SCRIPT:
                    value.__module__ = "__main__"
                    register_class(value)
        except Exception as error:
            msg = f"--import {name}: {type(error).__name__}: {str(error).rstrip('.')}."
            raise WorkflowCheckpointException(msg, error) from error


def with_hint(error: AgentFrameworkException) -> str:
    """Return the text of an error, with the option that helps if a class was not found."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, UnknownStoredTypeError):
        cause = cause.__cause__
    if cause is None:
        return str(error)
    module = cause.type_name.replace(":", ".").rpartition(".")[0]
    hint = f"--import {module}" if module and module != "__main__" else "--import SCRIPT.py, the script that saved it"
    return f"{error} Try the same command with {hint}."
