"""`agentbench doctor`: reports which parts are installed and which are missing."""

from __future__ import annotations

import argparse

from agentbench.cli.commands import Commands


def add_doctor(commands: Commands) -> None:
    """Add the command to the parser of all commands."""
    doctor = commands.add_parser(
        "doctor",
        help="report which parts are installed and which are missing",
        description="Reports which parts are installed and which are missing, and how to repair each problem.",
    )
    doctor.add_argument("--strict", action="store_true", help="exit with status 1 if something is missing")
    doctor.set_defaults(command=_doctor)


def _doctor(options: argparse.Namespace) -> int:
    from agentbench.notebook.commands.doctor import doctor  # noqa: PLC0415 - looks at everything, so it loads a lot

    report = doctor()
    print(report.text)
    return 1 if options.strict and not report.ok else 0
