"""`agentbench batch`: read, retry, answer and export the rows of `run_many` in a terminal."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable

from agentbench.cli.checkpoints import add_import, add_secrets, count
from agentbench.cli.commands import Commands
from agentbench.exceptions import BatchError

_INTO = (
    "the database, as into= of run_many(): an SQLite file or the URL of a database, such as postgresql://user@host/name"
)
_STATUSES = ("open", "finished", "failed", "waiting", "cancelled")
_NEXT = "run_many() with the workflow then runs them: its next call, or one that is running now."


def add_batch(commands: Commands) -> None:
    """Add the command to the parser of all commands."""
    about = "Shows, opens again, answers and exports the rows of batches that run_many(into=...) has stored."
    parser = commands.add_parser("batch", help="show, retry, answer or export the rows of batches", description=about)
    actions: Commands = parser.add_subparsers(required=True, metavar="ACTION")

    show = _action(
        actions, "show", "show the batches in a database, or one batch", "Values with secret names are masked."
    )
    show.add_argument("name", nargs="?", metavar="NAME", help="the batch; without it, all batches are listed")
    show.add_argument(
        "--rows", nargs="?", const="all", choices=("all", *_STATUSES), metavar="STATUS", help="also its rows"
    )
    show.add_argument("--limit", type=count, default=20, metavar="N", help="at most N rows or questions (default: 20)")
    show.add_argument("--json", action="store_true", help="as JSON")
    add_secrets(show)
    add_import(show)

    retry = _action(actions, "retry", "open failed rows again", _NEXT)
    retry.add_argument("name", metavar="NAME", help="the batch")
    retry.add_argument("keys", nargs="*", metavar="KEY", help="only these rows (default: all failed ones)")

    about = f"Without a value, prints the questions and the answers that they expect. {_NEXT}"
    answer = _action(actions, "answer", "answer the questions of a row", about)
    answer.add_argument("name", metavar="NAME", help="the batch")
    answer.add_argument("key", metavar="KEY", help="the row")
    answer.add_argument(
        "answers",
        nargs="*",
        metavar="[REQUEST=]VALUE",
        help="JSON or a text; with the id of the request if the row asks several questions",
    )
    add_import(answer)

    about = (
        "Writes one line per different input. The file contains inputs, outputs and errors as they are stored, nothing "
        "masked, and is readable by you alone. A file of this name is replaced."
    )
    export = _action(actions, "export", "write the rows to a file", about)
    export.add_argument("name", metavar="NAME", help="the batch")
    export.add_argument("file", metavar="FILE", help="a file that ends in .csv, .jsonl or .json")


def _action(actions: Commands, name: str, summary: str, about: str) -> argparse.ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}. {about}"
    parser = actions.add_parser(name, help=summary, description=description)
    parser.add_argument("into", metavar="INTO", help=_INTO)
    parser.set_defaults(command=functools.partial(_run, name), modules=[])
    return parser


def _run(name: str, options: argparse.Namespace) -> int:
    # Imported here, so that printing the help does not load it.
    from agentbench.cli import batch_commands  # noqa: PLC0415
    from agentbench.cli.checkpoint_commands import import_classes  # noqa: PLC0415

    import_classes(options.modules)
    action: Callable[[argparse.Namespace], int] = getattr(batch_commands, name)
    try:
        return action(options)
    except (ValueError, RuntimeError) as error:  # an address that is none, an answer that does not fit, a damaged file
        raise BatchError(str(error), error) from error
