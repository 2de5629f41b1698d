"""Runs that wait for people survive whatever happens to their processes.

`AGENTBENCH_SOAK=500` takes so many runs; by default there are 48 at night and 8 by day, always the same.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts.nightly import NIGHTLY

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.skipif(importlib.util.find_spec("sqlalchemy") is None, reason="sqlalchemy is not installed")
def test_every_answer_counts_once_and_no_conversation_is_lost_or_doubled(tmp_path):
    count = os.environ.get("AGENTBENCH_SOAK", "48" if NIGHTLY else "8")
    command = [sys.executable, "-m", "tests.orchestrations.soak.lives", str(tmp_path), count]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=900)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
