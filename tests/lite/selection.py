"""Which tests run in Pyodide: few each time, all of them at night; and which of them cannot, with the reason."""

from __future__ import annotations

QUICK = (
    "tests/lite/without_threads.py",
    "tests/checkpoints/test_file.py",
    "tests/workflows/test_resume.py",
    "tests/workflows/test_sequences.py",
)
NIGHTLY = (
    *QUICK,
    "tests/agents/agent",
    "tests/agents/loop",
    "tests/agents/tools",
    "tests/batch/test_run_many.py",
    "tests/checkpoints/test_all_storages.py",
    "tests/checkpoints/test_fork.py",
    "tests/checkpoints/test_memory.py",
    "tests/checkpoints/test_sql.py",
    "tests/orchestrations/patterns",
    "tests/stategraph/test_interrupts.py",
    "tests/stategraph/test_messages_and_steps.py",
    "tests/stategraph/test_time_travel.py",
    "tests/stategraph/test_tool_node.py",
    "tests/workflows/builder",
    "tests/workflows/engine",
    "tests/workflows/persist",
    "tests/workflows/run/test_run.py",
    "tests/workflows/test_time_travel.py",
)
LEFT_OUT: dict[str, tuple[str, ...]] = {}
"""Why tests are left out, and which."""
