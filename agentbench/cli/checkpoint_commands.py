"""What `agentbench checkpoints` does: list, show, compare, fork and remove checkpoints of any storage."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from agentbench.checkpoints.access import list_infos, list_workflow_names, prune_chain
from agentbench.checkpoints.diff import diff_checkpoints
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.opening import shown_address
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.cli.checkpoint_access import find_checkpoint, opened, require_name
from agentbench.cli.checkpoint_gaps import find_unreadable, tell_unreadable
from agentbench.cli.checkpoint_kept import load_kept
from agentbench.cli.checkpoint_settings import updated_state
from agentbench.cli.checkpoint_text import (
    checkpoint_text,
    diff_json,
    info_json,
    infos_text,
    line,
    stored_form,
)
from agentbench.cli.checkpoint_tree import tree_text
from agentbench.notebook.diff_view import diff_text


async def list_checkpoints(given: argparse.Namespace) -> int:
    """Show what there is."""
    with opened(given.target) as storage:
        if given.workflow is not None:
            await require_name(storage, given.workflow, target=given.target)
        chains = await _chains(storage, given)
        limit = given.limit if given.run is None else None
        unreadable = await find_unreadable(storage, target=given.target, workflow_name=given.workflow, limit=limit)
    infos = [info for _, chain in chains for info in chain]
    if given.json:
        _print_json([info_json(info, secrets=given.show_secrets) for info in infos])
    elif infos and given.tree:
        print("\n\n".join(tree_text(name, chain) for name, chain in chains))
    elif infos:
        blocks = [f"{line(name)}: {_count(len(chain), 'checkpoint')}\n{infos_text(chain)}" for name, chain in chains]
        print("\n\n".join(blocks))
    elif not unreadable:
        print(f"There are no {'such ' if given.run else ''}checkpoints in {_place(given)}.")
    tell_unreadable(unreadable)
    return 1 if unreadable and not infos else 0


async def _chains(storage: CheckpointStorage, given: argparse.Namespace) -> list[tuple[str, list[CheckpointInfo]]]:
    names = [given.workflow] if given.workflow is not None else await list_workflow_names(storage)
    chains = [
        (name, await list_infos(storage, workflow_name=name, run_id=given.run, limit=given.limit)) for name in names
    ]
    return [(name, infos) for name, infos in chains if infos]


async def show_checkpoint(given: argparse.Namespace) -> int:
    """Show what a checkpoint is and holds."""
    with opened(given.target) as storage:
        load = partial(load_kept, storage) if given.json else None
        checkpoint = await find_checkpoint(storage, given.id, target=given.target, load=load)
        if given.json:
            _print_json(stored_form(checkpoint.to_dict(), secrets=given.show_secrets))
        else:
            print(checkpoint_text(checkpoint, full=given.full, secrets=given.show_secrets))
    return 0


async def compare_checkpoints(given: argparse.Namespace) -> int:
    """Show what differs between two checkpoints."""
    with opened(given.target) as storage:
        before, after = [await find_checkpoint(storage, each, target=given.target) for each in (given.a, given.b)]
        diff = diff_checkpoints(before, after)
        if given.json:
            _print_json(diff_json(diff, secrets=given.show_secrets))
        else:
            print(diff_text(diff, secrets=given.show_secrets))
    return 1 if given.exit_code and diff else 0


async def fork(given: argparse.Namespace) -> int:
    """Save an edited sibling of a checkpoint."""
    with opened(given.target) as storage:
        original = await find_checkpoint(storage, given.id, target=given.target)
        info = await fork_checkpoint(
            storage,
            original.checkpoint_id,
            workflow_name=given.to,
            state_updates=updated_state(original.state, given.set),
            with_history=given.with_history,
        )
    print(line(info.checkpoint_id))
    told = f"Forked {original.checkpoint_id}: the new checkpoint is number {info.seq} of chain {info.workflow_name!r}."
    print(line(told), file=sys.stderr)
    return 0


async def prune_checkpoints(given: argparse.Namespace) -> int:
    """Remove all but the newest checkpoints of a chain."""
    with opened(given.target) as storage:
        await require_name(storage, given.workflow, target=given.target)
        ids = await storage.list_checkpoint_ids(workflow_name=given.workflow)
        old = ids[: -given.keep]
        what = f"{len(old):,} of {_count(len(ids), 'checkpoint')} of chain {line(repr(given.workflow))}"
        if not old:
            print(f"Nothing to remove: the chain holds {_count(len(ids), 'checkpoint')}.")
            return 0
        if given.dry_run:
            infos = await list_infos(storage, workflow_name=given.workflow)
            print(f"Would remove {what}:\n{infos_text([info for info in infos if info.checkpoint_id in set(old)])}")
            hidden = await find_unreadable(storage, target=given.target, workflow_name=given.workflow)
            tell_unreadable({each: reason for each, reason in hidden.items() if each in old})
            return 0
        if not given.yes and not _agrees(f"Remove {what}, for good?"):
            print("Nothing was removed.")
            return 0
        removed = await prune_chain(storage, workflow_name=given.workflow, keep=given.keep)
    print(f"Removed {_count(removed, 'checkpoint')}.")
    return 0


def _agrees(question: str) -> bool:
    """Ask at a terminal; where nobody can answer, whoever wrote the command has."""
    if not sys.stdin.isatty():
        return True
    while True:
        try:
            said = input(f"{question} [y/n] ").strip().lower()
        except EOFError:
            print()
            return False
        if said in ("y", "yes", "n", "no"):
            return said.startswith("y")


def _print_json(value: dict[str, Any] | Sequence[Any]) -> None:
    print(json.dumps(value, indent=2))  # other signs than those of ASCII are spelled out, so nothing acts on a terminal


def _place(given: argparse.Namespace) -> str:
    return line(shown_address(given.target))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
