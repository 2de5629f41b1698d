"""Back, sideways and again: a chain is a tree to which everything adds and from which nothing takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import InMemoryCheckpointStorage, RunOptions, Workflow, WorkflowMessage, WorkflowRun, WorkflowRunState
from agentbench.checkpoints import fork_checkpoint
from agentbench.checkpoints.access import list_infos, list_lineage
from agentbench.testing import CountingIds, TickingClock
from tests.parts.executors import Pass, Show, chain
from tests.workflows.lasting_flow import ANSWERS, OUTPUTS, lasting_flow, open_place
from tests.workflows.storages import BackwardsStorage, OwnStorage
from tests.workflows.test_rehydrate import LASTING, place_of
from tests.workflows.test_resume import Ask

OWN = {"own": OwnStorage, "backwards": BackwardsStorage}


@pytest.fixture(params=["memory", *OWN, *LASTING])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A storage of each kind, empty, those that people write themselves included."""
    if request.param in OWN:
        yield OWN[request.param]()
        return
    opened = open_place(request.param, place_of(request.param, request, tmp_path))
    yield opened
    if hasattr(opened, "close"):
        opened.close()


def three(storage: Any = None, **settings: Any) -> Workflow:
    return chain(Pass("a"), Pass("b"), Show("c"), name="three", checkpoint_storage=storage, **settings)


async def history(storage: Any, name: str = "three") -> dict[str, str]:
    """All checkpoints of a chain as texts: equal texts are equal byte by byte."""
    return {c.checkpoint_id: c.to_json() for c in await storage.list_checkpoints(workflow_name=name)}


async def same_in(storage: Any, before: dict[str, str]) -> bool:
    return {key: (await storage.load(key)).to_json() for key in before} == before


async def finished(storage: Any) -> WorkflowRun:
    run = three(storage).start("x")
    await run.result()
    return run


# ---- forks -----------------------------------------------------------------------------------------


async def test_a_fork_from_every_checkpoint_goes_its_own_way_and_history_stays_as_it_was(storage: Any):
    run = await finished(storage)
    before = await history(storage)
    for place, origin in enumerate(run.checkpoints):
        fork = await run.fork(origin, workflow=three())
        assert (await fork.result()).outputs == (["x>a>b!"] if place < 2 else [])
        path = await list_lineage(storage, fork.checkpoints[-1].checkpoint_id)
        assert path[: place + 1] == run.checkpoints[: place + 1]
        assert path[place + 1].source == "fork"
        assert path[place + 1].forked_from == origin.checkpoint_id
        assert path[place + 2 :] == fork.checkpoints
        assert [info.run_id for info in path[place + 2 :]] == [fork.run_id] * len(fork.checkpoints)
    assert await same_in(storage, before)


async def test_edits_of_state_and_messages_take_effect_in_the_fork_alone(storage: Any):
    run = await finished(storage)
    before = await history(storage)
    values = await run.fork(run.checkpoints[1], messages={"b": ["edited"]}, workflow=three())
    whole = await run.fork(
        run.checkpoints[0], messages={"a": [WorkflowMessage("targeted", "a", target_id="b")]}, workflow=three()
    )
    state = await run.fork(run.checkpoints[1], state_updates={"note": {1, 2}}, workflow=three())
    added = await run.fork(run.checkpoints[1], message="more", workflow=three())
    assert [(await fork.result()).outputs for fork in (values, whole, state, added)] == [
        ["edited!"],
        ["targeted>b!"],
        ["x>a>b!"],
        ["x>a>b!", "more>a>b!"],
    ]
    assert state.state == {"note": {1, 2}}
    sources = [info.source for info in await list_infos(storage, workflow_name="three") if info.forked_from]
    assert sorted(sources) == ["fork", "update", "update", "update"]
    assert await same_in(storage, before)


async def test_a_fork_on_another_chain_can_take_its_past_along(storage: Any):
    run = await finished(storage)
    before = await history(storage)
    info = await fork_checkpoint(storage, run.checkpoints[1].checkpoint_id, workflow_name="what if", with_history=True)
    result = await three(storage).start(resume_from=info, options=RunOptions(chain="what if")).result()
    assert result.outputs == ["x>a>b!"]
    assert await history(storage) == before
    for old in run.checkpoints:
        await storage.delete(old.checkpoint_id)
    alone = await list_infos(storage, workflow_name="what if")
    assert await list_lineage(storage, alone[-1].checkpoint_id) == alone
    assert [i.iteration for i in alone] == [0, 1, 1, 2]
    assert [i.seq for i in alone] == [1, 2, 3, 4]


async def test_the_fork_of_a_run_and_its_checkpoints_are_one_chain(storage: Any):
    options = RunOptions(chain="thread-1")
    run = three(storage).start("x", options=options)
    await run.result()
    same = await run.fork(run.checkpoints[0], workflow=three())
    await same.result()
    assert len(await list_infos(storage, workflow_name="thread-1")) == 6
    elsewhere = await three(storage).start("y").result()
    assert elsewhere.outputs == ["y>a>b!"]
    foreign = (await list_infos(storage, workflow_name="three"))[0]
    joined = await run.fork(foreign, workflow=chain(Pass("a"), Pass("b"), Show("c"), name="of another name"))
    assert (await joined.result()).outputs == ["y>a>b!"]
    assert {info.workflow_name for info in joined.checkpoints} == {"thread-1"}
    assert len(await list_infos(storage, workflow_name="three")) == 3


async def test_requests_are_emitted_again_in_a_fork_although_they_were_answered_later(storage: Any):
    run = lasting_flow(storage).start("x")
    await run.result()
    asked = run.last_checkpoint
    for request_id, answer in ANSWERS.items():
        await run.send_response(request_id, answer)
    assert (await run.result()).outputs == OUTPUTS
    before = await history(storage, "lasting")
    fork = await run.fork(asked, workflow=lasting_flow())
    result = await fork.result()
    assert [event.request_id for event in result.get_request_info_events()] == ["verdict", "word"]
    assert result.outputs == []
    await fork.send_response("word", "other")
    assert (await fork.result()).outputs == [["a word, please", "other"]]
    assert await same_in(storage, before)


# ---- what a fork does not do -------------------------------------------------------------------------


# ---- times and ids ---------------------------------------------------------------------------------


async def test_with_a_clock_and_ids_of_ones_own_a_forked_tree_is_the_same_to_the_byte():
    async def tree() -> list[str]:
        storage = InMemoryCheckpointStorage()
        options = RunOptions(clock=TickingClock(), ids=CountingIds())
        run = three(storage).start("x", options=options)
        await run.result()
        fork = await run.fork(run.checkpoints[0], state_updates={"n": 1})
        await fork.result()
        await fork.restore_checkpoint(fork.checkpoints[0])
        await fork.result()
        return list((await history(storage)).values())

    first = await tree()
    assert first == await tree()
    assert len(first) == 7
    assert [f'"cp-{n:04d}"' in text for n, text in enumerate(first, 1)] == [True] * 7


# ---- back on the same run ----------------------------------------------------------------------------


async def test_a_run_goes_back_and_on_again_and_again(storage: Any):
    run = await finished(storage)
    first = run.checkpoints
    before = await history(storage)
    for place in (2, 1, 0, 1):
        await run.restore_checkpoint(first[place])
        assert run.status is WorkflowRunState.IN_PROGRESS
        assert run.superstep == place
        events = [event async for event in run.watch_stream()]
        outputs = [event.data for event in events if event.type == "output"]
        assert outputs == (["x>a>b!"] if place < 2 else [])
        assert run.checkpoints[: place + 1] == first[: place + 1]
        assert run.checkpoints[place + 1].previous_checkpoint_id == first[place].checkpoint_id
    assert await same_in(storage, before)


async def test_a_run_goes_back_to_where_another_run_was(storage: Any):
    other = await finished(storage)
    run = await finished(storage)
    await run.restore_checkpoint(other.checkpoints[1])
    assert run.checkpoints == [other.checkpoints[1]]
    fork = await run.fork(workflow=three())
    assert (await fork.result()).outputs == ["x>a>b!"]
    assert (await run.result()).outputs == ["x>a>b!"] * 2
    assert await list_lineage(storage, run.checkpoints[-1].checkpoint_id) == [other.checkpoints[0], *run.checkpoints]


async def test_a_restore_drops_messages_requests_and_responses_after_it(storage: Any):
    workflow = chain(Pass("a"), Ask("ask"), name="three", checkpoint_storage=storage)
    run = workflow.start("x")
    await run.result()
    await run.send_response("R0", "word")
    assert await run.try_send_message("further")
    await run.restore_checkpoint(run.checkpoints[0])
    assert run.pending_requests == []
    assert [message.data for message in run.pending_messages] == ["x>a"]
    result = await run.result()
    assert [event.request_id for event in run.pending_requests] == ["R0", "R1"]
    assert [o for o in result.outputs if o[0] == "R0"] == []


# ---- a law -----------------------------------------------------------------------------------------

moves = st.lists(
    st.tuples(st.sampled_from(["restore", "fork", "resume", "edit", "new"]), st.integers(0, 50)), min_size=1, max_size=6
)


@pytest.mark.parametrize("kind", [InMemoryCheckpointStorage, OwnStorage])
@given(travel=moves)
def test_any_travel_adds_to_the_tree_and_changes_nothing_in_it(kind: Any, travel: list[tuple[str, int]]):
    asyncio.run(_travel(kind(), travel))


async def _travel(storage: Any, travel: list[tuple[str, int]]) -> None:
    run = await finished(storage)
    for move, place in travel:
        before = await history(storage)
        infos = await list_infos(storage, workflow_name="three")
        origin = infos[place % len(infos)]
        if move == "restore":
            await run.restore_checkpoint(origin)
        elif move == "resume":
            run = three(storage).start(resume_from=origin)
        elif move == "new":
            run = three(storage).start("y")
        else:
            edits = {"n": place} if move == "edit" else None
            run = await run.fork(origin, state_updates=edits, workflow=three())
        await run.result()
        assert await same_in(storage, before)
        after = await list_infos(storage, workflow_name="three")
        assert len(after) > len(before)
        assert sorted(info.seq for info in after) == list(range(1, len(after) + 1))
        for info in after:
            path = await list_lineage(storage, info.checkpoint_id)
            assert path[0].source == "input"
            assert [each.previous_checkpoint_id for each in path[1:]] == [each.checkpoint_id for each in path[:-1]]
