"""What holds for every pattern: streams, checkpoints, cancellation, failures, two runs at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import (
    AgentResponse,
    BaseChatClient,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Message,
    RunOptions,
    WorkflowBuilder,
    WorkflowRunState,
)
from agentbench.exceptions import EmptyConversationError, ExecutorTimeoutError
from agentbench.orchestrations import AgentRequestInfoResponse
from tests.orchestrations.patterns.teams import PATTERNS, replace_agent, texts
from tests.parts.errors import raises

WITH_REVIEWS = {name: make for name, make in PATTERNS.items() if name not in ("handoff", "magentic")}
REVIEWED = pytest.mark.parametrize("make", WITH_REVIEWS.values(), ids=WITH_REVIEWS)
EACH = pytest.mark.parametrize("make", PATTERNS.values(), ids=PATTERNS)


@EACH
async def test_streamed_stepped_and_plain_runs_say_the_same(make):
    plain = await make().build().run("hello")
    streamed = await make().build().run("hello", stream=True).get_final_response()
    stepped = make().build().start("hello")
    while stepped.status is not WorkflowRunState.IDLE:
        await stepped.step()
    assert texts(plain.outputs) == texts(streamed.outputs) == texts(stepped.outputs) != ""


@EACH
async def test_the_final_output_of_a_streamed_run_has_the_type_of_an_awaited_one(make):
    (awaited,) = {type(output) for output in (await make().build().run("hello")).outputs}
    streamed = (await make().build().run("hello", stream=True).get_final_response()).outputs
    assert {type(output) for output in streamed} == {awaited} == {AgentResponse}


@pytest.mark.parametrize("name", ["concurrent", "group_chat", "managed_chat", "magentic"])
async def test_a_node_that_combines_answers_emits_a_response_also_in_a_stream(name):
    stream = PATTERNS[name]().build().run("hello", stream=True)
    assert [type(event.data) async for event in stream if event.type == "output"] == [AgentResponse]


@pytest.mark.parametrize("name", [name for name in PATTERNS if name != "handoff"])
async def test_an_empty_conversation_is_refused(name):
    with pytest.raises(EmptyConversationError) as caught:
        await PATTERNS[name]().build().run([])
    assert isinstance(caught.value, ValueError)
    assert caught.value.executor_id


@EACH
@pytest.mark.parametrize("given", ["hello", Message("user", ["hello"]), ["hello"], [Message("user", ["hello"])]])
async def test_every_form_of_input_will_do(make, given):
    assert texts((await make().build().run(given)).outputs) == texts((await make().build().run("hello")).outputs)


@EACH
async def test_a_run_goes_on_from_each_checkpoint_with_the_same_outcome(make, tmp_path):
    storage = FileCheckpointStorage(tmp_path)
    whole = await make(checkpoint_storage=storage, name="team").build().run("hello")
    infos = whole.checkpoints
    assert len(infos) > 2
    for number, info in enumerate(infos[:-1]):
        again = (
            await make(name="team").build().run(checkpoint_id=info, checkpoint_storage=FileCheckpointStorage(tmp_path))
        )
        assert texts(whole.outputs).endswith(texts(again.outputs)), info
        assert number or texts(again.outputs) == texts(whole.outputs)  # later, what was said is not said again


@EACH
async def test_every_run_of_a_workflow_begins_anew(make):
    workflow = make().build()
    first = texts((await workflow.clone().run("hello")).outputs)
    started = [workflow.start("hello"), workflow.start("hello")]
    await asyncio.gather(*(_drive(run) for run in started))
    assert [texts(run.outputs) for run in started] == [first, first]
    assert texts((await make().build().run("hello")).outputs) == first


async def _drive(run: Any) -> None:
    while run.status is not WorkflowRunState.IDLE:
        await run.step()


class Mute(BaseChatClient):
    """Never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = asyncio.Event()

    async def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> Any:
        self.was_asked.set()
        await asyncio.Event().wait()


class Broken(BaseChatClient):
    async def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> Any:
        raise ConnectionError("the model is away")


@EACH
async def test_a_cancelled_run_leaves_nothing_behind(make):
    workflow, mute = make().build(), Mute()
    replace_agent(workflow, "b", mute)
    running = asyncio.ensure_future(workflow.run("hello"))
    await mute.was_asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert texts((await make().build().run("hello")).outputs)


@EACH
async def test_a_participant_that_fails_fails_the_run_and_is_named(make):
    workflow = make().build()
    replace_agent(workflow, "b", Broken())
    run = workflow.start("hello")
    with raises(Exception, "model"):
        await _drive(run)
    assert [event.executor_id for event in run.events if event.type == "executor_failed"] == ["b"]


@EACH
async def test_a_participant_that_never_answers_ends_in_a_timeout(make):
    workflow = make().build()
    replace_agent(workflow, "b", Mute())
    with pytest.raises((ExecutorTimeoutError, TimeoutError)):
        await workflow.run("hello", options=RunOptions(timeout=0.2))


@EACH
async def test_a_pattern_is_an_agent_and_a_node(make):
    expected = texts((await make().build().run("hello")).outputs)
    assert (await make(name="team").build().as_agent().run("hello")).text.replace("\n", "").replace(" ", "") == (
        expected.replace(" ", "")
    )
    inner = make(name="team").build()
    outer = WorkflowBuilder(start_executor=inner.as_agent(name="inner")).build()
    assert texts((await outer.run("hello")).outputs).replace(" ", "") == expected.replace(" ", "")


@EACH
def test_a_pattern_can_be_drawn_and_built_twice(make):
    builder = make()
    one, other = builder.build(), builder.build()
    assert one is not other
    assert one.executors["a"] is not other.executors["a"]
    assert "a" in str(one._repr_mimebundle_()["text/plain"])


@REVIEWED
async def test_drafts_wait_for_a_person_and_the_conversation_stays_whole(make):
    storage = InMemoryCheckpointStorage()
    workflow = make(checkpoint_storage=storage, name="team").with_request_info(agents=["a"]).build()
    result = await workflow.run("hello")
    assert not [output for output in result.outputs if "a5" in output.text]
    drafts = 0
    while requests := result.get_request_info_events():
        drafts += 1
        assert all(request.data.executor_id == "a" for request in requests)
        if drafts <= 2:  # also after the revision
            assert requests[0].data.full_conversation[0].text == "hello"
        answer = (
            AgentRequestInfoResponse.from_strings(["Again."]) if drafts == 1 else AgentRequestInfoResponse.approve()
        )
        result = await workflow.run(responses={request.request_id: answer for request in requests})
    assert drafts > 1
    assert result.outputs


@EACH
def test_whoever_is_named_takes_part(make):
    for options in ({"output_from": ["z"]}, {"intermediate_output_from": ["z"]}):
        with raises(ValueError, "participant"):
            make(**options).build()
    if hasattr(make(), "with_request_info"):
        with raises(ValueError, "with_request_info"):
            make().with_request_info(agents=["z"]).build()
    with raises(ValueError, "'all'"):
        make(output_from="all_other").build()
    with raises(ValueError, "both"):
        make(output_from=[], intermediate_output_from=[]).build()
    with raises(ValueError, "twice"):
        make(output_from=["a", "a"]).build()
    with raises(ValueError, "output_from"):
        make(output_from=["a"], intermediate_output_from=["a"]).build()


@EACH
async def test_outputs_of_participants_surface_as_asked(make):
    result = await make(output_from=["a"], intermediate_output_from="all_other").build().run("hello")
    kinds = {(event.executor_id, event.type) for event in result if event.type in ("output", "intermediate")}
    assert ("a", "output") in kinds
    assert ("b", "intermediate") in kinds
    hidden = await make().build().run("hello")
    assert not hidden.intermediate_outputs
