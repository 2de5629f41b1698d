"""What several commands use."""

import argparse
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name
"""The parsers of all commands, or of all actions of one command."""
REFERENCE = "an id, the beginning of an id, latest, latest:CHAIN, or CHAIN@NUMBER"
"""How a user names a checkpoint."""


def ask(question: str) -> bool | None:
    """Ask the user at the terminal a yes-or-no question; return `None` if the input ends."""
    while True:
        try:
            reply = input(f"{question} [y/n] ").strip().lower()
        except EOFError:
            print()
            return None
        if reply in ("y", "yes", "n", "no"):
            return reply.startswith("y")


def parse_port(text: str) -> int:
    """Read the number of a port from the command line."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        msg = f"{text!r} is not a port; expected a number from 1 to 65535"
        raise argparse.ArgumentTypeError(msg)
    return int(text)
