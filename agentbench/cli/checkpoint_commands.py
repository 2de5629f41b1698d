"""The actions of `agentbench checkpoints`: list, show, compare, fork, remove and copy checkpoints in any storage."""

from __future__ import annotations

import argparse
import contextlib
import json
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
from agentbench.checkpoints.opening import displayed_address
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.cli.checkpoint_access import find_checkpoint, open_target, require_chain
from agentbench.cli.checkpoint_text import (
    checkpoint_text,
    diff_json,
    info_json,
    infos_text,
    line,
    stored_form,
    tree_text,
)
from agentbench.cli.commands import ask
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.class_names import unknown_as_plain


async def list_checkpoints(options: argparse.Namespace) -> int:
    """Print the existing checkpoints, chain by chain."""
    with open_target(options.target) as storage:
        limits = {"run_id": options.run, "limit": options.limit}
        names = await _chains(storage, options)
        listed = {name: await list_infos(storage, workflow_name=name, **limits) for name in names}
    chains = {name: infos for name, infos in listed.items() if infos}
    if options.json:
        _print_json([info_json(info, secrets=options.show_secrets) for infos in chains.values() for info in infos])
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
    with open_target(options.target) as storage, _plain_unknown():
        checkpoint = await find_checkpoint(storage, options.id, target=options.target)
        if options.json:
            _print_json(stored_form(checkpoint.to_dict(), secrets=options.show_secrets))
        else:
            print(checkpoint_text(checkpoint, full=options.full, secrets=options.show_secrets))
    return 0


async def compare_checkpoints(options: argparse.Namespace) -> int:
    """Print the differences between two checkpoints."""
    with open_target(options.target) as storage, _plain_unknown():
        ids = (options.a, options.b)
        before, after = [await find_checkpoint(storage, each, target=options.target) for each in ids]
        diff = diff_checkpoints(before, after)
        if options.json:
            _print_json(diff_json(diff, secrets=options.show_secrets))
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
                print(json.dumps(json.loads(checkpoint.to_json()), separators=(",", ":")))  # ASCII: see _print_json
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
def _plain_unknown() -> Iterator[None]:
    """Read instances of unknown classes as plain values, and print the names of these classes at the end."""
    with unknown_as_plain() as names:
        yield
    if names:
        listed = ", ".join(map(line, sorted(names)))
        text = f"Unknown classes, displayed as plain values: {listed}."
        print(f"{text} Use --import MODULE or --import SCRIPT.py to see instances.", file=sys.stderr)


def _print_json(value: dict[str, Any] | Sequence[Any]) -> None:
    print(json.dumps(value, indent=2))  # ASCII only, so that no character affects the terminal
