"""A run goes on in the same instance, in a new one, in another process, and from files that were moved."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench import InMemoryCheckpointStorage, RunOptions, Workflow, WorkflowCheckpoint, WorkflowRunState
from agentbench.checkpoints.access import list_infos, list_lineage
from agentbench.exceptions import WorkflowBusyError
from tests.parts.errors import raises
from tests.parts.executors import Pass, chain
from tests.workflows.lasting_flow import ANSWERS, OUTPUTS, Draft, Verdict, lasting_flow, open_place
from tests.workflows.test_resume import Ask

ROOT = Path(__file__).parents[2]
LASTING = ["file", "sqlite", "redis"]

Place = tuple[str, str]


def place_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "redis":
        pytest.importorskip("redis", reason="redis is not installed")
        url: str = request.getfixturevalue("redis_url")
        return url
    if kind == "sqlite":
        pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
        return str(folder / "checkpoints.db")
    return str(folder / "checkpoints")


@pytest.fixture(params=["memory", *LASTING])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A storage of each kind, empty."""
    opened = open_place(request.param, place_of(request.param, request, tmp_path))
    yield opened
    if hasattr(opened, "close"):
        opened.close()


@pytest.fixture(params=LASTING)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Kind and address of a storage that outlasts its process."""
    return request.param, place_of(request.param, request, tmp_path)


async def points_of(storage: Any) -> list[WorkflowCheckpoint]:
    found: list[WorkflowCheckpoint] = await storage.list_checkpoints(workflow_name="lasting")
    return found


async def finish(workflow: Workflow, checkpoint_id: str, storage: Any) -> list[Any]:
    """Resume, answer what is asked, and return all outputs."""
    result = await workflow.run(checkpoint_id=checkpoint_id, checkpoint_storage=storage)
    if result.get_request_info_events():
        result = await workflow.run(responses=ANSWERS, checkpoint_storage=storage)
    return result.outputs


# ---- instances -------------------------------------------------------------------------------------


async def test_every_checkpoint_leads_to_the_same_end_in_the_same_and_in_a_new_instance(storage: Any):
    workflow = lasting_flow(storage)
    await workflow.run("x")
    await workflow.run(responses=ANSWERS)
    points = await points_of(storage)
    assert [p.metadata["source"] for p in points] == ["input", "step", "step", "step", "answer", "step"]
    assert ["_fan_in_buffers" in p.state for p in points] == [False, False, True, False, False, False]
    for point in points[:-1]:
        for instance in (workflow, lasting_flow()):
            assert await finish(instance, point.checkpoint_id, storage) == OUTPUTS, point.iteration_count


async def test_three_resumes_from_one_checkpoint_are_equal_event_by_event(storage: Any):
    await lasting_flow(storage).run("x")
    start = (await points_of(storage))[0]
    results = [
        await lasting_flow().run(checkpoint_id=start.checkpoint_id, checkpoint_storage=storage) for _ in range(3)
    ]
    # Only the ids and times of the new checkpoints may differ.
    told = [[e.to_json_dict() for e in result if e.type != "superstep_completed"] for result in results]
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 13


async def test_state_executor_fields_and_requests_come_back_with_their_types(storage: Any):
    await lasting_flow(storage).run("x")
    latest = (await points_of(storage))[-1]
    workflow = lasting_flow()
    result = await workflow.run(checkpoint_id=latest.checkpoint_id, checkpoint_storage=storage)
    assert workflow.executors["s"].seen == ["x"]  # type: ignore[attr-defined]
    assert workflow.state.get("path") == (("s", 1), ("q", 1), ("w", 1), ("v", 1))
    verdict, word = result.get_request_info_events()
    assert verdict.data == Draft(["xsq", "xswv"], {"lengths": {3, 4}})
    assert (verdict.request_type, verdict.response_type, word.response_type) == (Draft, Verdict, str)
    with raises(ValueError, "expected", "Verdict"):
        await workflow.run(responses={"verdict": 5})


async def test_answers_may_come_with_the_resume_as_objects_or_as_plain_values(storage: Any):
    await lasting_flow(storage).run("x")
    latest = (await points_of(storage))[-1]
    plain = {"verdict": {"good": True}, "word": "please"}
    for answers in (ANSWERS, plain):
        again = RunOptions(check_head=False)
        result = await lasting_flow().run(
            checkpoint_id=latest.checkpoint_id, checkpoint_storage=storage, responses=answers, options=again
        )
        assert result.outputs == OUTPUTS
        assert result.get_request_info_events() == []


async def test_a_request_is_answered_once(storage: Any):
    """Two processes that answer at once, and one that comes late: the first goes on, the others are told."""
    await lasting_flow(storage).run("x")
    latest = await storage.get_latest(workflow_name="lasting")
    await lasting_flow(storage).run("another")  # of the same chain, which has nothing to do with it

    def answer(workflow: Workflow) -> Any:
        return workflow.run(checkpoint_id=latest.checkpoint_id, responses=ANSWERS)

    if type(storage) is InMemoryCheckpointStorage:  # no other process has it: who answers again means it
        assert [(await answer(lasting_flow(storage))).outputs for _ in range(2)] == [OUTPUTS, OUTPUTS]
        return
    found = await asyncio.gather(*(answer(lasting_flow(storage)) for _ in range(3)), return_exceptions=True)
    assert [each.outputs for each in found if not isinstance(each, BaseException)] == [OUTPUTS], found
    with raises(WorkflowBusyError, latest.checkpoint_id):
        await answer(lasting_flow(storage))
    answers = [info for info in await storage.list_infos(workflow_name="lasting") if info.source == "answer"]
    assert [info.previous_checkpoint_id for info in answers] == [latest.checkpoint_id]


async def test_some_answers_now_and_the_others_after_another_resume(storage: Any):
    await lasting_flow(storage).run("x")
    latest = await storage.get_latest(workflow_name="lasting")
    part = await lasting_flow(storage).run(checkpoint_id=latest.checkpoint_id, responses={"word": "please"})
    assert part.get_final_state() is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    latest = await storage.get_latest(workflow_name="lasting")
    rest = await lasting_flow(storage).run(
        checkpoint_id=latest.checkpoint_id, responses={"verdict": Verdict(good=True)}
    )
    assert [*rest.outputs, *part.outputs] == OUTPUTS


async def test_numbers_and_links_go_on_across_resumes(storage: Any):
    await lasting_flow(storage).run("x")
    middle = (await points_of(storage))[1]
    resumed = lasting_flow(storage)
    await resumed.run(checkpoint_id=middle.checkpoint_id)
    await resumed.run(responses=ANSWERS)
    latest = await storage.get_latest(workflow_name="lasting")
    path = await list_lineage(storage, latest.checkpoint_id)
    assert [info.iteration for info in path] == [0, 1, 2, 3, 3, 4]
    assert [info.seq for info in path] == [1, 2, 5, 6, 7, 8]
    assert [info.seq for info in await list_infos(storage, workflow_name="lasting")] == list(range(1, 9))


async def test_resuming_the_end_runs_one_empty_superstep(storage: Any):
    workflow = lasting_flow(storage)
    await workflow.run("x")
    await workflow.run(responses=ANSWERS)
    latest = await storage.get_latest(workflow_name="lasting")
    result = await lasting_flow(storage).run(checkpoint_id=latest.checkpoint_id)
    assert [event.type for event in result] == ["superstep_started", "superstep_completed"]
    assert result.get_final_state() is WorkflowRunState.IDLE
    after = await storage.get_latest(workflow_name="lasting")
    assert after.previous_checkpoint_id == latest.checkpoint_id
    assert after.iteration_count == latest.iteration_count + 1


# ---- links that could be lost ----------------------------------------------------------------------


async def test_a_handle_that_answers_an_earlier_run_is_linked_to_it():
    storage = InMemoryCheckpointStorage()
    workflow = chain(Ask("ask"), name="w", checkpoint_storage=storage)
    await workflow.run("x")
    before = await storage.get_latest(workflow_name="w")
    assert before is not None
    run = workflow.start(responses={"R0": "word"}, keep_state=True)
    await run.result()
    assert run.checkpoints[0].previous_checkpoint_id == before.checkpoint_id


async def test_a_restore_that_was_not_driven_on_is_still_what_the_next_round_follows():
    storage = InMemoryCheckpointStorage()
    workflow = chain(Pass("a"), Ask("ask"), name="w", checkpoint_storage=storage)
    run = workflow.start("x", keep_state=True)
    await run.result()
    await run.send_response("R0", "word")
    await run.result()
    asked = run.checkpoints[1]
    await run.restore_checkpoint(asked)
    await run.cancel()
    await workflow.run(responses={"R0": "other"})
    points = await storage.list_checkpoints(workflow_name="w")
    assert points[-2].previous_checkpoint_id == asked.checkpoint_id


# ---- other processes -------------------------------------------------------------------------------


def in_another_process(place: Place, **wanted: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", "from tests.workflows.lasting_flow import program; program()", *place],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def test_a_request_of_one_process_is_answered_in_another(place: Place):
    asked = in_another_process(place, message="x", process="one")
    assert asked["asked"] == ["verdict", "word"]
    assert asked["outputs"] == []
    answered = in_another_process(place, checkpoint_id=None, answer=True, process="two")
    assert answered == {"outputs": OUTPUTS, "asked": [], "state": "IDLE", "superstep": 4}
    here = open_place(*place)
    latest = await here.get_latest(workflow_name="lasting")
    path = await list_lineage(here, latest.checkpoint_id)
    assert [info.metadata["process"] for info in path] == ["one"] * 4 + ["two"] * 2
    assert [(info.seq, info.iteration) for info in path] == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4)]
    assert latest.state["draft"] == Draft(["xsq", "xswv"], {"lengths": {3, 4}})
    here.close()


async def test_a_fan_in_that_waits_is_filled_in_another_process(place: Place):
    here = open_place(*place)
    await lasting_flow(here).run("x")
    waiting = (await points_of(here))[2]
    there = in_another_process(place, checkpoint_id=waiting.checkpoint_id)
    assert (there["asked"], there["superstep"]) == (["verdict", "word"], 3)
    latest = await here.get_latest(workflow_name="lasting")
    assert latest.pending_request_info_events["verdict"].data.texts == ["xsq", "xswv"]
    assert [info.seq for info in await list_infos(here, workflow_name="lasting")] == [1, 2, 3, 4, 5]
    here.close()


SCRIPT = """
import asyncio, sys
from dataclasses import dataclass
from agentbench import Executor, FileCheckpointStorage, WorkflowBuilder, WorkflowCheckpointException
from agentbench import WorkflowContext, handler, register_state_type

{decorator}
@dataclass
class Note:
    number: int

class Count(Executor):
    {key}

    @handler
    async def on_note(self, note: Note, ctx: WorkflowContext[Note, int]) -> None:
        await ctx.send_message(Note(note.number + 1))
        await ctx.yield_output(note.number)

async def main(folder):
    storage = FileCheckpointStorage(folder)
    one, two = Count("one"), Count("two")
    workflow = WorkflowBuilder(start_executor=one, name="w", checkpoint_storage=storage).add_edge(one, two).build()
    ids = await storage.list_checkpoint_ids(workflow_name="w")
    try:
        print((await (workflow.run(checkpoint_id=ids[0]) if ids else workflow.run(Note(1)))).outputs)
    except WorkflowCheckpointException as error:
        print(type(error).__name__, error)
    storage.close()

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("decorator", "key", "told"),
    [
        ('@register_state_type(identifier="Note")', 'signature_key = "Count"', "[2]"),
        (
            '@register_state_type(identifier="Note")',
            "",
            "GraphMismatchError Checkpoint {id} was made by another graph than that of workflow 'w': class Count of "
            "executor 'one' moved from __main__ to counting (signature_key = '__main__.Count' in the class ",
        ),
        ("", 'signature_key = "Count"', "WorkflowCheckpointException Checkpoint {id} cannot be read"),
    ],
)
def test_what_a_script_saved_is_loaded_by_a_program_that_imports_the_script(
    decorator: str, key: str, told: str, tmp_path: Path
):
    script, folder = tmp_path / "counting.py", tmp_path / "checkpoints"
    script.write_text(SCRIPT.format(decorator=decorator, key=key or "pass"))
    importing = f"import asyncio, sys; sys.path.insert(0, {str(tmp_path)!r}); import counting; "
    importing += f"asyncio.run(counting.main({str(folder)!r}))"
    said = [
        subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, env=_with_this_package(), check=True
        ).stdout.strip()
        for arguments in ([str(script), str(folder)], ["-c", importing])
    ]
    assert said[0] == "[1, 2]"
    first = said[1].partition("Checkpoint ")[2].split(" ")[0]
    assert said[1].startswith(told.format(id=first))


def _with_this_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


# ---- cancelled at any moment -------------------------------------------------------------------------


async def test_a_run_that_is_cancelled_at_any_moment_leaves_a_chain_that_leads_to_the_same_end(storage: Any):
    for ticks in range(0, 60, 4):
        task = asyncio.ensure_future(lasting_flow(storage).run("x"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        latest = await storage.get_latest(workflow_name="lasting")
        if latest is None:
            continue
        path = await list_lineage(storage, latest.checkpoint_id)
        assert [info.iteration for info in path] == list(range(len(path)))
        assert await finish(lasting_flow(), latest.checkpoint_id, storage) == OUTPUTS, ticks
        assert len(await points_of(storage)) > len(path)
        for checkpoint_id in await storage.list_checkpoint_ids(workflow_name="lasting"):
            assert await storage.delete(checkpoint_id)
