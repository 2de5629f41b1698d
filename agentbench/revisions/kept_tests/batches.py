"""`batch.keep_as_tests()`: rows of a batch as tests, each from a second run of its input."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentbench._bridge import run_sync
from agentbench.exceptions import KeepTestError
from agentbench.revisions.kept_tests.facts import Normalizer
from agentbench.revisions.kept_tests.keep import keep_as_test
from agentbench.revisions.kept_tests.model_calls import recording_of

if TYPE_CHECKING:
    from agentbench.batch.batch import Batch
    from agentbench.workflows.run.run import WorkflowRun


def keep_rows(
    batch: Batch, keys: Sequence[str], folder: str | os.PathLike[str], workflow: str | None, *, overwrite: bool
) -> list[Path]:
    """Write the tests; see `Batch.keep_as_tests`. All rows have run again before the first test is written."""
    runs = {key: _run_again(batch, key) for key in keys}
    names = {key: f"test_{re.sub(r'[^0-9A-Za-z]+', '_', key).strip('_').lower()}.py" for key in keys}
    if len(set(names.values())) < len(names):
        msg = f"Several of the keys {list(names)} give the same name of a file. Keep them one by one, in other folders."
        raise KeepTestError(msg, names=list(names))
    return [keep_as_test(run, Path(folder, names[key]), workflow, overwrite=overwrite) for key, run in runs.items()]


def _run_again(batch: Batch, key: str) -> WorkflowRun:
    """Run a row from its input; `KeepTestError` if its models were not recorded, or it gives another output."""
    row = batch.row(key)
    run = batch.open(key, rerun=True)
    recording_of(run)  # raises before a model is called
    with suppress(Exception):  # the run knows its error, and the test expects it
        run_sync(run.result())
    outputs = run.result_so_far().get_outputs()
    output = outputs[0] if len(outputs) == 1 else outputs or None
    plain = [Normalizer(ids=[run.run_id, row.run_id or ""], windows=[], outside=row.input) for _ in range(2)]
    if plain[0](output) != plain[1](row.output) or (run.error is None) != (row.error is None):
        msg = (
            f"Row {key!r} gives another result when it runs again than it gave in the batch. Rows that asked a person, "
            "and runs that depend on chance, cannot be kept this way: start the workflow on row.input, answer it, "
            "and keep that run."
        )
        raise KeepTestError(msg, names=[key])
    return run
