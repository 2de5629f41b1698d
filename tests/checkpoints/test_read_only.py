"""Storages on a disk that is for reading only."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentbench import WorkflowCheckpoint, WorkflowCheckpointException
from agentbench.checkpoints.opening import open_storage

ROOT = Path(__file__).parents[2]
VIEW = ["unshare", "--user", "--map-root-user", "--mount"]


def checkpoint(seq: int) -> WorkflowCheckpoint:
    state = {"talk": [f"{n} ".ljust(99, "x") for n in range(40)]}
    return WorkflowCheckpoint("flow", "hash", f"cp{seq}", state=state, metadata={"seq": seq})


async def read(address: str) -> None:
    """In a process of its own, whose view of the folder is for reading only."""
    storage = open_storage(address)
    (listed,) = await storage.list_checkpoints(workflow_name="flow")
    assert listed.state == checkpoint(1).state
    assert await storage.get_latest(workflow_name="flow") == await storage.load("cp1") == listed
    with pytest.raises(WorkflowCheckpointException, match=r"cannot be written|cannot be opened or written"):
        await storage.save(checkpoint(2))


@pytest.mark.parametrize("name", ["files", "runs.db"])
def test_reading_needs_no_right_to_write(tmp_path: Path, name: str) -> None:
    if shutil.which("unshare") is None or subprocess.run([*VIEW, "true"], check=False, capture_output=True).returncode:
        pytest.skip("a mount for reading only needs namespaces of users")
    if name.endswith(".db"):
        pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (extra sql)")
    storage = open_storage(tmp_path / name, create=True)
    asyncio.run(storage.save(checkpoint(1)))
    storage.close()  # type: ignore[attr-defined]
    command = [sys.executable, "-m", "tests.checkpoints.test_read_only", str(tmp_path), str(tmp_path / name)]
    subprocess.run([*VIEW, *command], cwd=ROOT, check=True, timeout=60)


if __name__ == "__main__":
    subprocess.run(["mount", "--bind", "-o", "ro", sys.argv[1], sys.argv[1]], check=True)
    asyncio.run(read(sys.argv[2]))
