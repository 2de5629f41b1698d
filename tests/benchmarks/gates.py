"""Are the speed targets met? Run on request: `python -m tests.benchmarks.gates`.

Every workload exists twice: done by agentbench, and `bare`, by plain asyncio doing the same work with one task and one
gather per superstep. Both halves run in turn in one process, round after round. Machines differ and are shared, so
times by themselves say little: what counts is the ratio of agentbench to bare inside one round, of which the median
over all rounds is judged. Times are those of the processor, except where the work sleeps or calls another program
(W10, drawing) or is one short request of a person (listing, resuming).

Reading a row: the figure per unit of work for both halves (medians), the ratio (median, lowest..highest), the `gate`
that must not be passed, the `goal` aimed at, and which of them is met. A few targets are figures of their own, such as
memory. `W7 first use` is what importing agentbench and running one small workflow adds to a fresh process.

    python -m tests.benchmarks.gates                    # all
    python -m tests.benchmarks.gates W1 "W3 build"      # some
    python -m tests.benchmarks.gates --strict           # exit code 1 if a gate is missed

`pytest tests/benchmarks --benchmark-only` measures the same workloads with pytest-benchmark, for comparing versions
(`--benchmark-autosave`, `--benchmark-compare`); `extra_info` of each result holds its ratio to bare.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.benchmarks import (
    agent_workloads,
    batch_workloads,
    checkpoint_workloads,
    engine_workloads,
    fresh,
    graph_workloads,
    limit_workloads,
)
from tests.benchmarks.workload import Workload, measure

ROUNDS = 9

_PER_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}


@dataclass(frozen=True)
class Target:
    """What is demanded of a workload.

    Attributes:
        gate: Not to be passed.
        goal: What we are after.
        is_ratio: Both are ratios to bare; else figures in the unit of the workload.
    """

    gate: float
    goal: float
    is_ratio: bool = True


TARGETS = {
    "W1": Target(0.5, 0.38),
    "W2": Target(1.55, 1.35),
    "W3": Target(0.6, 0.45),
    "W3 nested": Target(3.3, 3),
    "W3 build": Target(3, 2, is_ratio=False),
    "W4 memory": Target(50, 35, is_ratio=False),
    "W4 file": Target(6.3, 5),
    "W4 file size": Target(1024, 300, is_ratio=False),
    "W4 file growth": Target(6, 5.2, is_ratio=False),
    "W4 file list": Target(4, 2, is_ratio=False),
    "W4 file resume": Target(10, 4, is_ratio=False),
    "W4 file migrate": Target(5, 1, is_ratio=False),
    "W4 SQLite migrate": Target(5, 1, is_ratio=False),
    "W4 SQLite": Target(10, 7),
    "W4 SQLite size": Target(1024, 300, is_ratio=False),
    "W4 SQLite growth": Target(6, 5.2, is_ratio=False),
    "W4 SQLite list": Target(4, 2, is_ratio=False),
    "W4 SQLite resume": Target(10, 4, is_ratio=False),
    "W5 turn": Target(0.07, 0.04, is_ratio=False),
    "W5 growth": Target(1.5, 1.2, is_ratio=False),
    "W5 long": Target(10, 4, is_ratio=False),
    "W5 approval": Target(2, 1.4, is_ratio=False),
    "W5 chain": Target(1.5, 1, is_ratio=False),
    "W5 chain growth": Target(1.5, 1.2, is_ratio=False),
    "W5 tool call": Target(40, 25, is_ratio=False),
    "H7 turn": Target(1, 0.5, is_ratio=False),
    "H7 first turn": Target(5, 2, is_ratio=False),
    "W6 engine": Target(3.1, 2.5),
    "W6 agent": Target(3.1, 2.5),
    "W6 agent first": Target(1, 0.4, is_ratio=False),
    "W6 workflow": Target(3.1, 2.5),
    "W6 workflow first": Target(1, 0.4, is_ratio=False),
    "W7 build": Target(100, 40, is_ratio=False),
    "W7 first use": Target(35, 27, is_ratio=False),
    "W8": Target(5.5, 3.5),
    "W8 growth": Target(1.1, 1.05),
    "W8 thread in memory": Target(12, 8),
    "W8 thread in files": Target(23, 15),
    "W11 memory": Target(1, 0.6, is_ratio=False),
    "W11 file": Target(2.5, 1.2, is_ratio=False),
    "W11 SQLite": Target(4, 1.5, is_ratio=False),
    "W11 memory growth": Target(1.5, 1.1, is_ratio=False),
    "W11 file growth": Target(1.5, 1.1, is_ratio=False),
    "W11 SQLite growth": Target(1.5, 1.1, is_ratio=False),
    "W11 new SQLite": Target(25, 8, is_ratio=False),
    "W11 reopen": Target(10, 4, is_ratio=False),
    "W11 first turn": Target(1.5, 1.1, is_ratio=False),
    "W9 bytes": Target(160, 100, is_ratio=False),
    "W9 drift": Target(1.05, 1.03, is_ratio=False),
    "W10": Target(4.5, 3.5),
    "W10 memory": Target(50, 36, is_ratio=False),
    "batch none": Target(1.5, 1.2),
    "batch memory": Target(1.5, 1.2),
    "batch SQLite": Target(1.5, 1.2),
    "batch row": Target(1, 0.4, is_ratio=False),
    "batch memory of 100,000": Target(100, 50, is_ratio=False),
    "batch explore": Target(4, 2, is_ratio=False),
    "batch what if": Target(1.2, 1.0),
    "batch processes": Target(2, 1, is_ratio=False),
    "batch two workers": Target(1 / 1.6, 1 / 1.9),
    "limit rejected": Target(10, 3, is_ratio=False),
    "limit time": Target(1.5, 1.2),
    # Of a click that is to be on the page after so many ms; the browser's part is not in the figure.
    "click 50": Target(100, 50, is_ratio=False),
    "click 500": Target(200, 80, is_ratio=False),
    "frame": Target(1, 0.2, is_ratio=False),
    "frame from SQLite": Target(1, 0.2, is_ratio=False),
    "import notebook": Target(10, 10, is_ratio=False),
    "first draw": Target(150, 150, is_ratio=False),
    "draw 50": Target(80, 80, is_ratio=False),
    "draw 100": Target(150, 150, is_ratio=False),
    "draw 500": Target(1000, 1000, is_ratio=False),
    "draw again": Target(2, 2, is_ratio=False),
    "form": Target(100, 100, is_ratio=False),
    "form check": Target(5, 5, is_ratio=False),
    "frame of infos": Target(100, 100, is_ratio=False),
    "frame of events": Target(300, 300, is_ratio=False),
    "timeline 300": Target(10, 10, is_ratio=False),
    "timeline 5000": Target(150, 150, is_ratio=False),
    "diff": Target(200, 200, is_ratio=False),
    "round trip": Target(200, 200, is_ratio=False),
    "saved graph": Target(80, 80, is_ratio=False),
}


@dataclass(frozen=True)
class Row:
    """What was measured of one workload.

    Attributes:
        name: Of the workload.
        what: What a unit of work is.
        unit: Of the figures.
        figure: Of agentbench, the median over the rounds.
        bare: Of the bare half, the median; `None` where there is none.
        ratios: agentbench to bare, round by round.
        demanded: What is demanded of it, if that is not in `TARGETS`.
    """

    name: str
    what: str
    unit: str
    figure: float
    bare: float | None = None
    ratios: Sequence[float] = ()
    demanded: Target | None = None

    @property
    def target(self) -> Target | None:
        """What is demanded of it, if anything."""
        return self.demanded or TARGETS.get(self.name)

    @property
    def verdict(self) -> str:
        """`goal`, `gate` or `MISSED`; empty where nothing is demanded."""
        target = self.target
        if target is None:
            return ""
        judged = statistics.median(self.ratios) if target.is_ratio else self.figure
        return "goal" if judged <= target.goal else "gate" if judged <= target.gate else "MISSED"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text."""
        target, unit = self.target, self.unit
        ratio = span = gate = goal = ""
        if self.ratios:
            ratio, span = f"{statistics.median(self.ratios):.2f}", f"{min(self.ratios):.2f}..{max(self.ratios):.2f}"
        if target is not None:
            of = "x" if target.is_ratio else f" {unit}"
            gate, goal = f"{target.gate:g}{of}", f"{target.goal:g}{of}"
        bare = "" if self.bare is None else f"{self.bare:.3g} {unit}"
        return self.name, f"{self.figure:.3g} {unit}", bare, ratio, span, gate, goal, self.verdict, self.what


HEAD = ("workload", "agentbench", "bare", "ratio", "min..max", "gate", "goal", "meets", "one unit is")


def lines(rows: Sequence[Row]) -> list[str]:
    """The rows as a table."""
    cells = [HEAD, *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def row_of(workload: Workload, rounds: int) -> Row:
    """Measure a workload."""
    figures = measure(workload, rounds)
    scale = _PER_SECOND[workload.unit] / workload.per_call
    medians = {half: scale * statistics.median(seconds) for half, seconds in figures.seconds.items()}
    return Row(workload.name, workload.what, workload.unit, medians["agentbench"], medians.get("bare"), figures.ratios)


def _first(name: str, what: str, script: str, bare: str, rounds: int) -> Row:
    figures = fresh.first_use(script, bare, rounds)
    added = [
        1e3 * (ours - less) for ours, less in zip(figures.seconds["agentbench"], figures.seconds["bare"], strict=True)
    ]
    less = 1e3 * statistics.median(figures.seconds["bare"])
    return Row(name, what, "ms", statistics.median(added), less, figures.ratios)


def _kept_bytes(_: int) -> Row:
    return Row("W9 bytes", "memory that a run keeps per superstep", "B", fresh.bytes_per_superstep())


def _drift(rounds: int) -> Row:
    drifts = [fresh.drift(time.process_time) for _ in range(max(1, rounds // 3))]
    return Row("W9 drift", "last half of 100,000 supersteps to first tenth", "x", statistics.median(drifts))


def _memory(_: int) -> Row:
    mib = fresh.resident_mib()
    return Row("W10 memory", "a process after W10", "MiB", float("nan") if mib is None else mib)


def _growth_of_turns(rounds: int) -> Row:
    found = statistics.median(agent_workloads.growth() for _ in range(rounds))
    return Row("W5 growth", "the last tenth of 100 turns of a session to the first", "x", found)


def _growth_to_ten_thousand(rounds: int) -> Row:
    found = statistics.median(agent_workloads.growth_to_ten_thousand() for _ in range(rounds))
    return Row("W5 long", "a turn behind 10,000 messages with an early approval to one behind 10", "x", found)


def _growth_behind_approval(rounds: int) -> Row:
    found = statistics.median(agent_workloads.approval_growth() for _ in range(rounds))
    return Row("W5 approval", "turn 2,000 of a workflow with an approval in the first turn to turn 200", "x", found)


def _first_update(rounds: int) -> Row:
    found = statistics.median(agent_workloads.first_update_ms() for _ in range(rounds))
    return Row("W6 agent first", "from run() to the first update of an agent", "ms", found)


def _growth_of_chain(rounds: int) -> Row:
    found = statistics.median(agent_workloads.chain_growth() for _ in range(rounds))
    return Row("W5 chain growth", "the last tenth of 100 turns of ten agents in a row to the first", "x", found)


def _first_output(rounds: int) -> Row:
    found = statistics.median(agent_workloads.first_output_ms() for _ in range(rounds))
    return Row(
        "W6 workflow first", "from run() to the first update of a workflow that begins with an agent", "ms", found
    )


def _first_use(rounds: int) -> Row:
    what = "importing and one small run, added to plain asyncio (bare: the whole process)"
    return _first("W7 first use", what, fresh.ONE_RUN, fresh.ASYNCIO, rounds)


def _first_picture(rounds: int) -> Row:
    what = "importing what draws, and a picture, added to the above (bare: the whole process)"
    return _first("first picture", what, fresh.FIRST_PICTURE, fresh.ONE_RUN, rounds)


def _of_storage(kind: str) -> dict[str, Measure]:
    listing, resuming = checkpoint_workloads.listing_ms, checkpoint_workloads.resuming_ms
    size, growth = checkpoint_workloads.kilobytes, checkpoint_workloads.growth
    return {
        f"W4 {kind} size": lambda _: Row(f"W4 {kind} size", "all files at 500 supersteps", "KiB", size(kind)),
        f"W4 {kind} growth": lambda _: Row(f"W4 {kind} growth", "size at 500 to size at 100", "x", growth(kind)),
        f"W4 {kind} list": lambda n: Row(f"W4 {kind} list", "500 checkpoints, fresh object", "ms", listing(kind, n)),
        f"W4 {kind} migrate": lambda n: Row(
            f"W4 {kind} migrate", "1,000 checkpoints", "s", checkpoint_workloads.migrating_s(kind, min(n, 3))
        ),
        f"W4 {kind} resume": lambda n: Row(f"W4 {kind} resume", "the last one, fresh", "ms", resuming(kind, n)),
        f"10,000 {kind} list": partial(_many, f"10,000 {kind} list", kind, checkpoint_workloads.list_many),
        f"10,000 {kind} latest": partial(_many, f"10,000 {kind} latest", kind, checkpoint_workloads.latest_of_many),
        f"10,000 {kind} load": partial(_many, f"10,000 {kind} load", kind, checkpoint_workloads.load_one_of_many),
    }


def _many(name: str, kind: str, do: Callable[[Any], object], rounds: int) -> Row:
    with checkpoint_workloads.ten_thousand(kind) as storage:
        first, *more = [_milliseconds(do, storage) for _ in range(max(2, rounds // 3))]
    return Row(name, f"of 10,000 checkpoints (the first time {first:.3g} ms)", "ms", statistics.median(more))


def _milliseconds(do: Callable[[Any], object], storage: Any) -> float:
    began = time.perf_counter()
    do(storage)
    return 1e3 * (time.perf_counter() - began)


def _import_notebook(rounds: int) -> Row:
    what = "importing agentbench.notebook, added to agentbench and typing (bare: the whole process)"
    return _first("import notebook", what, "import agentbench.notebook", "import agentbench, typing", rounds)


def _of_chat(kind: str) -> dict[str, Measure]:
    def last(rounds: int) -> Row:
        found = [graph_workloads.turns_ms(kind)[1] for _ in range(max(1, rounds // 3))]
        return Row(f"W11 {kind}", "turn 500 of a thread", "ms", statistics.median(found))

    def growth(rounds: int) -> Row:
        found = [graph_workloads.turns_ms(kind) for _ in range(max(1, rounds // 3))]
        ratios = [late / early for early, late in found]
        return Row(f"W11 {kind} growth", "turn 500 of a thread to turn 30", "x", statistics.median(ratios))

    return {f"W11 {kind}": last, f"W11 {kind} growth": growth}


def _new_storage(_: int) -> Row:
    found = graph_workloads.turns_ms("SQLite", is_new_storage=True)[1]
    return Row("W11 new SQLite", "turn 500 with a new storage and a new graph for each turn", "ms", found)


def _reopening(rounds: int) -> Row:
    found = [graph_workloads.reopening_ms() for _ in range(max(1, rounds // 3))]
    return Row("W11 reopen", "the state of 500 turns read from SQLite by new objects", "ms", statistics.median(found))


def _first_turn_growth(rounds: int) -> Row:
    found = [graph_workloads.first_turn_growth() for _ in range(max(1, rounds // 3))]
    return Row("W11 first turn", "of a thread beside 2,000 others to one beside 100", "x", statistics.median(found))


def _batch(kind: str) -> Measure:
    def measure_batch(rounds: int) -> Row:
        pairs = [
            (batch_workloads.batched(kind, 1000), batch_workloads.gathered(kind, 1000))
            for _ in range(max(1, rounds // 3))
        ]
        ours, bare = (statistics.median(halves) for halves in zip(*pairs, strict=True))
        what = f"1,000 runs of ten supersteps, with checkpoints: {kind} (bare: the same clones under gather)"
        return Row(f"batch {kind}", what, "s", ours, bare, [one / other for one, other in pairs])

    return measure_batch


def _batch_what_if(rounds: int) -> Row:
    pairs = [batch_workloads.what_if_s() for _ in range(rounds)]
    ours, bare = (statistics.median(halves) for halves in zip(*pairs, strict=True))
    what = "5 variants x 5 repeats from superstep 3 of 10 (bare: 30 forks by hand)"
    return Row("batch what if", what, "s", ours, bare, [one / other for one, other in pairs])


def _batch_row(_: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        figure = batch_workloads.row_ms(f"{folder}/rows.db")
    return Row("batch row", "a finished row with its traffic, written to SQLite", "ms", figure)


def _batch_memory(_: int) -> Row:
    return Row("batch memory of 100,000", "what 100,000 rows add to the driver", "MB", batch_workloads.driver_mb())


def _batch_explore(_: int) -> Row:
    return Row("batch explore", "the map of 10,000 runs, from SQLite", "s", batch_workloads.explore_s())


def _batch_processes(_: int) -> Row:
    figure = batch_workloads.process_overhead_ms()
    return Row("batch processes", "per run on two workers, beside half of the time here", "ms", figure)


def _batch_two_workers(_: int) -> Row:
    ours, bare = batch_workloads.two_workers_s()
    what = "1,000 runs of ten executors with 1 ms of the processor on two workers (bare: here)"
    return Row("batch two workers", what, "s", ours, bare, [ours / bare])


def _rejected_calls(_: int) -> Row:
    what = "rejected requests of 2,000 calls to a service that allows 20 at once and answers HTTP 429 beyond"
    return Row("limit rejected", what, "%", 100 * limit_workloads.limited_calls().rejected)


def _time_of_limited_calls(_: int) -> Row:
    ours, bare = limit_workloads.limited_calls().seconds, limit_workloads.limited_calls(fixed=True).seconds
    return Row("limit time", "these calls, to the best fixed limit", "s", ours, bare, [ours / bare])


def _first_turn(rounds: int) -> Row:
    fresh.compile_package()
    milliseconds = [float(fresh.run_script(fresh.FIRST_TURN)) for _ in range(rounds)]
    what = "the first such turn of a process that has built the workflow"
    return Row("H7 first turn", what, "ms", statistics.median(milliseconds))


def _first_draw(rounds: int) -> Row:
    fresh.compile_package()
    milliseconds = [float(fresh.run_script(fresh.FIRST_DRAW)) for _ in range(rounds)]
    return Row("first draw", "10 nodes, in a process that has drawn none", "ms", statistics.median(milliseconds))


def _saved_graph(_: int) -> Row:
    from agentbench.notebook import draw

    bundle = draw(engine_workloads.ring(50))._repr_mimebundle_()
    kilobytes = len(json.dumps(bundle).encode()) / 1024
    return Row("saved graph", "what a notebook keeps of a picture of 50 nodes", "KB", kilobytes)


def _frame_from_sqlite(rounds: int) -> Row:
    from agentbench.notebook import checkpoints_frame

    with checkpoint_workloads.ten_thousand("SQLite") as storage:
        seconds = [_milliseconds(checkpoints_frame, storage) / 1e3 for _ in range(max(2, rounds // 3))]
    what = "10,000 checkpoints of an SQLite file as a data frame"
    return Row("frame from SQLite", what, "s", statistics.median(seconds))


Measure = Callable[[int], Row]


def measures() -> dict[str, Measure]:
    """What can be measured here, by name: rounds in, a row out. Notebook workloads need the notebook extra."""
    workloads = [*engine_workloads.WORKLOADS, *checkpoint_workloads.WORKLOADS]
    workloads += [*agent_workloads.WORKLOADS, *graph_workloads.WORKLOADS]
    more: dict[str, Measure] = {
        "W5 growth": _growth_of_turns,
        "W5 chain growth": _growth_of_chain,
        "W5 long": _growth_to_ten_thousand,
        "W5 approval": _growth_behind_approval,
        "W6 agent first": _first_update,
        "W6 workflow first": _first_output,
        "H7 first turn": _first_turn,
        **{f"batch {kind}": _batch(kind) for kind in ("none", "memory", "SQLite")},
        "batch row": _batch_row,
        "batch what if": _batch_what_if,
        "batch memory of 100,000": _batch_memory,
        "batch processes": _batch_processes,
        "batch two workers": _batch_two_workers,
        "limit rejected": _rejected_calls,
        "limit time": _time_of_limited_calls,
        "W7 first use": _first_use,
        "W9 bytes": _kept_bytes,
        "W9 drift": _drift,
        "W10 memory": _memory,
    }
    for kind in checkpoint_workloads.OPEN:
        more |= _of_storage(kind)
    for kind in ("memory", "file", "SQLite"):
        more |= _of_chat(kind)
    more |= {"W11 new SQLite": _new_storage, "W11 reopen": _reopening, "W11 first turn": _first_turn_growth}
    if all(map(importlib.util.find_spec, ("ipywidgets", "pandas"))):
        from tests.benchmarks import notebook_workloads

        workloads += notebook_workloads.WORKLOADS
        more["first picture"] = _first_picture
        more["frame from SQLite"] = _frame_from_sqlite
        more["batch explore"] = _batch_explore
        more |= {"import notebook": _import_notebook, "first draw": _first_draw, "saved graph": _saved_graph}
    return {w.name: (lambda rounds, w=w: row_of(w, rounds)) for w in workloads} | more


def measured(names: Sequence[str], rounds: int) -> Iterator[Row]:
    """Measure these, or everything."""
    known = measures()
    for name in names or known:
        yield known[name](rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", nargs="*", help=f"all by default: {', '.join(measures())}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of each workload (default {ROUNDS})")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a gate is missed")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.workload if name not in measures()]
    if unknown:
        parser.error(f"no workload is called {', '.join(unknown)}; there are {', '.join(measures())}")
    rows = []
    for row in measured(chosen.workload, chosen.rounds):
        sys.stderr.write(f"{row.name}\n")
        rows.append(row)
    said = lines(rows)
    missed = [row.name for row in rows if row.verdict == "MISSED"]
    if missed:
        said += ["", f"Gate missed: {', '.join(missed)}."]
    sys.stdout.write("\n".join(said) + "\n")
    return 1 if missed and chosen.strict else 0


if __name__ == "__main__":
    sys.exit(main())
