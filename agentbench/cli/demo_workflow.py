"""The workflow of the first notebook, for `agentbench demo`: how did cars change between 1970 and 1982?

`notebooks/01_first_workflow.ipynb` builds the same workflow step by step and explains it. The data set is a file in the
package vega_datasets. It describes 406 cars; 14 of them have missing values.
"""

from dataclasses import dataclass, field
from typing import Never

import pandas as pd
from vega_datasets import local_data

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.approval import Approval
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.graph.edges import Case, Default
from agentbench.workflows.run.workflow import Workflow

# ---- the messages ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Years:
    """Input: which model years to look at."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Cars:
    """A table of cars, one per row, and notes on what was done to it."""

    notes: tuple[str, ...]
    table: pd.DataFrame = field(repr=False)


@dataclass(frozen=True)
class Trend:
    """The median of one measure in each model year."""

    name: str
    unit: str
    by_year: dict[int, float]


@dataclass(frozen=True, eq=False)
class Report:
    """Output: a few lines of text and the table behind them."""

    title: str
    text: str = field(repr=False)
    table: pd.DataFrame = field(repr=False)


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
    table = pd.read_json(local_data.cars.filepath)
    table["Year"] = table["Year"].str[:4].astype(int)
    table = table[table["Year"].between(years.first, years.last)]
    if table.empty:
        msg = f"There are no cars of {years.first} to {years.last}; the data has 1970 to 1982."
        raise ValueError(msg)
    await ctx.send_message(Cars((f"{len(table)} cars of {years.first} to {years.last}",), table))


@executor
async def repair(cars: Cars, ctx: WorkflowContext[Cars]) -> None:
    """Leave out cars of unknown consumption; fill in an unknown power with that of similar engines."""
    table = cars.table.dropna(subset=["Miles_per_Gallon"])
    left_out = len(cars.table) - len(table)
    filled_in = int(table["Horsepower"].isna().sum())
    similar = table.groupby("Cylinders")["Horsepower"].transform("median")
    table = table.assign(Horsepower=table["Horsepower"].fillna(similar))
    notes = (f"{left_out} left out: consumption unknown", f"{filled_in} filled in: power unknown")
    await ctx.send_message(Cars(cars.notes + notes, table))


@executor
async def convert(cars: Cars, ctx: WorkflowContext[Cars]) -> None:
    """Convert gallons, pounds and horsepower to litres, kilograms and kilowatts."""
    table = cars.table.assign(
        consumption=235.215 / cars.table["Miles_per_Gallon"],
        weight=0.45359 * cars.table["Weight_in_lbs"],
        power=0.7457 * cars.table["Horsepower"],
    )
    await ctx.send_message(Cars(cars.notes, table))


class Measure(Executor):
    """How one measure changed over the years; its id is the name of the column."""

    def __init__(self, name: str, unit: str) -> None:
        super().__init__(id=name)
        self.unit = unit

    @handler
    async def measure(self, cars: Cars, ctx: WorkflowContext[Trend]) -> None:
        """Take the median of each year."""
        medians = cars.table.groupby("Year")[self.id].median().round(1)
        await ctx.send_message(Trend(self.id, self.unit, dict(zip(medians.index, medians, strict=True))))


@executor
async def report(trends: list[Trend], ctx: WorkflowContext[Report]) -> None:
    """Join the measures in one table and describe it in words."""
    table = pd.DataFrame({f"{trend.name} ({trend.unit})": trend.by_year for trend in trends})
    first, last = min(table.index), max(table.index)
    title = f"The median car of {first} and that of {last}"
    lines = []
    for trend in trends:
        before, after = trend.by_year[first], trend.by_year[last]
        lines.append(f"{trend.name}: {before} and {after} {trend.unit} ({after / before - 1:+.0%})")
    await ctx.send_message(Report(title, "\n".join(lines), table))


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
    return bool(cars.table.isna().any(axis=None))


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
