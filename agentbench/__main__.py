"""`python -m agentbench`: the same as the command `agentbench`."""

import sys

from agentbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
