"""`agentbench checkpoints migrate`: a chain of an older workflow, or its newest checkpoint, in a changed one."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote

from agentbench._text.phrases import count_text
from agentbench.checkpoints.access import head_of
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.cli.checkpoint_commands import open_target, require_chain
from agentbench.cli.checkpoint_text import line
from agentbench.cli.commands import ask
from agentbench.exceptions import MigrationError, WorkflowCheckpointException
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.threads.migration import move_to_thread, thread_changes
from agentbench.stategraph.threads.threads import Threads
from agentbench.workflows.persist.executor_content import Changes
from agentbench.workflows.persist.planned_migration import migrate_chain, plan_migration
from agentbench.workflows.run.workflow import Workflow

_ARGUMENTS = {"renamed": dict, "dropped": frozenset, "functions": dict}


async def migrate(options: argparse.Namespace) -> int:
    """Print the preview of a migration, and save it."""
    target = _target(options.to)
    changes = _changes(options.changes)
    chain, name = options.chain, options.name or f"{options.chain}~migrated"
    adapt: Callable[[WorkflowCheckpoint], None] = lambda _: None  # noqa: E731 - a function that does nothing
    if isinstance(target, CompiledGraph):
        changes, name, thread_id = thread_changes(target.plan, changes), *_thread(options, target.threads)
        adapt = partial(move_to_thread, thread_id)
        target = target.workflow
    with open_target(options.target) as storage:
        await require_chain(storage, chain, target=options.target)
        head = await head_of(storage, chain)
        assert head is not None
        preview = await plan_migration(storage, head, target.graph, changes)
        print(preview)
        if options.dry_run:
            return 0
        what = f"Copy the whole chain to {name!r}?" if options.all else "Save this checkpoint?"
        if not options.yes and sys.stdin.isatty() and not ask(line(what)):
            print("Nothing was saved.")
        elif options.all:
            copies = await migrate_chain(storage, chain, name, target.graph, changes, adapt)
            print(line(f"Saved {count_text(len(copies), 'checkpoint')} as chain {name!r}."), file=sys.stderr)
        else:
            info = await preview.apply()
            print(line(f"Saved {info.checkpoint_id}, number {info.seq} of chain {chain!r}."), file=sys.stderr)
    return 0


def _thread(options: argparse.Namespace, threads: Threads) -> tuple[str, str]:
    """Return the chain and the id of the thread to which a whole thread is copied."""
    name = options.name or threads.chain(unquote(options.chain.rpartition("/")[2]) + "~migrated")
    saved = name if options.all else options.chain
    if not saved.startswith(threads.prefix):
        graph = f"Graph {threads.plan.name!r} finds its threads in chains named {threads.prefix}ID, not in {saved!r}."
        fix = f"--as {threads.chain(name)}" if options.all else "--all, which copies the chain"
        msg = f"{graph} Pass {fix}."
        raise MigrationError(msg, name=saved)
    thread_id = unquote(name.removeprefix(threads.prefix))
    return threads.chain(thread_id), thread_id


def _target(reference: str) -> Workflow | CompiledGraph[Any]:
    target = _read_name("--to", reference)
    if callable(target) and not isinstance(target, (Workflow, CompiledGraph)):
        target = target()
    if not isinstance(target, (Workflow, CompiledGraph)):
        msg = f"--to {reference} is a {type(target).__name__}; expected a workflow or a compiled state graph."
        raise MigrationError(msg, name=reference)
    return target


def _changes(reference: str | None) -> Changes:
    found = {} if reference is None else _read_name("--with", reference)
    if not isinstance(found, Mapping) or not found.keys() <= _ARGUMENTS.keys():
        msg = f"--with {reference} is not a migration; expected a dict with some of the keys {', '.join(_ARGUMENTS)}."
        raise MigrationError(msg, name=reference)
    return Changes(**{name: _ARGUMENTS[name](value) for name, value in found.items()})


def _read_name(option: str, reference: str) -> Any:
    """Import an object that the user named; the current folder is searched too."""
    module, separator, name = reference.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        if not separator or not module.replace(".", "").isidentifier() or not name.isidentifier():
            msg = "it is not the name of an object in a module"
            raise ValueError(msg)
        return getattr(importlib.import_module(module), name)
    except Exception as error:
        msg = f"{option} {reference}: {type(error).__name__}: {str(error).rstrip('.')}. Expected MODULE:NAME."
        raise WorkflowCheckpointException(msg, error) from error
