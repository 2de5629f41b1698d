"""How the library presents itself to services."""

from __future__ import annotations

import os
import sys

from agentbench.settings import TRUE_WORDS

SWITCH = "AGENTBENCH_USER_AGENT_DISABLED"


def user_agent() -> str | None:
    """The header `User-Agent`: `agentbench-python/<version>`; `None` where `AGENTBENCH_USER_AGENT_DISABLED` is set."""
    if os.environ.get(SWITCH, "").strip().lower() in TRUE_WORDS:
        return None
    # Not imported: the library never imports its own front door. It is there, as this module is inside of it.
    return f"agentbench-python/{sys.modules['agentbench'].__version__}"
