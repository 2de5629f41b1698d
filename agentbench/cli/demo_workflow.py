"""The workflow of the first notebook, for `agentbench demo`: how did cars change between 1970 and 1982?

`notebooks/01_first_workflow.ipynb` builds the same workflow step by step and explains it. The data is in `cars.json`, a
copy of `notebooks/data/cars.json`. It describes 406 cars; 14 of them have missing values.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Never

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.approval import Approval
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.graph.edges import Case, Default
from agentbench.workflows.run.workflow import Workflow

DATA = Path(__file__).with_name("cars.json")
Row = dict[str, Any]

# ---- the messages ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Years:
    """Input: which model years to look at."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Cars:
    """Cars, and notes on what was done to them."""

    notes: tuple[str, ...]
    rows: list[Row] = field(repr=False)


@dataclass(frozen=True)
class Trend:
    """The median of one measure in each model year."""

    name: str
    unit: str
    by_year: dict[int, float]


@dataclass(frozen=True, eq=False)
class Report:
    """Output: a few lines of text and the trends behind them."""

    title: str
    text: str = field(repr=False)
    trends: list[Trend] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Question:
    """A question to a person, with what they should know before they answer."""

    question: str
    details: str
    report: Report = field(repr=False)


# ---- the executors ---------------------------------------------------------------------------------------------------


@executor
async def load(years: Years, ctx: WorkflowContext[Cars]) -> None:
    """Read the cars of some model years."""
    cars: list[Row] = json.loads(DATA.read_text(encoding="utf-8"))
    rows = [car for car in cars if years.first <= car["year"] <= years.last]
    if not rows:
        msg = f"There are no cars of {years.first} to {years.last}; the data has 1970 to 1982."
        raise ValueError(msg)
    await ctx.send_message(Cars((f"{len(rows)} cars of {years.first} to {years.last}",), rows))


def usual_power(cylinders: int, cars: list[Row]) -> float:
    """Return the median power of the engines with so many cylinders."""
    return float(median(car["horsepower"] for car in cars if car["cylinders"] == cylinders and car["horsepower"]))


@executor
async def repair(cars: Cars, ctx: WorkflowContext[Cars]) -> None:
    """Leave out cars of unknown consumption; fill in an unknown power with that of similar engines."""
    known = [car for car in cars.rows if car["mpg"]]
    rows = [car | {"horsepower": car["horsepower"] or usual_power(car["cylinders"], known)} for car in known]
    left_out = len(cars.rows) - len(known)
    filled_in = sum(car["horsepower"] is None for car in known)
    notes = (f"{left_out} left out: consumption unknown", f"{filled_in} filled in: power unknown")
    await ctx.send_message(Cars(cars.notes + notes, rows))


@executor
async def convert(cars: Cars, ctx: WorkflowContext[Cars]) -> None:
    """Convert gallons, pounds and horsepower to litres, kilograms and kilowatts."""
    rows = [
        {
            "year": car["year"],
            "consumption": 235.215 / car["mpg"],
            "weight": 0.45359 * car["pounds"],
            "power": 0.7457 * car["horsepower"],
        }
        for car in cars.rows
    ]
    await ctx.send_message(Cars(cars.notes, rows))


class Measure(Executor):
    """How one measure changed over the years; its id is the name of the measure."""

    def __init__(self, name: str, unit: str) -> None:
        super().__init__(id=name)
        self.unit = unit

    @handler
    async def measure(self, cars: Cars, ctx: WorkflowContext[Trend]) -> None:
        """Take the median of each year."""
        by_year: dict[int, list[float]] = {}
        for car in cars.rows:
            by_year.setdefault(car["year"], []).append(car[self.id])
        medians = {year: round(median(values), 1) for year, values in by_year.items()}
        await ctx.send_message(Trend(self.id, self.unit, medians))


@executor
async def report(trends: list[Trend], ctx: WorkflowContext[Report]) -> None:
    """Join the measures and describe them in words."""
    first, last = min(trends[0].by_year), max(trends[0].by_year)
    title = f"The median car of {first} and that of {last}"
    lines = []
    for trend in trends:
        before, after = trend.by_year[first], trend.by_year[last]
        lines.append(f"{trend.name}: {before} and {after} {trend.unit} ({after / before - 1:+.0%})")
    await ctx.send_message(Report(title, "\n".join(lines), trends))


class Publish(Executor):
    """Asks a person, and publishes the report if they agree."""

    @handler
    async def ask(self, draft: Report, ctx: WorkflowContext) -> None:
        """Ask the question; the answer comes later."""
        await ctx.request_info(Question("Publish this report?", f"{draft.title}\n{draft.text}", draft), Approval)

    @response_handler
    async def decide(self, question: Question, answer: Approval, ctx: WorkflowContext[Never, Report]) -> None:
        """Act on the answer."""
        if answer.approved:
            await ctx.yield_output(question.report)


# ---- the graph -------------------------------------------------------------------------------------------------------


def has_gaps(cars: Cars) -> bool:
    """Whether a value is missing anywhere."""
    return any(None in car.values() for car in cars.rows)


def build_workflow() -> Workflow:
    """Connect the executors. Input: `Years`; output: a `Report`, if a person agrees."""
    measures = [Measure("consumption", "l/100 km"), Measure("weight", "kg"), Measure("power", "kW")]
    return (
        WorkflowBuilder(name="car_report")
        .switch(load, [Case(has_gaps, repair), Default(convert)])
        .connect(repair, convert)
        .fan_out(convert, measures)
        .fan_in(measures, report)
        .connect(report, Publish(id="publish"))
        .build()
    )
