"""Checks of the six methods that every checkpoint storage has. Each check starts with an empty storage."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import math
import threading
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException
from agentbench.testing.expectations import (
    FLOW,
    expect,
    expect_equal,
    expect_error,
    expect_ids,
    expect_kind,
    expect_same,
    ids_of,
    load,
    make_checkpoint,
    save_chain,
)
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import MessageType, WorkflowMessage


async def a_saved_checkpoint_is_loaded_with_all_its_fields(storage: CheckpointStorage) -> None:
    """Strings, numbers, booleans, `None`, lists and dictionaries are restored unchanged at any depth."""
    saved = make_checkpoint(
        3,
        previous_checkpoint_id="an-older-one",
        state={
            "text": "ä \U0001f600 \n \x00 '\"\\",
            "numbers": [0, -1, 2**70, 1.5, 1e300, True],
            "nothing": None,
            "empty": [{}, [], ""],
            "deep": {"a": [{"b": [{"c": 1}]}]},
            "__t__": "a key that a codec may use",
        },
        metadata={"run_id": "run-1", "writers": ["a", "b"], "tags": {"mine": [1]}},
    )
    returned = await storage.save(saved)
    expect_equal(returned, saved.checkpoint_id, "the result of save()")
    expect_same(await storage.load(saved.checkpoint_id), saved, "the loaded checkpoint")


async def messages_and_requests_are_restored_as_objects(storage: CheckpointStorage) -> None:
    """A run can only continue from a checkpoint whose messages and request events are restored as objects."""
    request = WorkflowEvent.request_info("r1", "asker", "May I?", list[str])
    plain = WorkflowMessage({"n": [1]}, "sender", target_id="asker", trace_contexts=[{"traceparent": "t"}])
    answer = WorkflowMessage(
        "yes", "internal:asker", "asker", type=MessageType.RESPONSE, original_request_info_event=request
    )
    saved = make_checkpoint(
        1,
        messages={"sender": [plain, plain], "internal:asker": [answer]},
        pending_request_info_events={"r1": request},
    )
    await storage.save(saved)
    loaded = await load(storage, saved.checkpoint_id)
    numbers = {sender: len(sent) for sender, sent in loaded.messages.items()}
    expect_equal(numbers, {"sender": 2, "internal:asker": 1}, "the numbers of loaded messages by sender")
    expect_equal(loaded.messages["sender"], [plain, plain], "the loaded messages")
    (loaded_answer,) = loaded.messages["internal:asker"]
    expect_kind(loaded_answer, WorkflowMessage, "the loaded answer")
    expect_equal((loaded_answer.data, loaded_answer.type), ("yes", MessageType.RESPONSE), "the loaded answer")
    answered: Any = loaded_answer.original_request_info_event
    pending: Any = loaded.pending_request_info_events.get("r1")
    for event, where in ((answered, "in its answer"), (pending, "that is pending")):
        expect_kind(event, WorkflowEvent, f"the loaded request {where}")
        found = (event.type, event.request_id, event.source_executor_id, event.data, event.response_type)
        expect_equal(found, ("request_info", "r1", "asker", "May I?", list[str]), f"the loaded request {where}")


class _Colour(enum.StrEnum):
    RED = "red"


@dataclass
class _Point:
    x: int
    inner: Any = None


_VALUES_THAT_JSON_LACKS: dict[str, Any] = {
    "a tuple": (1, ("a", [2])),
    "a set": {1, 2},
    "a frozenset": frozenset({"a"}),
    "bytes": b"\x00\xff",
    "a datetime": datetime.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
    "a date": datetime.date(2024, 1, 2),
    "a duration": datetime.timedelta(days=1, microseconds=1),
    "a UUID": uuid.UUID(int=7),
    "a decimal": decimal.Decimal("1.10"),
    "integer keys": {1: "a", 2: {3: "b"}},
    "a string enum": [_Colour.RED],
    "a dataclass": _Point(1, _Point(2, (3,))),
    "infinite and NaN floats": [math.inf, -math.inf, math.nan],
}


async def values_that_json_lacks_are_restored_exactly_or_rejected(storage: CheckpointStorage) -> None:
    """If a tuple is restored as a list, the run fails later, far from the cause."""
    for what, value in _VALUES_THAT_JSON_LACKS.items():
        saved = make_checkpoint(1, state={"value": value})
        try:
            await storage.save(saved)
        except WorkflowCheckpointException:
            continue
        state = (await load(storage, saved.checkpoint_id)).state
        expect_equal(list(state), ["value"], f"the keys of the state with {what}, saved and loaded")
        loaded = state["value"]
        expect_equal((type(loaded), repr(loaded)), (type(value), repr(value)), f"{what}, saved and loaded")


async def a_value_that_cannot_be_stored_is_rejected_and_nothing_is_saved(storage: CheckpointStorage) -> None:
    """`save` raises `WorkflowCheckpointException`, also for underlying errors, and stores nothing."""
    (first,) = await save_chain(storage, 1)
    impossible = make_checkpoint(2, state={"value": [threading.Lock()]})
    await expect_error(WorkflowCheckpointException, storage.save(impossible), "saving a lock")
    await expect_ids(storage, [first], "the ids after a failed save")


async def loading_an_unknown_id_raises_a_checkpoint_exception(storage: CheckpointStorage) -> None:
    """`load` raises `WorkflowCheckpointException`, whether or not the storage contains other checkpoints."""
    await expect_error(WorkflowCheckpointException, storage.load("unknown"), "load() of an unknown id")
    await save_chain(storage, 1)
    await expect_error(WorkflowCheckpointException, storage.load("unknown"), "load() of an unknown id")


async def an_unknown_name_has_no_checkpoints(storage: CheckpointStorage) -> None:
    """The methods return empty lists and `None` instead of raising errors."""
    await save_chain(storage, 1)
    expect_equal(await storage.list_checkpoints(workflow_name="unknown"), [], "list_checkpoints() of an unknown name")
    expect_equal(
        await storage.list_checkpoint_ids(workflow_name="unknown"), [], "list_checkpoint_ids() of an unknown name"
    )
    expect_equal(await storage.get_latest(workflow_name="unknown"), None, "get_latest() of an unknown name")


async def a_chain_is_listed_oldest_first(storage: CheckpointStorage) -> None:
    """The lists of checkpoints and of ids agree with each other and with the latest checkpoint."""
    saved = await save_chain(storage, 12)
    listed = await storage.list_checkpoints(workflow_name=FLOW)
    expect_equal(ids_of(listed), ids_of(saved), "the ids of list_checkpoints()")
    for found, expected in zip(listed, saved, strict=True):
        expect_same(found, expected, "a listed checkpoint")
    await expect_ids(storage, saved, "list_checkpoint_ids()")
    expect_same(await storage.get_latest(workflow_name=FLOW), saved[-1], "the latest checkpoint")


async def chains_with_similar_names_are_separate(storage: CheckpointStorage) -> None:
    """A prefix, a pattern, different case or a different spelling of a name does not find its checkpoints."""
    names = ["flow", "flow2", "flo", "Flow", "fl%", "fl_w", "*", "flow/thread 1", "flow/thread%201", "flöw", "a'b\"c"]
    saved = {name: await save_chain(storage, 2, workflow_name=name) for name in names}
    for name in names:
        ids = await storage.list_checkpoint_ids(workflow_name=name)
        expect_equal(ids, ids_of(saved[name]), f"the ids of the name {name!r}")
        listed = await storage.list_checkpoints(workflow_name=name)
        expect_equal(ids_of(listed), ids, f"the ids of list_checkpoints() for the name {name!r}")
        expect_equal(
            {checkpoint.workflow_name for checkpoint in listed}, {name}, f"the names of the checkpoints of {name!r}"
        )


async def changes_after_a_save_are_not_stored(storage: CheckpointStorage) -> None:
    """After saving, a run continues to change the same objects."""
    items = [1]
    saved = make_checkpoint(1, state={"items": items}, messages={"a": [WorkflowMessage([1], "a")]})
    await storage.save(saved)
    items.append(2)
    saved.messages["a"][0].data.append(2)
    saved.messages["b"] = []
    saved.state["more"] = saved.metadata["more"] = True
    loaded = await load(storage, saved.checkpoint_id)
    expect_equal(loaded.state, {"items": [1]}, "the state after the saved one was changed")
    expect_equal(list(loaded.messages), ["a"], "the senders after the saved ones were changed")
    expect_equal(len(loaded.messages["a"]), 1, "the number of loaded messages")
    expect_kind(loaded.messages["a"][0], WorkflowMessage, "the loaded message")
    expect_equal(loaded.messages["a"][0].data, [1], "the message after the saved one was changed")
    expect("more" not in loaded.metadata, "The stored metadata changed together with the object that had been saved.")


async def every_load_returns_an_independent_checkpoint(storage: CheckpointStorage) -> None:
    """Three runs that resume from one checkpoint start equal, even after the earlier ones changed their state."""
    saved = make_checkpoint(1, state={"items": [[1]]}, messages={"a": [WorkflowMessage({"n": 1}, "a")]})
    expected = make_checkpoint(1, state={"items": [[1]]}, messages={"a": [WorkflowMessage({"n": 1}, "a")]})
    expected.checkpoint_id = await storage.save(saved)
    for _ in range(3):
        latest = await storage.get_latest(workflow_name=FLOW)
        every = await storage.list_checkpoints(workflow_name=FLOW)
        expect_equal(ids_of(every), [saved.checkpoint_id], "the ids of list_checkpoints()")
        (listed,) = every
        for found in (await storage.load(saved.checkpoint_id), listed, latest):
            expect_same(found, expected, "a checkpoint after an equal one was changed by its user")
            assert found is not None
            found.state["items"][0].append("changed")
            found.messages["a"][0].data["n"] = "changed"
            found.metadata["changed"] = True


async def deleting_removes_a_checkpoint_once(storage: CheckpointStorage) -> None:
    """`True` for one that was there, `False` the second time; the others stay."""
    first, second, third = await save_chain(storage, 3)
    expect_equal(await storage.delete(third.checkpoint_id), True, "delete() of a checkpoint")
    expect_equal(await storage.delete(third.checkpoint_id), False, "delete() of a deleted checkpoint")
    expect_equal(await storage.delete("unknown"), False, "delete() of an unknown id")
    await expect_error(WorkflowCheckpointException, storage.load(third.checkpoint_id), "load() of a deleted one")
    await expect_ids(storage, [first, second], "the ids after a deletion")
    latest = await storage.get_latest(workflow_name=FLOW)
    expect_kind(latest, WorkflowCheckpoint, "the latest one after a deletion")
    expect_equal(latest and latest.checkpoint_id, second.checkpoint_id, "the latest one after a deletion")
    for left in (first, second):
        expect_same(await storage.load(left.checkpoint_id), left, "a checkpoint that was not deleted")


async def saving_an_id_again_replaces_the_checkpoint(storage: CheckpointStorage) -> None:
    """The new checkpoint may belong to another chain; the old one is then gone from its chain."""
    first, second = await save_chain(storage, 2)
    second.state = {"step": "another"}
    await storage.save(second)
    await expect_ids(storage, [first, second], "the ids after saving one again")
    expect_same(await storage.load(second.checkpoint_id), second, "the checkpoint that was saved again")
    second.workflow_name = "another"
    await storage.save(second)
    await expect_ids(storage, [first], "the ids after one moved away")
    await expect_ids(storage, [second], "the ids of its new name", workflow_name="another")


async def concurrent_saves_are_all_stored(storage: CheckpointStorage) -> None:
    """Several runs may save to one storage concurrently."""
    made = [make_checkpoint(seq, workflow_name=f"flow-{seq % 3}") for seq in range(1, 31)]
    await asyncio.gather(*map(storage.save, made))
    for number in range(3):
        expected = ids_of([checkpoint for checkpoint in made if checkpoint.workflow_name == f"flow-{number}"])
        ids = await storage.list_checkpoint_ids(workflow_name=f"flow-{number}")
        expect_equal(ids, expected, "the ids after 30 concurrent saves")


async def a_fork_does_not_change_other_checkpoints(storage: CheckpointStorage) -> None:
    """`fork_checkpoint` works with any storage."""
    saved = await save_chain(storage, 3)
    try:
        info = await fork_checkpoint(storage, saved[1].checkpoint_id, state_updates={"step": "edited"})
    except WorkflowBusyError as error:  # no other writer exists
        message = "list_infos(limit=1) or get_latest() returns another head than save_if_head() checks"
        raise AssertionError(message) from error
    await expect_ids(storage, [*saved, info], "the ids after a fork")
    for before in saved:
        expect_same(await storage.load(before.checkpoint_id), before, "a checkpoint after another one was forked")
    fork = await load(storage, info.checkpoint_id)
    expect_equal(fork.state, {"step": "edited"}, "the state of the fork")
    expect_equal(fork.previous_checkpoint_id, saved[1].checkpoint_id, "the previous checkpoint of the fork")


CHECKS: tuple[Callable[[CheckpointStorage], Awaitable[None]], ...] = (
    a_saved_checkpoint_is_loaded_with_all_its_fields,
    messages_and_requests_are_restored_as_objects,
    values_that_json_lacks_are_restored_exactly_or_rejected,
    a_value_that_cannot_be_stored_is_rejected_and_nothing_is_saved,
    loading_an_unknown_id_raises_a_checkpoint_exception,
    an_unknown_name_has_no_checkpoints,
    a_chain_is_listed_oldest_first,
    chains_with_similar_names_are_separate,
    changes_after_a_save_are_not_stored,
    every_load_returns_an_independent_checkpoint,
    deleting_removes_a_checkpoint_once,
    saving_an_id_again_replaces_the_checkpoint,
    concurrent_saves_are_all_stored,
    a_fork_does_not_change_other_checkpoints,
)
