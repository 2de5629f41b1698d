"""The gates command on made-up figures, and every workload once: what is measured has to work. No time is asserted."""

import re
from collections.abc import Callable

import pytest

from tests.benchmarks import gates
from tests.benchmarks.agent_workloads import WORKLOADS as AGENTS
from tests.benchmarks.checkpoint_workloads import WORKLOADS as CHECKPOINTS
from tests.benchmarks.engine_workloads import WORKLOADS as ENGINE
from tests.benchmarks.fresh import ASYNCIO, ONE_RUN, bytes_per_superstep, run_script
from tests.benchmarks.gates import Row, Target
from tests.benchmarks.graph_workloads import WORKLOADS as GRAPHS
from tests.benchmarks.notebook_workloads import WORKLOADS as NOTEBOOK
from tests.benchmarks.workload import Workload, awaited, measure
from tests.parts.nightly import nightly


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> dict[str, Target]:
    made = {"by ratio": Target(3, 2), "by figure": Target(30, 20, is_ratio=False)}
    monkeypatch.setattr(gates, "TARGETS", made)
    return made


def row(name: str, figure: float, *ratios: float) -> Row:
    return Row(name, "a made-up unit", "us", figure, 1.0 if ratios else None, ratios)


@pytest.mark.parametrize("workload", [nightly(w, id=w.name) for w in ENGINE + AGENTS + CHECKPOINTS + GRAPHS + NOTEBOOK])
def test_both_halves_of_a_workload_do_its_work(workload: Workload) -> None:
    figures = measure(workload, rounds=0)

    assert figures.seconds == {half: [] for half in workload.halves}


def test_the_scripts_of_the_first_use_work() -> None:
    assert run_script(ONE_RUN) == run_script(ASYNCIO) == ""


def test_bytes_are_counted_exactly() -> None:
    assert bytes_per_superstep(2_000) == pytest.approx(bytes_per_superstep(2_000), rel=0.05)


def test_halves_run_in_turn_and_in_changing_order() -> None:
    ran: list[str] = []

    def half(name: str) -> Callable[[], None]:
        return lambda: ran.append(name)

    workload = Workload(
        name="w", what="", unit="s", per_call=1, bare=lambda _: half("bare"), agentbench=lambda _: half("ours")
    )
    figures = measure(workload, rounds=2)

    assert ran == ["bare", "ours", "ours", "bare", "bare", "ours"]
    assert len(figures.ratios) == 2


def test_a_half_that_computes_something_else_is_not_measured() -> None:
    async def wrong() -> None:
        outputs = [1]
        assert outputs == [2]

    workload = Workload(name="w", what="", unit="s", per_call=1, agentbench=awaited(lambda: wrong))

    with pytest.raises(AssertionError):
        measure(workload, rounds=1)


@pytest.mark.usefixtures("targets")
@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (row("by ratio", 99, 1.9, 2.0, 9.0), "goal"),
        (row("by ratio", 99, 2.1, 3.0, 3.0), "gate"),
        (row("by ratio", 1, 3.1, 3.1, 1.0), "MISSED"),
        (row("by figure", 20), "goal"),
        (row("by figure", 30), "gate"),
        (row("by figure", 31), "MISSED"),
        (row("without a target", 1e9), ""),
        (row("by figure", float("nan")), "MISSED"),
    ],
)
def test_the_median_ratio_or_the_figure_is_judged(measured: Row, verdict: str) -> None:
    assert measured.verdict == verdict


@pytest.mark.usefixtures("targets")
def test_a_row_tells_both_halves_the_ratio_and_what_is_demanded() -> None:
    head, *rows = gates.lines([row("by ratio", 4.2, 1.9, 2.0, 9.0), row("without a target", 7)])
    cells = [re.split(r"  +", line) for line in (head, *rows)]

    assert cells[0] == list(gates.HEAD)
    assert cells[1] == ["by ratio", "4.2 us", "1 us", "2.00", "1.90..9.00", "3x", "2x", "goal", "a made-up unit"]
    assert cells[2] == ["without a target", "7 us", "a made-up unit"]


@pytest.mark.usefixtures("targets")
@pytest.mark.parametrize(
    ("ratio", "arguments", "code"),
    [(9.0, [], 0), (9.0, ["--strict"], 1), (1.0, ["--strict"], 0)],
)
def test_only_a_strict_call_fails_for_a_missed_gate(
    ratio: float, arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gates, "measures", lambda: {"by ratio": lambda _: row("by ratio", 1, ratio)})

    assert gates.main(arguments) == code
    assert ("Gate missed: by ratio." in capsys.readouterr().out) == (ratio > 3)


def test_every_target_belongs_to_something_measured() -> None:
    assert set(gates.TARGETS) <= set(gates.measures())
