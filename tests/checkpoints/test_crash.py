"""A writer that is killed at any moment loses nothing that was saved."""

import asyncio
import importlib.util
import itertools
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from agentbench.workflows.persist.executor_content import Changes
from agentbench.workflows.persist.planned_migration import migrate_chain
from tests.checkpoints.flow_versions import migration, new
from tests.checkpoints.killed_writers import LAST_SUPERSTEP, make_workflow, open_storage
from tests.parts.nightly import NIGHTLY

ROOT = Path(__file__).parents[2]
# Together 200 for files at night.
MOMENTS = {"file": 120, "pruned file": 80, "sqlite": 100} if NIGHTLY else {"file": 24, "pruned file": 16, "sqlite": 20}


@pytest.fixture(params=list(MOMENTS))
def kind(request):
    if request.param == "sqlite" and importlib.util.find_spec("sqlalchemy") is None:
        pytest.skip("sqlalchemy is not installed")
    return request.param


def test_a_killed_writer_loses_at_most_the_superstep_it_was_in(kind, tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    command = [sys.executable, "-m", "tests.checkpoints.killed_writers", kind, str(tmp_path), str(MOMENTS[kind])]
    told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout
    reports = [json.loads(line) for line in told.splitlines()]
    assert len(reports) == MOMENTS[kind]
    assert len(set(map(len, reports))) > len(reports) / 6  # they were killed at different places
    (expected,) = asyncio.run(make_workflow("undisturbed").run(1)).get_outputs()
    for number, report in enumerate(reports):
        asyncio.run(judge(kind, tmp_path / f"{number:03}", report, expected))
    assert [record.message for record in caplog.records if record.name.startswith("agentbench.checkpoints")] == []


async def judge(kind, folder, report, expected):
    storage = open_storage(kind, folder)
    try:
        names = await storage.list_workflow_names()
        assert {f"chain-{chain}" for chain, _ in report} <= set(names)
        for name in names:
            reported = [superstep for chain, superstep in report if name == f"chain-{chain}"]
            await judge_chain(storage, name, max(reported, default=0), is_whole=kind != "pruned file")
        last = f"chain-{max((chain for chain, _ in report), default=0)}"
        assert await finish(storage, last) == expected
        latest = await storage.get_latest(workflow_name=last)
        assert latest is not None
        assert latest.iteration_count == LAST_SUPERSTEP
    finally:
        storage.close()


async def judge_chain(storage, name, reported, *, is_whole):
    """What was reported is there, at most one superstep more, all linked, all readable."""
    chain = await storage.list_checkpoints(workflow_name=name)
    supersteps = [each.iteration_count for each in chain]
    assert reported <= supersteps[-1] <= reported + 1
    assert supersteps == list(range(supersteps[0], supersteps[-1] + 1))
    assert supersteps[0] == (0 if is_whole else max(0, supersteps[-1] - len(chain) + 1))
    assert is_whole or len(chain) in (supersteps[-1] + 1, 3, 4)
    for before, after in itertools.pairwise(chain):
        assert after.previous_checkpoint_id == before.checkpoint_id
    for each in chain:
        loaded = await storage.load(each.checkpoint_id)
        assert loaded == each
        assert len(loaded.state["conversation"]) == each.iteration_count + 1
    assert (await storage.get_latest(workflow_name=name)) == chain[-1]


async def finish(storage, name):
    """Go on from where the chain ends, or begin where it has not begun; return what comes out."""
    latest = await storage.get_latest(workflow_name=name)
    workflow = make_workflow(name, storage)
    if latest is None:
        (output,) = (await workflow.run(1)).get_outputs()
    elif latest.iteration_count == LAST_SUPERSTEP:
        output = latest.state["conversation"]
    else:
        (output,) = (await workflow.run(checkpoint_id=latest.checkpoint_id)).get_outputs()
    return output


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_migration_of_a_chain_that_is_killed_leaves_the_whole_copy_or_nothing(kind, tmp_path, caplog):
    if kind == "sqlite" and importlib.util.find_spec("sqlalchemy") is None:
        pytest.skip("sqlalchemy is not installed")
    count = 100 if NIGHTLY else 8
    command = [sys.executable, "-m", "tests.checkpoints.killed_migrations", kind, str(tmp_path), str(count)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    for number in range(count):
        asyncio.run(judge_copy(kind, tmp_path / f"{number:03}", tmp_path / "chain"))
    assert [record.message for record in caplog.records if record.name.startswith("agentbench.checkpoints")] == []


async def judge_copy(kind, folder, untouched):
    storage, original = open_storage(kind, folder), open_storage(kind, untouched)
    try:
        before = await original.list_checkpoints(workflow_name="ring")
        assert await storage.list_checkpoints(workflow_name="ring") == before
        copies = await storage.list_checkpoints(workflow_name="copy")
        assert [each.iteration_count for each in copies] in ([], [each.iteration_count for each in before])
        for each in copies:
            assert await storage.load(each.checkpoint_id) == each
        if not copies:  # the name is free for another attempt
            await migrate_chain(storage, "ring", "copy", new.graph, Changes(**migration))
            copies = await storage.list_checkpoints(workflow_name="copy")
        assert len(copies) == len(before)
        assert (await new.run(checkpoint_id=copies[-1].checkpoint_id, checkpoint_storage=storage)).get_outputs()
    finally:
        storage.close()
        original.close()
