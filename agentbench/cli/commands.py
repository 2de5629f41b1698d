"""What commands add themselves to."""

import argparse
from typing import TypeAlias

#: The parsers of all commands, or of all actions of one.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name
