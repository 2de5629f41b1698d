"""Which tests run in Pyodide: few each time, all of them at night; and which of them cannot, with the reason."""

from __future__ import annotations

QUICK = (
    "tests/lite/without_threads.py",
    "tests/lite/without_packages.py",
    "tests/checkpoints/test_file.py",
    "tests/workflows/test_resume.py",
    "tests/workflows/test_sequences.py",
)
NIGHTLY = (
    *QUICK,
    "tests/agents/agent/test_agent.py",
    "tests/agents/agent/test_as_tool.py",
    "tests/agents/agent/test_run.py",
    "tests/agents/loop/test_approvals.py",
    "tests/agents/loop/test_approvals_in_sessions.py",
    "tests/batch/test_run_many.py",
    "tests/checkpoints/test_all_storages.py",
    "tests/checkpoints/test_fork.py",
    "tests/checkpoints/test_memory.py",
    "tests/checkpoints/test_sql.py",
    "tests/orchestrations/patterns",
    "tests/stategraph/test_interrupts.py",
    "tests/workflows/builder",
    "tests/workflows/run/test_run.py",
)
LEFT_OUT = {
    "starts another process": (
        "tests/checkpoints/test_file.py::test_what_can_unpickle_is_loaded_only_by_request",
        "tests/checkpoints/test_sql.py::test_the_module_is_imported_without_sqlalchemy",
        "tests/checkpoints/test_sql.py::test_a_storage_that_is_never_closed_leaves_nothing_open",
    ),
    "starts threads": (
        "tests/checkpoints/test_memory.py::test_threads_with_loops_of_their_own_may_share_it",
        "tests/workflows/run/test_run.py::test_a_pause_takes_effect_at_the_next_boundary",
    ),
    "a browser has no PostgreSQL, whatever is installed": (
        "tests/checkpoints/test_sql.py::test_without_psycopg_its_extra_is_named_at_construction",
    ),
    "needs pandas": ("tests/batch/test_run_many.py::test_a_data_frame_counts_as_its_rows",),
}
"""Why tests are left out, and which."""
