"""From what a person typed to storages, checkpoints and the classes that are needed to read them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import ModuleType
from typing import TypeAlias

from agentbench.checkpoints.access import list_infos, list_workflow_names
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.file_storage.manifest import UnreadableManifestError
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.opening import open_storage, shown_address
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import (
    AgentFrameworkException,
    CheckpointNotFoundError,
    UnknownStoredTypeError,
    WorkflowCheckpointException,
)

REFERENCE = "an id, the beginning of one, latest, latest:CHAIN or CHAIN@NUMBER"
Load: TypeAlias = Callable[[CheckpointID], Awaitable[WorkflowCheckpoint]]
_MOST_NAMED = 5
_OF_SCRIPT = "__mp_main__"  # what multiprocessing calls the module of a script, too: its main part does not run


# ------------------------------------------------------------------------------------------------------------- storages


@contextlib.contextmanager
def opened(target: str, *, create: bool = False) -> Iterator[CheckpointStorage]:
    """Open the storage at an address, and close it afterwards.

    Raises:
        WorkflowCheckpointException: There is none.
    """
    try:
        storage = open_storage(target, create=create)
    except ValueError as error:
        msg = f"{shown_address(target)!r} is no address of checkpoints: {error}"
        raise WorkflowCheckpointException(msg, error) from error
    try:
        yield storage
    finally:
        close = getattr(storage, "close", None)
        if close is not None:
            close()


async def require_chain(storage: CheckpointStorage, name: str, *, target: str) -> list[CheckpointInfo]:
    """Return what a chain holds, oldest first.

    Raises:
        WorkflowCheckpointException: It is not there, or nothing of it can be read.
    """
    await require_name(storage, name, target=target)
    infos = await list_infos(storage, workflow_name=name)
    if not infos:
        msg = f"No checkpoint of chain {name!r} can be read; agentbench checkpoints list tells why."
        raise WorkflowCheckpointException(msg)
    return infos


async def require_name(storage: CheckpointStorage, name: str, *, target: str) -> None:
    """Refuse the name of a chain that is not there, and tell which are.

    Raises:
        WorkflowCheckpointException: It is not there.
    """
    names = await list_workflow_names(storage)
    if name not in names:
        msg = f"There is no chain {name!r} in {shown_address(target)}. There are: {_listed(names)}."
        raise WorkflowCheckpointException(msg)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return (", ".join(map(repr, names[:_MOST_NAMED])) or "none") + more


# ---------------------------------------------------------------------------------------------------------- checkpoints


async def find_checkpoint(
    storage: CheckpointStorage, reference: str, *, target: str, load: Load | None = None
) -> WorkflowCheckpoint:
    """Load the checkpoint that a person named.

    Args:
        storage: Where it is.
        reference: An id or the beginning of one; `latest`: the newest of all chains; `latest:CHAIN`; `CHAIN@NUMBER`:
            the one with this number in its chain.
        target: The address of the storage, for messages.
        load: Instead of the storage's own way to load.

    Raises:
        CheckpointNotFoundError: There is none.
        WorkflowCheckpointException: There are several, or it cannot be read.
    """
    load = storage.load if load is None else load
    failure: WorkflowCheckpointException | None = None
    if reference != "latest" and not reference.startswith("latest:"):
        try:
            return await load(reference)
        except CheckpointNotFoundError:
            pass
        except WorkflowCheckpointException as error:
            failure = error  # perhaps of what can be no id in this storage, but the beginning of one
    if failure is not None and (unknown_class(failure) is not None or await _is_there(storage, reference, failure)):
        raise failure
    found = await _matching(storage, reference)
    if not found:
        msg = (
            f"There is no checkpoint {reference!r} in {shown_address(target)}. Expected {REFERENCE}; "
            f"agentbench checkpoints list shows what there is."
        )
        raise CheckpointNotFoundError(reference, msg)
    if len(found) > 1:
        named = ", ".join(f"{info.checkpoint_id} ({info.workflow_name!r})" for info in found[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
        msg = f"{reference!r} may be each of {len(found):,} checkpoints: {named}{more}. Give more of the id."
        raise WorkflowCheckpointException(msg)
    return await load(found[0].checkpoint_id)


async def _is_there(storage: CheckpointStorage, checkpoint_id: str, failure: WorkflowCheckpointException) -> bool:
    if isinstance(failure, UnreadableManifestError):
        return True
    names = await list_workflow_names(storage)
    return any([checkpoint_id in await storage.list_checkpoint_ids(workflow_name=name) for name in names])


async def _matching(storage: CheckpointStorage, reference: str) -> list[CheckpointInfo]:
    if reference == "latest":
        heads = [await list_infos(storage, workflow_name=name, limit=1) for name in await list_workflow_names(storage)]
        return sorted((info for head in heads for info in head), key=lambda info: info.timestamp)[-1:]
    if reference.startswith("latest:"):
        return await list_infos(storage, workflow_name=reference.partition(":")[2], limit=1)
    chain, at, number = reference.rpartition("@")
    if at and number.isdecimal():
        infos = await list_infos(storage, workflow_name=chain)
        return [info for info in infos if info.seq == int(number)]
    start = reference.rstrip("….")
    return [info for info in await list_infos(storage) if start and info.checkpoint_id.startswith(start)]


# -------------------------------------------------------------------------------------------------------------- classes


def import_modules(names: Sequence[str]) -> None:
    """Import the modules that define what checkpoints hold; the current folder is searched first.

    Args:
        names: Dotted names, or files of scripts: what a script defines is known as part of the main program, as it was
            when the script ran. The part of it under `if __name__ == "__main__"` does not run.

    Raises:
        WorkflowCheckpointException: One cannot be imported.
    """
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        _import(name)


def _import(name: str) -> None:
    try:
        if name.endswith(".py"):
            _import_script(name)
        else:
            importlib.import_module(name)
    except Exception as error:
        msg = f"--import {name}: {type(error).__name__}: {str(error).rstrip('.')}."
        raise WorkflowCheckpointException(msg, error) from error


def _import_script(path: str) -> None:
    spec = importlib.util.spec_from_file_location(_OF_SCRIPT, path)
    if spec is None or spec.loader is None:
        msg = f"{path!r} is no Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[_OF_SCRIPT] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    _take_over(module, sys.modules["__main__"])


def _take_over(script: ModuleType, main: ModuleType) -> None:
    for name, value in vars(script).items():
        if name.startswith("__"):
            continue
        if isinstance(value, type) and value.__module__ == _OF_SCRIPT:
            value.__module__ = "__main__"
        setattr(main, name, value)


def unknown_class(error: BaseException | None) -> str | None:
    """Return the name of the class that could not be found, if that is why something could not be read."""
    passed: list[BaseException] = []
    while error is not None and error not in passed:  # a storage of somebody else may raise an error from itself
        if isinstance(error, UnknownStoredTypeError):
            return error.type_name
        passed.append(error)
        error = error.__cause__
    return None


def with_hint(error: AgentFrameworkException) -> str:
    """Return what an error says, and which option helps where a class could not be found."""
    name = unknown_class(error)
    if name is None:
        return str(error)
    module = name.replace(":", ".").rpartition(".")[0]
    hint = f"--import {module}" if module and module != "__main__" else "--import SCRIPT.py, the script that saved it"
    return f"{error} Try the same command with {hint}."
