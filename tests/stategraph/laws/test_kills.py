"""A thread whose process is killed ends, in the next process, as if nothing had happened.

`AGENTBENCH_SOAK=1000` takes so many threads; by default there are 60 at night and 10 by day, always the same.
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
def test_a_thread_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    count = os.environ.get("AGENTBENCH_SOAK", "60" if NIGHTLY else "10")
    command = [sys.executable, "-m", "tests.stategraph.laws.kills", str(tmp_path), count]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=600)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
