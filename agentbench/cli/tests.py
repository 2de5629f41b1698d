"""`agentbench tests`: shows what changed in kept tests and rewrites what they expect."""

from __future__ import annotations

import argparse
from pathlib import Path

from agentbench._plain_text import plain_text
from agentbench.cli.commands import Commands, ask

_ABOUT = (
    "Runs the tests that run.keep_as_test() has written, as pytest does, and shows which outputs, paths, states and "
    "questions differ from the expected ones. Asks before it rewrites the expected values. No model is called: if a "
    "workflow asks a model something that is not recorded, keep the test again from a new run, with overwrite=True. "
    "Cells in notebooks are not read."
)


def add_tests(commands: Commands) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser("tests", help="show and accept changes of kept tests", description=_ABOUT)
    actions: Commands = parser.add_subparsers(required=True, metavar="ACTION")
    update = actions.add_parser("update", help="show the differences and rewrite the tests", description=_ABOUT)
    update.add_argument(
        "paths", nargs="*", type=Path, default=[Path()], metavar="PATH", help="files or folders (default: this folder)"
    )
    update.add_argument("--yes", action="store_true", help="rewrite without asking")
    update.set_defaults(command=_update)


def _update(options: argparse.Namespace) -> int:
    # They load the engine, which the parser of commands does not need.
    from agentbench.revisions.kept_tests.update import find_kept_tests, rewrite, run_kept_tests  # noqa: PLC0415
    from agentbench.testing.replaying import listen  # noqa: PLC0415

    tests = find_kept_tests(options.paths)
    if not tests:
        print("No kept tests found in .py files.")
        return 0
    run_kept_tests(tests, listen)
    for test in tests:
        if test.error is not None:
            print(f"{test.path}, {test.name}: cannot be updated: {plain_text(test.error, None)}")
        for change in test.changes:
            print(f"{test.path}, {test.name}: {change.attribute}")
            print(f"  before: {plain_text(repr(change.before), None)}")
            print(f"  after:  {plain_text(repr(change.after), None)}")
    changed = [test for test in tests if test.changes and test.error is None]
    broken = sum(test.error is not None for test in tests)
    if not changed:
        print(f"{len(tests) - broken} of {len(tests)} kept tests are up to date.")
        return 1 if broken else 0
    if not options.yes and not ask(f"Rewrite what {len(changed)} kept test(s) expect?"):
        return 1
    for path in rewrite(changed):
        print(f"Rewrote {path}.")
    return 1 if broken else 0
