"""`agentbench checkpoints`: inspect saved runs without a notebook."""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
from collections.abc import Callable, Coroutine
from typing import Any

from agentbench.cli.commands import REFERENCE, Commands
from agentbench.exceptions import AgentFrameworkException, WorkflowCheckpointException

_TARGET = "a folder, a SQLite file, or a URL: sqlite:///runs.db, postgresql://user@host/name, redis://localhost:6379/0"
_DESCRIPTION = (
    "Lists, shows, compares, forks, migrates, removes and copies the checkpoints of a folder, a database or a Redis "
    "server. The checkpoints of one workflow name form a chain, numbered from 1."
)
_CLASSES = (
    "For safety, modules that a checkpoint names are not imported. If the state contains instances of your classes, "
    "name the module that defines them with --import."
)
_SECRETS = "Values under names such as password, token or api_key are masked unless you pass --show-secrets."


def add_checkpoints(commands: Commands) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "checkpoints",
        help="list, show, compare, fork, migrate, remove or copy saved checkpoints",
        description=_DESCRIPTION,
    )
    actions: Commands = parser.add_subparsers(required=True, metavar="ACTION")
    for add in (_add_list, _add_show, _add_diff, _add_fork, _add_migrate, _add_prune, _add_export):
        add(actions)


def _add_list(actions: Commands) -> None:
    parser = _action(actions, "list_checkpoints", "list", "list the checkpoints of each chain")
    parser.add_argument("--workflow", metavar="CHAIN", help="only this chain")
    parser.add_argument("--run", metavar="ID", help="only checkpoints of this run")
    parser.add_argument("--limit", type=count, metavar="N", help="only the newest N of each chain")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--tree", action="store_true", help="as a tree that shows which checkpoint follows which")
    form.add_argument("--json", action="store_true", help="as JSON")
    add_secrets(parser)


def _add_show(actions: Commands) -> None:
    parser = _action(actions, "show_checkpoint", "show", "show the contents of a checkpoint", f"{_CLASSES} {_SECRETS}")
    parser.add_argument("id", metavar="ID", help=REFERENCE)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--full", action="store_true", help="print values in full instead of shortening them")
    form.add_argument("--json", action="store_true", help="print everything as JSON, with a tag for each typed value")
    add_secrets(parser)
    add_import(parser)


def _add_diff(actions: Commands) -> None:
    parser = _action(
        actions, "compare_checkpoints", "diff", "show the differences between two checkpoints", f"{_CLASSES} {_SECRETS}"
    )
    parser.add_argument("a", metavar="A", help=f"the earlier checkpoint: {REFERENCE}")
    parser.add_argument("b", metavar="B", help=f"the later checkpoint: {REFERENCE}")
    parser.add_argument("--exit-code", action="store_true", help="exit with status 1 if they differ")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_secrets(parser)
    add_import(parser)


def _add_fork(actions: Commands) -> None:
    about = "Saves a new checkpoint from which a run can continue, and prints its id. The original does not change."
    parser = _action(actions, "fork", "fork", "save an edited copy of a checkpoint", f"{about} {_CLASSES}")
    parser.add_argument("id", metavar="ID", help=REFERENCE)
    parser.add_argument("--to", metavar="CHAIN", help="the chain of the fork (default: the original's chain)")
    parser.add_argument("--with-history", action="store_true", help="also copy the earlier checkpoints to that chain")
    parser.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="KEY=JSON",
        help="a new value for a key of the state, such as --set topic='\"llamas\"' --set limit=3; may be repeated",
    )
    add_import(parser)


def _add_migrate(actions: Commands) -> None:
    about = (
        "Prints what changes, and saves a checkpoint from which the new workflow continues. The old ones do not "
        "change. Asks for confirmation on a terminal."
    )
    parser = _action(actions, "migrate", "migrate", "migrate a chain to a changed workflow", about)
    parser.add_argument("chain", metavar="CHAIN", help="the chain, whose newest checkpoint is migrated")
    parser.add_argument(
        "--to", required=True, metavar="MODULE:NAME", help="the workflow or compiled state graph, or a function for it"
    )
    parser.add_argument(
        "--with",
        dest="changes",
        metavar="MODULE:NAME",
        help="a dict with the arguments of workflow.migrate: renamed, dropped, functions",
    )
    parser.add_argument("--all", action="store_true", help="copy the whole chain, migrated, to a new chain")
    parser.add_argument("--as", dest="name", metavar="CHAIN", help="the new chain (default: CHAIN~migrated)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--yes", action="store_true", help="save without asking")
    form.add_argument("--dry-run", action="store_true", help="only print what would change")


def _add_prune(actions: Commands) -> None:
    about = (
        "Permanently removes all but the newest checkpoints of a chain, and all data that only they need. Asks for "
        "confirmation on a terminal."
    )
    parser = _action(actions, "prune_chain", "prune", "remove the older checkpoints of a chain", about)
    parser.add_argument("--workflow", required=True, metavar="CHAIN", help="the chain")
    parser.add_argument("--keep", required=True, type=count, metavar="N", help="number of checkpoints to keep")
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be removed")


def _add_export(actions: Commands) -> None:
    about = (
        "Prints checkpoints as JSON, one per line, in the format of WorkflowCheckpoint.from_json, or copies them to "
        "another storage with the same ids. The copy contains secrets. To continue an interrupted copy, run the "
        "command again."
    )
    parser = _action(actions, "export_checkpoints", "export", "print checkpoints as JSON, or copy them", about)
    selection = parser.add_mutually_exclusive_group(required=True)
    selection.add_argument("id", nargs="?", metavar="ID", help=REFERENCE)
    selection.add_argument("--workflow", metavar="CHAIN", help="a whole chain")
    selection.add_argument("--all", action="store_true", help="all chains")
    parser.add_argument("--to", metavar="TARGET", help="another storage, created if it does not exist")
    add_import(parser)


def _action(
    actions: Commands, function: str, name: str, summary: str, about: str | None = None
) -> argparse.ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}."
    parser = actions.add_parser(name, help=summary, description=f"{description} {about}" if about else description)
    parser.add_argument("target", metavar="TARGET", help=_TARGET)
    parser.set_defaults(command=functools.partial(_run, function), modules=[])
    return parser


def add_secrets(parser: argparse.ArgumentParser) -> None:
    """Add `--show-secrets`."""
    parser.add_argument("--show-secrets", action="store_true", help="do not mask values whose names look like secrets")


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add `--import MODULE`."""
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this module first: a dotted name, or the file of the script that stored the values; "
        "the current folder is searched too; may be repeated",
    )


def count(text: str) -> int:
    """Read a number from 1 on, as `type=` of an argument."""
    if not text.isdecimal() or int(text) < 1:
        msg = f"{text!r} is not a count; expected 1 or more"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    try:
        if not key or not equals:
            raise ValueError
        return key, json.loads(value)
    except ValueError:
        msg = f"{text!r} is not a setting; expected KEY=JSON, such as limit=3 or topic='\"llamas\"'"
        raise argparse.ArgumentTypeError(msg) from None


def _run(function: str, options: argparse.Namespace) -> int:
    # Imported here, so that printing the help does not load it.
    from agentbench.cli import checkpoint_commands, checkpoint_migration  # noqa: PLC0415
    from agentbench.cli.checkpoint_commands import import_classes, with_hint  # noqa: PLC0415

    action: Callable[[argparse.Namespace], Coroutine[Any, Any, int]] = getattr(
        checkpoint_migration if function == "migrate" else checkpoint_commands, function
    )
    try:
        import_classes(options.modules)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(action(options))
        from agentbench._bridge import run_sync  # noqa: PLC0415 - in a notebook's cell

        return run_sync(action(options))
    except AgentFrameworkException as error:
        raise WorkflowCheckpointException(with_hint(error), error) from error
