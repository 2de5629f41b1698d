"""`run_many`: the runs of one workflow over many inputs."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from agentbench._display import call_view
from agentbench._extras import NO_PROCESSES, not_in_browser, require
from agentbench._limits import require_limit, require_seconds
from agentbench.agents.model.settings import service_key
from agentbench.batch.batch import Batch, is_in_notebook
from agentbench.batch.cluster.pickling import require_client, require_importable
from agentbench.batch.driving.driver import Driver, DriveRules, LocalDriver
from agentbench.batch.driving.tally import EndedRow
from agentbench.batch.inputs import InputReader, Keys
from agentbench.batch.running.run_one import RowRunner, RunRules
from agentbench.batch.running.targets import Target, make_target
from agentbench.batch.store.database import BatchDatabase
from agentbench.batch.store.store import BatchStore
from agentbench.exceptions import BatchChangedError, BatchError, MissingExtraError
from agentbench.messages.prices import Price, read_prices
from agentbench.messages.usage import Budget
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.run.workflow import check_options

if TYPE_CHECKING:
    from sqlalchemy import URL

_CHECKPOINTS: Final = ("failed", "all", "none")
_CHANGED: Final = ("ask", "keep", "rerun")


def run_many(  # noqa: PLR0913 - all by keyword, most with defaults
    workflow: Any,
    inputs: Any,
    into: str | os.PathLike[str] | URL | None = None,
    name: str | None = None,
    *,
    keys: Keys | None = None,
    backend: Any = "here",
    concurrency: int | str = "auto",
    limits: Mapping[Any, int] | None = None,
    budget: Budget | None = None,
    prices: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    options: RunOptions | None = None,
    run_kwargs: Mapping[str, Any] | None = None,
    retry: int = 1,
    on_error: str | float = "keep",
    checkpoints: str = "failed",
    changed: str = "ask",
    progress: bool | None = None,
) -> Batch:
    """Run a workflow on many inputs: each in a run of its own, with one table of results.

    Called again with the same `into` and `name`, also from another process or while another one is still running, it
    continues: finished inputs are skipped, interrupted runs go on at their last checkpoints, failed ones are tried
    again, new inputs are added. In a script it starts when it is awaited, iterated or `.result()` is called; in a
    notebook at once.

    Args:
        workflow: A workflow, a compiled state graph, an agent, or a function without parameters that makes one.
        inputs: Any iterable, read lazily; a DataFrame counts as its rows, as dictionaries.
        into: An SQLite file or a URL, as for `SQLCheckpointStorage`. None keeps the rows in memory, so that the batch
            cannot be continued by another process.
        name: The name of the batch in that file, by default that of the workflow, or `workflow` if it has none.
        keys: The names of the inputs: a function of an input, one text or number per input, or a column of a DataFrame.
            By default a hash of the input. Inputs with equal keys are run once.
        backend: `"here"`, one event loop of this process; `"processes"`, a Dask cluster on this machine with one
            process per core, which ends with the batch; or a `dask.distributed.Client`.
        concurrency: How many runs may be in progress; or `"auto"`, which finds out how many the services of the models
            can take, at most 100.
        limits: The maximum number of concurrent calls over all runs, by executor id or by chat client.
        budget: Limits of the batch as a whole.
        prices: Prices of models per million tokens, as in `usage_frame`.
        timeout: Seconds for each run. A run that takes longer fails, with the executor that was running in its error.
        options: Options of each run.
        run_kwargs: Further keyword arguments of `workflow.run` for each run; `config` for a state graph.
        retry: Further attempts for a failed run, from its last checkpoint.
        on_error: `"keep"` goes on; `"stop"` ends the batch at the first failed row; a number is the fraction of failed
            rows at which it ends.
        checkpoints: Which runs keep their checkpoints when they have ended: `"failed"`, `"all"` or `"none"`. A waiting
            run always keeps its own.
        changed: What to do with rows that were finished by another graph or by other code: `"ask"` raises an error that
            lists the changes, `"keep"` keeps them, `"rerun"` runs them again.
        progress: Whether to show the progress; by default only in notebooks.

    Returns:
        The batch: await it, iterate over its rows, or call `result()`.

    Raises:
        TypeError: `workflow` or `inputs` cannot be run.
        ValueError: An argument has an unknown value, or a generator was already read.
        BatchChangedError: Finished rows belong to another graph, and `changed` is `"ask"`.
        MissingExtraError: SQLAlchemy, psycopg or Dask is needed and not installed.
        NotInBrowserError: PostgreSQL or `backend=` is used, and this Python runs in a browser.

    Example:
        >>> batch = await run_many(workflow, questions, into="answers.db", budget=Budget(tokens=1_000_000))
        >>> batch.frame()[["input", "output", "status", "tokens_out"]]
        >>> await batch.failed.retry()
    """
    _require_one_of("checkpoints", checkpoints, _CHECKPOINTS)
    _require_one_of("changed", changed, _CHANGED)
    require_limit("retry", retry)
    require_seconds("timeout", timeout, none="no limit")
    _check_rules(on_error, concurrency, budget)
    known_prices = _known_prices(prices)
    if budget is not None and budget.cost is not None and not known_prices:
        msg = "Budget(cost=...) needs prices of models. Pass prices={'model': (input, output)}, per million tokens."
        raise ValueError(msg)
    on_cluster = backend != "here"
    if on_cluster:
        _require_cluster(backend, into)
    reader = InputReader(inputs, keys)
    target = make_target(workflow, name, run_kwargs or {})
    run_rules = RunRules(
        retry,
        timeout,
        checkpoints,
        check_options(options),
        *_sort_limits(limits, target),
        known_prices,
        None if isinstance(concurrency, str) else concurrency,
    )
    drive_rules = DriveRules(budget, on_error)
    store = BatchStore(BatchDatabase(into), target.batch_name)
    try:
        _settle_changes(store, target, changed)
        make_cluster_driver = (
            _cluster_drivers(workflow, target, store, backend, run_kwargs, run_rules) if on_cluster else None
        )
    except BaseException:
        store.close()
        raise

    async def make_driver(note: Callable[[EndedRow], None]) -> Driver[Any]:
        if make_cluster_driver is not None:
            return await make_cluster_driver(reader, drive_rules, note)
        return LocalDriver(store, reader, drive_rules, note, RowRunner(target, store, run_rules))

    batch = Batch(store, target, make_driver, reader.distinct)
    if is_in_notebook():
        batch.start()
    if progress or (progress is None and is_in_notebook()):
        with suppress(MissingExtraError):
            batch.display = call_view("agentbench.notebook.batches.live:show_live", batch, progress)
    return batch


def _check_rules(on_error: object, concurrency: object, budget: object) -> None:
    is_fraction = isinstance(on_error, (int, float)) and not isinstance(on_error, bool) and 0 < on_error <= 1
    if on_error not in ("keep", "stop") and not is_fraction:
        msg = f"on_error is {on_error!r}; expected 'keep', 'stop', or the fraction of failed rows, above 0 and up to 1."
        raise ValueError(msg)
    if isinstance(concurrency, str) and concurrency != "auto":
        msg = f"concurrency is {concurrency!r}; expected 'auto', or how many runs may be in progress."
        raise ValueError(msg)
    if concurrency != "auto":
        require_limit("concurrency", concurrency, least=1)
    if budget is not None and not hasattr(budget, "usage"):
        msg = f"budget is {budget!r}; expected Budget(...), such as Budget(tokens=1_000_000)."
        raise TypeError(msg)


def _require_cluster(backend: Any, into: Any) -> None:
    """Raise unless `backend` is a usable cluster and the rows are where all processes reach them."""
    not_in_browser(
        "Processes and clusters", reason=NO_PROCESSES, instead="Leave out backend=: the runs share this page."
    )
    if into is None:
        msg = "into is None, which keeps the rows in this process. Pass into='results.db' or the URL of a database."
        raise ValueError(msg)
    if backend == "processes":
        require("distributed", extra="dask", purpose="run a batch in several processes")
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            msg = (
                "run_many(backend='processes') was called by one of its own processes, because each of them runs the "
                "script again. Put the call under `if __name__ == '__main__':`."
            )
            raise BatchError(msg)
    elif isinstance(backend, str) or not hasattr(backend, "submit"):
        msg = f"backend is {backend!r}; expected 'here', 'processes', or a dask.distributed.Client."
        raise ValueError(msg)
    else:
        require_client(backend, "backend")


def _cluster_drivers(
    workflow: Any, target: Target, store: BatchStore, backend: Any, run_kwargs: Any, rules: RunRules
) -> Callable[[InputReader, DriveRules, Callable[[EndedRow], None]], Awaitable[Driver[Any]]]:
    """Return a function that makes drivers on a cluster, after checking that the workflow can be sent there."""
    # Imported here, because few batches use a cluster.
    from agentbench.batch.cluster.definition import Definition, pack_workflow  # noqa: PLC0415
    from agentbench.batch.cluster.driver import ClusterDriver, LocalCluster  # noqa: PLC0415

    for executor in target.workflow.executors.values():
        types = (*executor.input_types, *executor.output_types, *executor.workflow_output_types)
        require_importable(types, f"executor {executor.id!r}")
    database = store.database
    definition = Definition(pack_workflow(workflow), database.into, store.name, run_kwargs or {}, store.opened, rules)
    local = LocalCluster() if backend == "processes" else None

    async def make(reader: InputReader, drive_rules: DriveRules, note: Callable[[EndedRow], None]) -> Driver[Any]:
        client = backend if local is None else await local.start()
        driver = ClusterDriver(store, reader, drive_rules, note, client, definition)
        driver.local = local
        return driver

    return make


def _require_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        msg = f"{name} is {value!r}; expected {' or '.join(map(repr, allowed))}."
        raise ValueError(msg)


def _sort_limits(limits: Mapping[Any, int] | None, target: Target) -> tuple[dict[str, int], dict[str, int]]:
    """Return the limits of executors by id, and those of services."""
    executors: dict[str, int] = {}
    services: dict[str, int] = {}
    for place, limit in (limits or {}).items():
        require_limit(f"limits[{place!r}]", limit, least=1)
        if isinstance(place, str) and place in target.workflow.executors:
            executors[place] = limit
        elif hasattr(place, "get_response"):
            services[service_key(place)] = limit
        else:
            known = ", ".join(map(repr, target.workflow.executors))
            msg = f"limits names {place!r}; expected the id of an executor ({known}) or a chat client."
            raise ValueError(msg)
    return executors, services


def _known_prices(prices: Mapping[str, Any] | None) -> dict[str, Price]:
    """Return the prices of the notebook's settings, overridden by these."""
    settings = sys.modules.get("agentbench.notebook.runtime.settings")
    return {**({} if settings is None else settings.current().prices), **read_prices(prices)}


def _settle_changes(store: BatchStore, target: Target, changed: str) -> None:
    """Decide about rows that other code has finished."""
    if changed == "ask":
        others = store.other_graphs(target.graph_hash)
        if others:
            changes = _changes(others[0][1], target.parts)
            count = sum(rows for rows, _ in others)
            listed = ", ".join(f"{part} ({what})" for part, what in changes.items()) or "its code"
            msg = (
                f"{count:,} finished rows of batch {store.name!r} were computed by another version of the workflow: "
                f"{listed}. Pass changed='keep' to keep them, changed='rerun' to run them again, or another name=."
            )
            raise BatchChangedError(msg, changes=changes, rows=count)
    elif changed == "rerun":
        store.rerun_changed(target.graph_hash, target.chain)
    store.note_graph(target.graph_hash, target.parts)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    added = dict.fromkeys(after.keys() - before.keys(), "added")
    removed = dict.fromkeys(before.keys() - after.keys(), "removed")
    differing = {part: "changed" for part in after.keys() & before.keys() if after[part] != before[part]}
    return dict(sorted((added | removed | differing).items()))
