"""A checkpoint that has no stored form is refused, and costs its chain nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import UnstorableValueError
from tests.checkpoints.plain_backend import PlainStorage

SIGNATURE = {"start": "a", "executors": {"a": "A"}}


def checkpoint(seq: int, **fields: Any) -> WorkflowCheckpoint:
    metadata = {"seq": seq, "graph_signature": SIGNATURE, **fields.pop("metadata", {})}
    return WorkflowCheckpoint("flow", "hash", checkpoint_id=f"flow-{seq}", metadata=metadata, **fields)


WRONG: dict[str, dict[str, Any]] = {
    "state['locks'][1]": {"state": {"locks": [1, threading.Lock()]}},
    "messages['a'][0]": {"messages": {"a": [threading.Lock()]}},
    "metadata['by']": {"metadata": {"by": threading.Lock()}},
}


@pytest.mark.parametrize("path", WRONG)
async def test_the_error_names_the_path_of_what_cannot_be_stored(path: str) -> None:
    with pytest.raises(UnstorableValueError) as caught:
        await PlainStorage().save(checkpoint(1, **WRONG[path]))
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path} cannot be stored: it is a _thread.lock.")


@pytest.mark.parametrize("path", WRONG)
async def test_a_checkpoint_after_the_refused_first_one_is_whole(path: str) -> None:
    storage = PlainStorage()
    text = "long enough to be a part of its own " * 10
    with pytest.raises(UnstorableValueError):
        await storage.save(checkpoint(1, **WRONG[path] | {"state": {"text": text, **WRONG[path].get("state", {})}}))
    right = checkpoint(2, state={"text": text})
    await storage.save(right)
    assert await storage.load("flow-2") == right
