import contextlib
import json
import statistics
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from agentbench import Approval, Workflow, WorkflowRunState
from agentbench._clock import runtime_defaults, set_runtime_defaults
from agentbench.cli.demo_workflow import DATA, Report, Years, build_workflow
from tests.parts.errors import raises

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
ALL, WITHOUT_GAPS = Years(1970, 1982), Years(1976, 1979)


async def executors_run(workflow: Workflow, years: Years) -> list[list[str]]:
    """Which executors ran in each superstep."""
    run, ran = workflow.start(years), []
    while not run.pending_requests:
        ran.append((await run.step()).invoked)
    await run.cancel()
    return ran


async def published(workflow: Workflow, years: Years) -> Report:
    asked = await workflow.run(years)
    (request,) = asked.get_request_info_events()
    answered = await workflow.run(responses={request.request_id: Approval(approved=True)})
    (report,) = answered.outputs
    assert isinstance(report, Report)
    return report


def cars() -> list[dict[str, Any]]:
    """The data as they stand in the file."""
    rows: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))
    return rows


async def test_a_table_with_gaps_takes_the_way_of_repair():
    assert await executors_run(build_workflow(), ALL) == [
        ["load"],
        ["repair"],
        ["convert"],
        ["consumption", "weight", "power"],
        ["report"],
        ["publish"],
    ]


async def test_the_notes_count_what_was_left_out_and_filled_in():
    run = build_workflow().start(ALL)
    notes = {}
    while not run.pending_requests:
        for executor_id, message in (await run.step()).delivered:
            notes[executor_id] = getattr(message, "notes", None)
    rows = cars()
    unknown_consumption = [row for row in rows if row["mpg"] is None]
    unknown_power = [row for row in rows if row["horsepower"] is None and row not in unknown_consumption]
    assert notes["repair"] == (f"{len(rows)} cars of 1970 to 1982",)
    assert notes["convert"] == (
        *notes["repair"],
        f"{len(unknown_consumption)} left out: consumption unknown",
        f"{len(unknown_power)} filled in: power unknown",
    )


async def test_the_trends_hold_the_median_of_every_year_in_metric_units():
    trends = (await published(build_workflow(), ALL)).trends
    known = [row for row in cars() if row["mpg"] is not None]
    years = sorted({row["year"] for row in known})
    assert [list(trend.by_year) for trend in trends] == [years] * 3
    assert [(trend.name, trend.unit) for trend in trends] == [
        ("consumption", "l/100 km"),
        ("weight", "kg"),
        ("power", "kW"),
    ]
    by_name = {trend.name: trend.by_year for trend in trends}
    for year in years:
        of_year = [row for row in known if row["year"] == year]
        consumption = statistics.median(235.215 / row["mpg"] for row in of_year)
        weight = statistics.median(0.45359 * row["pounds"] for row in of_year)
        assert by_name["consumption"][year] == pytest.approx(consumption, abs=0.05)
        assert by_name["weight"][year] == pytest.approx(weight, abs=0.05)
    assert all(by_name["power"].values())


async def test_a_rejected_report_does_not_come_out():
    workflow = build_workflow()
    (request,) = (await workflow.run(ALL)).get_request_info_events()
    result = await workflow.run(responses={request.request_id: Approval(approved=False, reason="too short")})
    assert (result.final_state, result.outputs) == (WorkflowRunState.IDLE, [])


async def test_years_without_cars_are_an_error_that_says_which_years_there_are():
    with raises(ValueError, "1990", "1999", "1970", "1982"):
        await build_workflow().run(Years(1990, 1999))


# --------------------------------------------------------------------------------------- the notebook that explains it


@pytest.fixture(scope="module")
def taught() -> dict[str, Any]:
    """The variables of the first notebook once its workflow is built."""
    with contextlib.chdir(NOTEBOOKS):  # its data file lies beside it
        return variables_of_the_notebook()


def variables_of_the_notebook() -> dict[str, Any]:
    cells = json.loads((NOTEBOOKS / "01_first_workflow.ipynb").read_text(encoding="utf-8"))["cells"]
    variables: dict[str, Any] = {"__name__": "__main__"}
    before = runtime_defaults()
    for cell in cells:
        lines = [line for line in cell["source"] if not line.startswith("%")]
        runs_something = any("= await " in line or ".stepper(" in line or "_panel." in line for line in lines)
        if cell["cell_type"] == "code" and "workflow" not in variables and not runs_something:
            exec("".join(lines), variables)
    set_runtime_defaults(clock=before.clock, ids=before.ids, observe=before.observe)
    return variables


def test_the_notebook_builds_the_same_graph(taught: dict[str, Any]):
    theirs, ours = taught["workflow"].graph_signature, build_workflow().graph_signature
    assert theirs["edge_groups"] == ours["edge_groups"]
    assert theirs["start_executor"] == ours["start_executor"]
    # Classes of a notebook are those of its main module.
    names = [{key: name.rpartition(".")[2] for key, name in each["executors"].items()} for each in (theirs, ours)]
    assert names[0] == names[1]


def test_the_demo_reads_the_data_of_the_notebook():
    assert DATA.read_bytes() == (NOTEBOOKS / "data" / "cars.json").read_bytes()


def test_the_picture_beside_the_notebook_is_that_of_the_workflow():
    pytest.importorskip("graphviz")
    from agentbench.notebook.graph.view import draw

    stored = ElementTree.parse(NOTEBOOKS / "car_report.svg").getroot()
    now = ElementTree.fromstring(draw(build_workflow()).svg)
    # Where things lie is the renderer's business; names, edges and words are not.
    assert words(stored) == words(now), "Run: draw(build_workflow()).save('notebooks/car_report.svg')"


def words(picture: ElementTree.Element) -> list[str]:
    return sorted(filter(None, (text.strip() for text in picture.itertext())))
