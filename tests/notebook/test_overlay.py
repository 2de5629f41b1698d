import pytest

from agentbench import WorkflowBuilder, WorkflowErrorDetails, WorkflowEvent
from agentbench.notebook.history.overlay import read_states
from tests.notebook import graphs


async def test_an_executor_that_asks_waits_until_it_works_again():
    workflow = graphs.research()
    run = workflow.start("x")
    await run.result()
    assert read_states(run)["review"] == "waiting"
    assert read_states(run.events)["review"] == "waiting"
    request = run.pending_requests[0]
    await run.send_response(request.request_id, True)
    await run.result()
    assert read_states(run) == dict.fromkeys(["plan", "search", "draft", "review", "publish"], "done")
    assert read_states(run.events)["review"] == "done"


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_run_that_can_go_on_marks_who_is_next_and_the_way_there():
    workflow = graphs.chain(["a", "b", "c"])
    run = workflow.start("x")
    assert read_states(run) == {"a": "queued"}
    await run.step()
    assert read_states(run) == {"a": "done", "b": "queued", ("a", "b"): "queued"}
    await run.result()
    assert read_states(run) == {"a": "done", "b": "done", "c": "done"}


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_what_waits_in_an_instance_is_no_news_of_a_run_before():
    workflow = graphs.chain(["a", "b", "c"])
    before = workflow.start("x")
    await before.result()
    after = workflow.start("y")
    await after.step()
    assert read_states(before) == {"a": "done", "b": "done", "c": "done"}
    assert read_states(before.events) == read_states(before)


async def test_no_condition_is_evaluated_for_a_picture():
    asked: list[str] = []

    def any_message(message: str) -> bool:
        asked.append(message)
        return True

    first, second = graphs.Step("a"), graphs.Yield("b")
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second, condition=any_message).build()
    run = workflow.start("x")
    await run.step()
    asked.clear()
    read_states(run)
    assert asked == []
    await run.plan()
    assert read_states(run)["b"] == "queued"


def test_what_is_at_work_runs_and_what_a_finished_run_broke_off_does_not():
    events = [WorkflowEvent.executor_invoked("a"), WorkflowEvent.executor_invoked("b")]
    events.append(WorkflowEvent.executor_failed("b", WorkflowErrorDetails("E", "m")))
    assert read_states(events) == {"a": "running", "b": "failed"}
    from agentbench.workflows.events.events import WorkflowRunState

    assert read_states([*events, WorkflowEvent.status(WorkflowRunState.FAILED)]) == {"b": "failed"}
