"""Whether tests run at night, when they may take long."""

import os

NIGHTLY = os.environ.get("AGENTBENCH_NIGHTLY") == "1"
