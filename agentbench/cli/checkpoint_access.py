"""From a person's command line to storages, checkpoints and the classes that are needed to read them."""

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

REFERENCE = "an id, the beginning of one, latest, latest:CHAIN or CHAIN@NUMBER"
_MOST_NAMED = 5
_SCRIPT = "__mp_main__"  # as multiprocessing names the module of a script: its main part does not run


@contextlib.contextmanager
def open_target(target: str, *, create: bool = False) -> Iterator[CheckpointStorage]:
    """Open the storage at an address, and close it afterwards."""
    try:
        storage = open_storage(target, create=create)
    except ValueError as error:
        msg = f"{displayed_address(target)!r} is no address of checkpoints: {error}"
        raise WorkflowCheckpointException(msg, error) from error
    try:
        yield storage
    finally:
        getattr(storage, "close", lambda: None)()


async def require_chain(storage: CheckpointStorage, name: str, *, target: str) -> None:
    """Refuse the name of a chain that does not exist, with the names of those that do."""
    names = await list_workflow_names(storage)
    if name not in names:
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        there = (", ".join(map(repr, names[:_MOST_NAMED])) or "none") + more
        msg = f"There is no chain {name!r} in {displayed_address(target)}. There are: {there}."
        raise WorkflowCheckpointException(msg)


async def find_checkpoint(storage: CheckpointStorage, reference: str, *, target: str) -> WorkflowCheckpoint:
    """Load the checkpoint that a person named, as `REFERENCE` says; `latest` is the newest of all chains."""
    found = await _matching(storage, reference)
    if not found:
        try:
            return await storage.load(reference)  # one that lists leave out says why it cannot be read
        except CheckpointNotFoundError:
            msg = (
                f"There is no checkpoint {reference!r} in {displayed_address(target)}. Expected {REFERENCE}; "
                f"agentbench checkpoints list prints what there is."
            )
            raise CheckpointNotFoundError(reference, msg) from None
    if len(found) > 1:
        named = ", ".join(f"{info.checkpoint_id} ({info.workflow_name!r})" for info in found[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
        msg = f"{reference!r} may be each of {len(found):,} checkpoints: {named}{more}. Name more of the id."
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
    """Import the modules, or scripts without their main part, that define what checkpoints hold."""
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            if not name.endswith(".py") and not name.replace(".", "").isidentifier():
                msg = "it is no module. Expected a dotted name, or the file of a script: --import SCRIPT.py"
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
    """Return the text of an error, with the option that helps where a class could not be found."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, UnknownStoredTypeError):
        cause = cause.__cause__
    if cause is None:
        return str(error)
    module = cause.type_name.replace(":", ".").rpartition(".")[0]
    hint = f"--import {module}" if module and module != "__main__" else "--import SCRIPT.py, the script that saved it"
    return f"{error} Try the same command with {hint}."
