"""The commands `lab`, `demo`, `batch`, `checkpoints`, `tests`, `site` and `doctor`, each in its own module."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence

from agentbench._plain_text import plain_text
from agentbench.cli.batch import add_batch
from agentbench.cli.checkpoints import add_checkpoints
from agentbench.cli.demo import add_demo
from agentbench.cli.doctor import add_doctor
from agentbench.cli.lab import add_lab
from agentbench.cli.site.command import add_site
from agentbench.cli.tests import add_tests
from agentbench.exceptions import AgentFrameworkException
from agentbench.observability.instruments import VERSION

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command (by default that of the command line) and return the exit status: 1 for errors, 130 for Ctrl-C."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character prints a replacement
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        status = command(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. Text still buffered by Python would fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (AgentFrameworkException, OSError, EOFError) as error:
        print(f"agentbench: {plain_text(error, None)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentbench", description="Build agent workflows in notebooks and step through them."
    )
    parser.add_argument("--version", action="version", version=f"agentbench {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (add_lab, add_demo, add_batch, add_checkpoints, add_tests, add_site, add_doctor):
        add(commands)
    return parser
