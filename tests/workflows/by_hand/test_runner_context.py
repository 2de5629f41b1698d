from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.workflows.by_hand.runner import Runner
from agentbench.workflows.by_hand.runner_context import InProcRunnerContext
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.executors.state import State
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup
from tests.parts.errors import raises


@executor
async def asker(text: str) -> None: ...


def question(request_id="R", response_type=str):
    return WorkflowEvent.request_info(request_id, "asker", "question", response_type)


async def test_events_are_drained_once_in_their_order():
    context = InProcRunnerContext()
    first, second = WorkflowEvent.warning("1"), WorkflowEvent.warning("2")
    assert not await context.has_events()
    await context.add_event(first)
    await context.add_event(second)
    assert await context.has_events()
    assert await context.drain_events() == [first, second]
    assert not await context.has_events()
    assert await context.drain_events() == []


# ---- messages ------------------------------------------------------------------------------------


# ---- events --------------------------------------------------------------------------------------


# ---- requests ------------------------------------------------------------------------------------


async def test_only_requests_can_be_registered():
    with raises(ValueError, "'request_info'", "'warning'"):
        await InProcRunnerContext().add_request_info_event(WorkflowEvent.warning("w"))


async def test_an_answer_to_an_unknown_request_or_of_the_wrong_type_is_refused():
    context = InProcRunnerContext()
    await context.add_request_info_event(question())
    with raises(ValueError, "'other'"):
        await context.send_request_info_response("other", "yes")
    with raises(TypeError, "'R'"):
        await context.send_request_info_response("R", 5)
    assert list(await context.get_pending_request_info_events()) == ["R"]
    assert not await context.has_messages()


# ---- yields --------------------------------------------------------------------------------------


# ---- checkpoints ---------------------------------------------------------------------------------


async def test_a_checkpoint_holds_what_is_in_flight():
    context, state = InProcRunnerContext(InMemoryCheckpointStorage()), State()
    state.set("committed", 1)
    state.commit()
    state.set("pending", 2)
    await context.send_message(WorkflowMessage("hello", "a"))
    await context.add_request_info_event(question())
    checkpoint_id = await context.create_checkpoint("flow", "hash", state, "before", 3, {"user": "Ann"})
    saved = await context.load_checkpoint(checkpoint_id)
    assert (saved.workflow_name, saved.graph_signature_hash) == ("flow", "hash")
    assert (saved.previous_checkpoint_id, saved.iteration_count) == ("before", 3)
    assert (saved.state, saved.metadata["user"]) == ({"committed": 1}, "Ann")
    other = InProcRunnerContext()
    await other.send_message(WorkflowMessage("old", "b"))
    await other.apply_checkpoint(saved)
    assert await other.drain_messages() == {"a": [WorkflowMessage("hello", "a")]}
    assert list(await other.get_pending_request_info_events()) == ["R"]


async def test_a_runner_goes_on_from_a_checkpoint_of_another_context():
    storage = InMemoryCheckpointStorage()
    context = InProcRunnerContext(storage)
    context.set_buffers({"fan_in:a,b->asker": {"a": [WorkflowMessage("one", "a")]}})
    await context.send_message(WorkflowMessage("two", "b"))
    checkpoint_id = await context.create_checkpoint("flow", "hash", State(), None, 4)
    other = InProcRunnerContext()
    runner = Runner([FanInEdgeGroup(["a", "b"], "asker")], {"asker": asker}, State(), other, "flow", "hash")
    with raises(WorkflowCheckpointException, "storage"):
        await runner.restore_from_checkpoint(checkpoint_id)
    await runner.restore_from_checkpoint(checkpoint_id, storage)
    assert (other.get_buffers(), runner.iteration) == (context.get_buffers(), 4)
    runner.reset_iteration_count()
    assert runner.iteration == 0


async def test_without_a_storage_nothing_can_be_saved_or_loaded():
    context = InProcRunnerContext()
    assert not context.has_checkpointing()
    with raises(WorkflowCheckpointException, "checkpoint"):
        await context.create_checkpoint("flow", "hash", State(), None, 0)
    with raises(WorkflowCheckpointException, "checkpoint"):
        await context.load_checkpoint("any")
    with raises(TypeError, "FileCheckpointStorage(folder)"):
        InProcRunnerContext("folder")  # type: ignore[arg-type]


# ---- one run -------------------------------------------------------------------------------------


async def test_a_new_run_drops_messages_and_barriers_but_not_requests():
    context = InProcRunnerContext()
    await context.send_message(WorkflowMessage("old", "a"))
    context.buffers = {"key": {"a": [WorkflowMessage(1, "a")]}}
    await context.add_request_info_event(question())
    context.reset_for_new_run()
    assert not await context.has_messages()
    assert context.buffers == {}
    assert list(await context.get_pending_request_info_events()) == ["R"]
