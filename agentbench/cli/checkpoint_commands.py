"""The actions of `agentbench checkpoints`: list, show, compare, fork, remove and copy checkpoints in any storage."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import runpy
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from agentbench._text.changes import diff_text
from agentbench._text.phrases import count_text
from agentbench.checkpoints.access import list_infos, list_workflow_names
from agentbench.checkpoints.access import prune_chain as remove_old
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import diff_checkpoints
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.opening import displayed_address, open_storage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.cli.checkpoint_text import (
    checkpoint_text,
    diff_json,
    info_json,
    infos_text,
    line,
    stored_form,
    tree_text,
)
from agentbench.cli.commands import REFERENCE, ask
from agentbench.exceptions import (
    AgentFrameworkException,
    CheckpointNotFoundError,
    UnknownStoredTypeError,
    WorkflowCheckpointException,
)
from agentbench.serialization.class_names import register_class, unknown_as_plain

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
        there = _first_of([*map(repr, names)]) or "none"
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
        named = _first_of([f"{info.checkpoint_id} ({info.workflow_name!r})" for info in found])
        msg = f"{reference!r} matches {len(found):,} checkpoints: {named}. Type more characters of the id."
        raise WorkflowCheckpointException(msg)
    return await storage.load(found[0].checkpoint_id)


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


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


# ---- commands


async def list_checkpoints(options: argparse.Namespace) -> int:
    """Print the existing checkpoints, chain by chain."""
    with open_target(options.target) as storage:
        limits = {"run_id": options.run, "limit": options.limit}
        names = await _chains(storage, options)
        listed = {name: await list_infos(storage, workflow_name=name, **limits) for name in names}
    chains = {name: infos for name, infos in listed.items() if infos}
    if options.json:
        print_json([info_json(info, secrets=options.show_secrets) for infos in chains.values() for info in infos])
    elif options.tree:
        print("\n\n".join(tree_text(name, infos) for name, infos in chains.items()))
    else:
        tables = (
            f"{line(name)}: {count_text(len(infos), 'checkpoint')}\n{infos_text(infos)}"
            for name, infos in chains.items()
        )
        print("\n\n".join(tables))
    if not chains:
        print(f"No checkpoints to list in {line(displayed_address(options.target))}.", file=sys.stderr)
    return 0


async def show_checkpoint(options: argparse.Namespace) -> int:
    """Print a checkpoint and its contents."""
    with open_target(options.target) as storage, plain_unknown():
        checkpoint = await find_checkpoint(storage, options.id, target=options.target)
        if options.json:
            print_json(stored_form(checkpoint.to_dict(), secrets=options.show_secrets))
        else:
            print(checkpoint_text(checkpoint, full=options.full, secrets=options.show_secrets))
    return 0


async def compare_checkpoints(options: argparse.Namespace) -> int:
    """Print the differences between two checkpoints."""
    with open_target(options.target) as storage, plain_unknown():
        ids = (options.a, options.b)
        before, after = [await find_checkpoint(storage, each, target=options.target) for each in ids]
        diff = diff_checkpoints(before, after)
        if options.json:
            print_json(diff_json(diff, secrets=options.show_secrets))
        else:
            print(diff_text(diff, secrets=options.show_secrets))
    return 1 if options.exit_code and diff else 0


async def fork(options: argparse.Namespace) -> int:
    """Save an edited copy of a checkpoint next to it, and print its id."""
    with open_target(options.target) as storage:
        original = await find_checkpoint(storage, options.id, target=options.target)
        try:
            info = await fork_checkpoint(
                storage,
                original.checkpoint_id,
                workflow_name=options.to,
                state_updates=dict(options.set),
                with_history=options.with_history,
            )
        except ValueError as error:
            raise WorkflowCheckpointException(str(error), error) from error
    print(line(info.checkpoint_id))
    text = f"Forked {original.checkpoint_id}: the new checkpoint is number {info.seq} of chain {info.workflow_name!r}."
    print(line(text), file=sys.stderr)
    return 0


async def prune_chain(options: argparse.Namespace) -> int:
    """Remove all but the newest checkpoints of a chain."""
    with open_target(options.target) as storage:
        await require_chain(storage, options.workflow, target=options.target)
        ids = await storage.list_checkpoint_ids(workflow_name=options.workflow)
        old = ids[: -options.keep]
        what = f"{len(old):,} of {count_text(len(ids), 'checkpoint')} of chain {line(repr(options.workflow))}"
        if not old:
            print(f"Nothing to remove: the chain holds {count_text(len(ids), 'checkpoint')}.")
        elif options.dry_run:
            infos = await list_infos(storage, workflow_name=options.workflow)
            print(f"Would remove {what}:\n{infos_text([info for info in infos if info.checkpoint_id in set(old)])}")
        elif options.yes or not sys.stdin.isatty() or ask(f"Remove {what}, permanently?"):
            removed = await remove_old(storage, workflow_name=options.workflow, keep=options.keep)
            print(f"Removed {count_text(removed, 'checkpoint')}.")
        else:
            print("Nothing was removed.")
    return 0


async def export_checkpoints(options: argparse.Namespace) -> int:
    """Print checkpoints as lines of JSON, or copy them to another storage."""
    with open_target(options.target) as storage, unknown_as_plain():
        if options.to is None:
            async for checkpoint in _select(storage, options):
                print(json.dumps(json.loads(checkpoint.to_json()), separators=(",", ":")))  # ASCII: see print_json
            return 0
        with open_target(options.to, create=True) as other:
            count = await _copy(storage, other, options)
    copied = count_text(count, "checkpoint")
    print(line(f"{copied} copied to {displayed_address(options.to)}."), file=sys.stderr)
    return 0


async def _copy(storage: CheckpointStorage, other: CheckpointStorage, options: argparse.Namespace) -> int:
    copied: set[str] = set()
    for name in [] if options.id else await _chains(storage, options):
        there = set(await other.list_checkpoint_ids(workflow_name=name))
        foreign = there - set(await storage.list_checkpoint_ids(workflow_name=name))
        if foreign:
            msg = (
                f"{displayed_address(options.to)} already has a chain {name!r} with {len(foreign):,} other "
                f"checkpoints, such as {min(foreign)!r}. Nothing was copied. Choose another target, or remove that "
                "chain first."
            )
            raise WorkflowCheckpointException(msg)
        copied |= there
    count = 0
    async for checkpoint in _select(storage, options):
        if checkpoint.checkpoint_id not in copied:
            await other.save(checkpoint)
        count += 1
    return count


async def _select(storage: CheckpointStorage, options: argparse.Namespace) -> AsyncIterator[WorkflowCheckpoint]:
    """Yield one checkpoint, those of a chain, or all, each chain in order, with one in memory at a time."""
    if options.id is not None:
        yield await find_checkpoint(storage, options.id, target=options.target)
        return
    for name in await _chains(storage, options):
        for info in await list_infos(storage, workflow_name=name):
            yield await storage.load(info.checkpoint_id)


async def _chains(storage: CheckpointStorage, options: argparse.Namespace) -> list[str]:
    if options.workflow is None:
        return await list_workflow_names(storage)
    await require_chain(storage, options.workflow, target=options.target)
    return [options.workflow]


@contextlib.contextmanager
def plain_unknown() -> Iterator[None]:
    """Read instances of unknown classes as plain values, and print the names of these classes at the end."""
    with unknown_as_plain() as names:
        yield
    if names:
        listed = ", ".join(map(line, sorted(names)))
        text = f"Unknown classes, displayed as plain values: {listed}."
        print(f"{text} Use --import MODULE or --import SCRIPT.py to see instances.", file=sys.stderr)


def print_json(value: dict[str, Any] | Sequence[Any]) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2))  # ASCII only, so that no character affects the terminal
