"""Lists that only grow along a chain are kept once, and come back as what they were at each checkpoint."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage, _ListPrefix


def checkpoint(seq: int, chain: str = "flow", **state: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint(chain, "hash", checkpoint_id=f"{chain}-{seq}", state=state, metadata={"seq": seq})


async def states(storage: InMemoryCheckpointStorage, chain: str = "flow") -> list[Any]:
    return [each.state for each in await storage.list_checkpoints(workflow_name=chain)]


async def test_a_growing_conversation_is_stored_once() -> None:
    storage, talk, expected = InMemoryCheckpointStorage(), [], []
    for seq in range(1, 301):
        talk.append(f"message {seq}")
        await storage.save(checkpoint(seq, talk=talk, _executor_state={"agent": {"cache": list(talk)}}))
        expected.append({"talk": list(talk), "_executor_state": {"agent": {"cache": list(talk)}}})
    assert await states(storage) == expected
    kept = [entry.checkpoint.state["talk"] for entry in storage._ab_entries.values()][100:]
    assert all(isinstance(each, _ListPrefix) for each in kept)
    assert {id(each.log) for each in kept} == {id(kept[0].log)}
    assert len(kept[0].log) == 300


edits = st.lists(st.tuples(st.sampled_from(["append", "cut", "set", "swap"]), st.integers(0, 80)), max_size=15)


@given(edits=edits, mutable=st.booleans())
def test_a_list_that_is_edited_shortened_and_grown_again_comes_back_as_it_was(
    edits: list[tuple[str, int]], mutable: bool
) -> None:
    async def save_and_load() -> None:
        storage, expected = InMemoryCheckpointStorage(), []
        talk: list[Any] = [f"start {each}" for each in range(50)]
        for seq, (what, where) in enumerate(edits, 1):
            if what == "append":
                talk.extend([each] if mutable else str(each) for each in range(where))
            elif what == "cut":
                del talk[where:]
            elif where < len(talk):
                talk[where] = True if what == "set" else 1  # equal, and not the same
            await storage.save(checkpoint(seq, talk=talk))
            expected.append(repr(talk))
        assert [repr(state["talk"]) for state in await states(storage)] == expected

    asyncio.run(save_and_load())


async def test_two_branches_of_one_conversation_do_not_mix() -> None:
    storage, talk = InMemoryCheckpointStorage(), [f"message {each}" for each in range(60)]
    left, right = [*talk, "left"], [*talk, "right"]
    for seq, branch in enumerate((talk, left, right, talk, [*left, "more"], [*right, "more"]), 1):
        await storage.save(checkpoint(seq, talk=branch))
    ends = [state["talk"][60:] for state in await states(storage)]
    assert ends == [[], ["left"], ["right"], [], ["left", "more"], ["right", "more"]]


async def test_what_is_loaded_is_the_callers_own() -> None:
    storage, talk = InMemoryCheckpointStorage(), [f"message {each}" for each in range(60)]
    await storage.save(checkpoint(1, talk=talk, again=talk))
    first = await storage.load("flow-1")
    assert first.state["talk"] is first.state["again"]
    first.state["talk"].append("mine")
    await storage.save(checkpoint(2, talk=[*talk, "theirs"]))
    assert [len(state["talk"]) for state in await states(storage)] == [60, 61]


async def test_a_storage_survives_pickling_and_goes_on_growing() -> None:
    storage, talk = InMemoryCheckpointStorage(), [f"message {each}" for each in range(60)]
    await storage.save(checkpoint(1, talk=talk))
    copy: InMemoryCheckpointStorage = pickle.loads(pickle.dumps(storage))
    await copy.save(checkpoint(2, talk=[*talk, "more"]))
    assert [len(state["talk"]) for state in await states(copy)] == [60, 61]
    await copy.delete_chain("flow")
    assert copy._ab_logs == {}
