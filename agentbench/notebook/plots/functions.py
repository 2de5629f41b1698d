"""Pictures of runs: standalone SVG with the data behind it. Nothing here needs a plotting package."""

from collections.abc import Callable
from typing import Any, Literal, get_args

from agentbench.notebook.frames.checkpoints import forks, lineage_frame
from agentbench.notebook.frames.events import timeline_frame
from agentbench.notebook.frames.usage import Prices, known_prices, usage_frame
from agentbench.notebook.history.requests import calls_with_waits
from agentbench.notebook.history.sources import Chosen, read_infos, read_runs
from agentbench.notebook.history.usage import calls_of, group_usages, sum_usages
from agentbench.notebook.plots.lineage import lineage_svg
from agentbench.notebook.plots.lineage_rows import lineage_rows, lineage_text, with_origins
from agentbench.notebook.plots.plot import Plot
from agentbench.notebook.plots.timeline import timeline_svg
from agentbench.notebook.plots.timeline_layout import By
from agentbench.notebook.plots.timeline_text import timeline_text, timeline_title
from agentbench.notebook.plots.usage import Facts, columns_svg, rows_svg
from agentbench.notebook.plots.usage_text import usage_text, usage_title
from agentbench.notebook.runtime import settings
from agentbench.notebook.text.phrases import count_text

__all__ = ["lineage", "timeline", "usage"]

UsedBy = Literal["superstep", "executor", "model"]


def timeline(run: Any, *, by: By = "time", run_id: str | None = None, width: float = 640) -> Plot:
    """Draw what each executor of a run did, and when: a lane per executor, a band per superstep.

    Failures are hatched, requests to people marked with a pause sign. Pauses much longer than the work are cut out of
    the axis. Beyond 2,000 bars supersteps are folded into columns. Its `panel()` switches between both kinds of axis.

    Args:
        run: A run, a result, or a list of events.
        by: `"time"`: as long as things took; `"step"`: every superstep equally wide. Runs that were not observed have
            no times and are drawn in equal steps.
        run_id: Only this one of several runs.
        width: Of the picture, in points; text stays readable at 600 pixels.

    Raises:
        ValueError: If `by` is neither.

    Example:
        timeline(run, by="step").save("timeline.svg")
    """
    _require(by, By)
    runs = read_runs(run, Chosen(run_id=run_id), events_wanted=True)
    bars = [bar for each in runs for bar in calls_with_waits(each)]
    times = not settings.current().deterministic
    title = timeline_title(bars, [each.run_id for each in runs if each.run_id is not None], times=times)

    def words() -> str:
        return timeline_text(bars, title, times=times)

    def draw(kind: By) -> Callable[[], str]:
        return lambda: timeline_svg(bars, title=title, description=words(), by=kind, width=width, times=times)

    forms = {"real time": draw("time"), "equal steps": draw("step")}
    if by == "step":
        forms = dict(reversed(forms.items()))
    return Plot(title, svg=draw(by), text=words, frame=lambda: timeline_frame(run, run_id=run_id), forms=forms)


def lineage(storage: Any, *, current: Any = None, workflow_name: str | None = None, width: float | None = None) -> Plot:
    """Draw which checkpoint followed which: time flows down, forks are branches to the right.

    Of a run that went on from a checkpoint of another one, that checkpoint is drawn too. In its `panel()` a checkpoint
    can be chosen by mouse or keyboard: `panel.chosen` is its id, `panel.on_select(fn)` calls a function with it.

    Args:
        storage: A storage, a run, a result, or a list of those.
        current: The checkpoint to ring: its id or info.
        workflow_name: Only this chain.
        width: Of the picture, in points; by default as wide as its words.

    Example:
        panel = lineage(storage).panel()
        panel.on_select(print)
    """
    read = read_infos(storage, Chosen(workflow_name))
    ringed = getattr(current, "checkpoint_id", current)
    infos = with_origins(read.rows, read.by_id)
    rows = lineage_rows(infos, current=ringed, branching=forks(list(read.by_id.values())))
    branches = sum(row.is_fork for row in rows)
    title = f"{count_text(len(infos), 'checkpoint')}, {count_text(branches, 'fork')}"
    return Plot(
        title,
        svg=lambda: lineage_svg(rows, title=title, width=width),
        keys=[row.info.checkpoint_id for row in rows],
        text=lambda: lineage_text(rows, title=title),
        frame=lambda: lineage_frame(storage, workflow_name=workflow_name),
    )


def usage(
    run: Any,
    *,
    by: UsedBy = "superstep",
    prices: Prices | None = None,
    run_id: str | None = None,
    width: float = 640,
) -> Plot:
    """Draw what models used: tokens in and out, and what it cost, where all prices are known.

    Along the supersteps, neighbours share a column where there are many. By executor or by model, each has a bar with
    its numbers beside it, in the order in which they first called.

    Args:
        run: A run, a result, or a list of events.
        by: What each bar is for: `"superstep"`, `"executor"` or `"model"`.
        prices: What a million tokens cost, by model name; see `usage_frame`.
        run_id: Only this one of several runs.
        width: Of the picture, in points.

    Raises:
        ValueError: `by` is none of the three, or `prices` has another form.

    Example:
        usage(run, by="model", prices={"gpt-4o": (2.5, 10)})
    """
    _require(by, UsedBy)
    known = known_prices(prices)
    runs = read_runs(run, Chosen(run_id=run_id), events_wanted=True)
    calls = [call for each in runs for call in calls_of(each, known)]
    total = sum_usages(call.used for call in calls)
    title = usage_title(total, [each.run_id for each in runs if each.run_id is not None])
    steps = dict(sorted(group_usages(calls, (call.superstep for call in calls)).items()))
    named = group_usages(calls, ((call.executor if by == "executor" else call.model) or "?" for call in calls))

    def words() -> str:
        return usage_text(steps if by == "superstep" else named, total, title, by)

    def draw() -> str:
        facts = Facts(title, words(), total, width)
        return columns_svg(steps, facts) if by == "superstep" else rows_svg(named, facts, by)

    return Plot(title, svg=draw, text=words, frame=lambda: usage_frame(run, prices=prices, run_id=run_id))


def _require(by: str, kinds: Any) -> None:
    expected = get_args(kinds)
    if by not in expected:
        msg = f"by is {by!r}; expected {', '.join(map(repr, expected[:-1]))} or {expected[-1]!r}."
        raise ValueError(msg)
