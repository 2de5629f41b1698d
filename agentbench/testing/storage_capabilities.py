"""Checks of the optional capabilities of a checkpoint storage. Each check starts with an empty storage.

They call the functions of `agentbench.checkpoints.access`, which delegate to the methods of the storage.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from agentbench.checkpoints.access import (
    delete_chain,
    head_of,
    list_infos,
    list_workflow_names,
    prune_chain,
    save_checkpoint,
)
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage, SupportsSaveAll
from agentbench.exceptions import CheckpointNotFoundError, WorkflowBusyError, WorkflowCheckpointException
from agentbench.testing.expectations import (
    FLOW,
    expect,
    expect_equal,
    expect_error,
    expect_ids,
    expect_kind,
    expect_same,
    ids_of,
    make_checkpoint,
    save_chain,
)
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage

Check = Callable[[CheckpointStorage], Awaitable[None]]


async def an_info_agrees_with_its_checkpoint(storage: CheckpointStorage) -> None:
    """All fields agree except the number of written bytes, which only the storage knows."""
    first = make_checkpoint(
        1,
        messages={"a": [WorkflowMessage(1, "a"), WorkflowMessage(2, "a")], "b": [WorkflowMessage(3, "b")]},
        pending_request_info_events={"r": WorkflowEvent.request_info("r", "a", "May I?", bool)},
        metadata={
            "source": "input",
            "run_id": "run-1",
            "writers": ["a", "b"],
            "forked_from": "elsewhere",
            "graph_signature": {"start_executor": "a"},
            "tags": ["mine"],
        },
    )
    second = make_checkpoint(2, previous_checkpoint_id=first.checkpoint_id)
    for checkpoint in (first, second):
        await storage.save(checkpoint)
    infos = await list_infos(storage, workflow_name=FLOW)
    expect_equal(ids_of(infos), ids_of([first, second]), "the ids of the infos")
    expect_equal(list(map(_facts, infos)), [_facts(CheckpointInfo.of(saved)) for saved in (first, second)], "the infos")


def _facts(info: CheckpointInfo) -> dict[str, Any]:
    facts = dataclasses.asdict(info)
    del facts["size_bytes"]
    facts["metadata"].pop("sizes", None)
    return facts


async def infos_are_listed_oldest_first_by_chain(storage: CheckpointStorage) -> None:
    """`list_infos` lists one chain, or all chains sorted by name."""
    by_name = {name: await save_chain(storage, 3, workflow_name=name) for name in ("b", "a", "c")}
    expect_equal(ids_of(await list_infos(storage, workflow_name="b")), ids_of(by_name["b"]), "the infos of one chain")
    expect_equal(await list_infos(storage, workflow_name="unknown"), [], "the infos of an unknown chain")
    expected = ids_of([*by_name["a"], *by_name["b"], *by_name["c"]])
    expect_equal(ids_of(await list_infos(storage)), expected, "the infos of all chains")
    expect_equal(ids_of(await list_infos(storage, limit=4)), expected[-4:], "the newest infos of all chains")


async def infos_can_be_selected_by_run(storage: CheckpointStorage) -> None:
    """`run_id` selects the infos of a run, in one chain or in all chains."""
    runs = ["r1", "r2", "r1", "r1", "r2"]
    saved = [make_checkpoint(seq, metadata={"run_id": run_id}) for seq, run_id in enumerate(runs, start=1)]
    saved.append(make_checkpoint(1, workflow_name="other", metadata={"run_id": "r1"}))
    for checkpoint in saved:
        await storage.save(checkpoint)
    of_run = [checkpoint for checkpoint in saved if checkpoint.metadata["run_id"] == "r1"]
    expect_equal(ids_of(await list_infos(storage, run_id="r1")), ids_of(of_run), "the infos of a run")
    found = await list_infos(storage, workflow_name=FLOW, run_id="r1", limit=2)
    expect_equal(ids_of(found), ids_of(of_run[1:3]), "the newest infos of a run in a chain")
    found = await list_infos(storage, workflow_name=FLOW, run_id="r2", before=saved[4].checkpoint_id)
    expect_equal(ids_of(found), ids_of([saved[1]]), "the infos of a run before a checkpoint")
    expect_equal(await list_infos(storage, run_id="unknown"), [], "the infos of an unknown run")


async def infos_can_be_paged_backwards(storage: CheckpointStorage) -> None:
    """`limit` selects the newest infos; `before` excludes a checkpoint and all later ones."""
    saved = ids_of(await save_chain(storage, 5))
    pages = [await list_infos(storage, workflow_name=FLOW, limit=2)]
    while pages[-1]:
        before = ids_of(pages[-1])[0]
        pages.append(await list_infos(storage, workflow_name=FLOW, before=before, limit=2))
    expect_equal([ids_of(page) for page in pages], [saved[3:], saved[1:3], saved[:1], []], "the pages of infos")
    expect_equal(await list_infos(storage, workflow_name=FLOW, limit=0), [], "the infos up to a limit of 0")
    await expect_error(ValueError, list_infos(storage, workflow_name=FLOW, limit=-1), "a negative limit")
    unknown = list_infos(storage, workflow_name=FLOW, before="unknown")
    await expect_error(CheckpointNotFoundError, unknown, "infos before an unknown checkpoint")


async def the_order_is_that_of_sequence_numbers_not_of_times(storage: CheckpointStorage) -> None:
    """The sequence number determines the order, because clocks can go back. Checkpoints without one come first."""
    times = {number: f"2024-01-01T00:00:{number:02}.000000+00:00" for number in range(60)}
    late = make_checkpoint(2, timestamp=times[10])
    early = make_checkpoint(1, timestamp=times[20])
    twin = make_checkpoint(2, timestamp=times[5])
    bare = [WorkflowCheckpoint(FLOW, "hash", timestamp=times[number]) for number in (50, 40)]
    for checkpoint in (late, bare[0], early, bare[1], twin):
        await storage.save(checkpoint)
    expected = ids_of([bare[1], bare[0], early, twin, late])
    listed = await storage.list_checkpoints(workflow_name=FLOW)
    expect_equal(ids_of(listed), expected, "the order of list_checkpoints()")
    expect_equal(await storage.list_checkpoint_ids(workflow_name=FLOW), expected, "the order of list_checkpoint_ids()")
    expect_equal(ids_of(await list_infos(storage, workflow_name=FLOW)), expected, "the order of list_infos()")
    latest = await storage.get_latest(workflow_name=FLOW)
    expect_kind(latest, WorkflowCheckpoint, "the latest checkpoint")
    expect_equal(latest and latest.checkpoint_id, late.checkpoint_id, "the latest checkpoint")
    head = await head_of(storage, FLOW)
    expect_equal(head and head.checkpoint_id, late.checkpoint_id, "the head of the chain")


async def the_names_of_chains_are_listed(storage: CheckpointStorage) -> None:
    """The names are sorted and can be selected by prefix. A chain without checkpoints is not listed."""
    names = ["graph/2", "graph/1", "Graph/3", "gr%", "other", "graph"]
    saved = {name: await save_chain(storage, 2, workflow_name=name) for name in names}
    expect_equal(await list_workflow_names(storage), sorted(names), "the names")
    expect_equal(
        await list_workflow_names(storage, "graph/"), ["graph/1", "graph/2"], "the names with the prefix 'graph/'"
    )
    expect_equal(await list_workflow_names(storage, "gr%"), ["gr%"], "the names with the prefix 'gr%'")
    expect_equal(await list_workflow_names(storage, "unknown"), [], "the names with an unknown prefix")
    for checkpoint in saved["other"]:
        await storage.delete(checkpoint.checkpoint_id)
    expect("other" not in await list_workflow_names(storage), "A chain whose checkpoints were deleted is still listed.")


async def a_checkpoint_is_only_saved_after_the_current_head(storage: CheckpointStorage) -> None:
    """The head 0 means that the chain has no checkpoints yet. A rejected save stores nothing."""
    first, second, rival = make_checkpoint(1), make_checkpoint(2), make_checkpoint(2)
    await expect_error(
        WorkflowBusyError, save_checkpoint(storage, second, 1), "saving after a head that does not exist"
    )
    expect_equal(await save_checkpoint(storage, first, 0), first.checkpoint_id, "the result of save_if_head()")
    await expect_error(WorkflowBusyError, save_checkpoint(storage, rival, 0), "starting a chain that already exists")
    await save_checkpoint(storage, second, 1)
    await expect_error(WorkflowBusyError, save_checkpoint(storage, rival, 1), "saving after a former head")
    await expect_ids(storage, [first, second], "the ids after rejected saves")
    expect_same(await storage.load(second.checkpoint_id), second, "a checkpoint that was saved as the head")
    await save_checkpoint(storage, make_checkpoint(1, workflow_name="other"), 0)


async def only_one_of_several_concurrent_writers_succeeds(storage: CheckpointStorage) -> None:
    """Checking the head and saving are one atomic step."""
    rivals = [make_checkpoint(1) for _ in range(8)]
    results = await asyncio.gather(*(save_checkpoint(storage, rival, 0) for rival in rivals), return_exceptions=True)
    saved = [result for result in results if isinstance(result, str)]
    busy = [result for result in results if isinstance(result, WorkflowBusyError)]
    expect_equal(
        (len(saved), len(busy)), (1, 7), f"the numbers of saved and rejected checkpoints of 8 writers (in {results!r})"
    )
    expect_equal(await storage.list_checkpoint_ids(workflow_name=FLOW), saved, "the ids after 8 concurrent writers")


async def the_head_is_the_highest_sequence_number(storage: CheckpointStorage) -> None:
    """The head is not the checkpoint with the latest time."""
    first = make_checkpoint(1, timestamp="2024-01-01T00:00:09.000000+00:00")
    second = make_checkpoint(2, timestamp="2024-01-01T00:00:01.000000+00:00")
    for checkpoint in (second, first):
        await storage.save(checkpoint)
    await expect_error(
        WorkflowBusyError,
        save_checkpoint(storage, make_checkpoint(2), 1),
        "saving after the checkpoint with the latest time",
    )
    await save_checkpoint(storage, make_checkpoint(3), 2)


async def pruning_keeps_the_newest_checkpoints_of_one_chain(storage: CheckpointStorage) -> None:
    """The remaining checkpoints are complete, even if they shared contents with deleted ones."""
    conversation = ["a long text " * 20, "another one " * 20]
    saved = await save_chain(storage, 6, state={"conversation": conversation})
    other = await save_chain(storage, 3, workflow_name="other", state={"conversation": conversation})
    expect_equal(await prune_chain(storage, workflow_name=FLOW, keep=2), 4, "the number of removed checkpoints")
    await expect_ids(storage, saved[4:], "the remaining ids")
    await expect_ids(storage, other, "the ids of another chain", workflow_name="other")
    for remaining in [*saved[4:], *other]:
        expect_same(await storage.load(remaining.checkpoint_id), remaining, "a remaining checkpoint")
    for pruned in saved[:4]:
        await expect_error(
            WorkflowCheckpointException, storage.load(pruned.checkpoint_id), "load() of a pruned checkpoint"
        )
    expect_equal(await prune_chain(storage, workflow_name=FLOW, keep=9), 0, "the number removed from two with keep=9")
    expect_equal(
        await prune_chain(storage, workflow_name="unknown", keep=1), 0, "the number removed from an unknown chain"
    )


async def pruning_keeps_at_least_one_checkpoint(storage: CheckpointStorage) -> None:
    """`keep` must be positive, because a run continues from the head of the chain."""
    saved = await save_chain(storage, 2)
    for keep in (0, -1):
        await expect_error(ValueError, prune_chain(storage, workflow_name=FLOW, keep=keep), f"prune(keep={keep})")
    await expect_ids(storage, saved, "the ids after a rejected prune")


async def a_whole_chain_can_be_deleted(storage: CheckpointStorage) -> None:
    """Other chains are not affected, and the name can be used again."""
    await save_chain(storage, 3, state={"shared": ["by both chains"]})
    other = await save_chain(storage, 2, workflow_name="other", state={"shared": ["by both chains"]})
    expect_equal(await delete_chain(storage, FLOW), 3, "the number of removed checkpoints")
    expect_equal(await storage.list_checkpoint_ids(workflow_name=FLOW), [], "the ids of a deleted chain")
    for left in other:
        expect_same(await storage.load(left.checkpoint_id), left, "a checkpoint of another chain")
    expect_equal(await delete_chain(storage, FLOW), 0, "the number removed the second time")
    again = await save_chain(storage, 1)
    await expect_ids(storage, again, "the ids of the new chain")


async def a_new_chain_is_saved_whole_or_not_at_all(storage: CheckpointStorage) -> None:
    """A chain that exists is refused, and so is one with a value that cannot be stored; both leave nothing behind."""
    assert isinstance(storage, SupportsSaveAll)
    shared = ["a long text " * 20]
    first, second, third = (make_checkpoint(number, state={"n": number, "shared": shared}) for number in (1, 2, 3))
    second.previous_checkpoint_id, third.previous_checkpoint_id = first.checkpoint_id, second.checkpoint_id
    unstorable = make_checkpoint(2, workflow_name="other", state={"lock": threading.Lock()})
    await expect_error(
        WorkflowCheckpointException,
        storage.save_all([make_checkpoint(1, workflow_name="other"), unstorable]),
        "save_all() with a value that cannot be stored",
    )
    await expect_ids(storage, [], "the ids after a failed save_all()", workflow_name="other")
    await storage.save_all([first, second])
    await expect_ids(storage, [first, second], "the ids after save_all()")
    for each in (first, second):
        expect_same(await storage.load(each.checkpoint_id), each, "a checkpoint from save_all()")
    await expect_error(
        WorkflowBusyError, storage.save_all([make_checkpoint(5)]), "save_all() to a chain that has checkpoints"
    )
    await expect_error(
        WorkflowCheckpointException,
        storage.save_all([dataclasses.replace(first, workflow_name="other")]),
        "save_all() with the id of a stored checkpoint",
    )
    await expect_ids(storage, [first, second], "the ids after rejected calls of save_all()")
    await save_checkpoint(storage, third, 2)
    expect_same(await storage.load(third.checkpoint_id), third, "a checkpoint that was saved after save_all()")


INFO_CHECKS: tuple[Check, ...] = (
    an_info_agrees_with_its_checkpoint,
    infos_are_listed_oldest_first_by_chain,
    infos_can_be_selected_by_run,
    infos_can_be_paged_backwards,
    the_order_is_that_of_sequence_numbers_not_of_times,
)
NAME_CHECKS: tuple[Check, ...] = (the_names_of_chains_are_listed,)
HEAD_CHECKS: tuple[Check, ...] = (
    a_checkpoint_is_only_saved_after_the_current_head,
    only_one_of_several_concurrent_writers_succeeds,
    the_head_is_the_highest_sequence_number,
)
PRUNE_CHECKS: tuple[Check, ...] = (
    pruning_keeps_the_newest_checkpoints_of_one_chain,
    pruning_keeps_at_least_one_checkpoint,
    a_whole_chain_can_be_deleted,
)
SAVE_ALL_CHECKS: tuple[Check, ...] = (a_new_chain_is_saved_whole_or_not_at_all,)
