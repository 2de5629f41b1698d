"""Messages in checkpoints: read where nothing of them was imported, and shared instead of copied."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agentbench._copying import is_atomic, isolate
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate
from agentbench.serialization.json_text import from_json, to_json


class City(BaseModel):
    name: str


CONTENTS = [
    Content.from_text("a", annotations=[{"title": "t", "raw_representation": object()}], raw_representation=object()),
    Content.from_function_call("c", "f", arguments={"a": (1, 2), "when": {3}}),
    Content.from_function_result("c", result=[Content.from_text("r"), Content.from_data(b"x", "image/png")]),
    Content.from_function_approval_request("i", Content.from_function_call("c", "f")),
    Content.from_dict({"type": "hologram", "depth": 3}),
]
VALUES: list[Any] = [
    *CONTENTS,
    Message("user", CONTENTS, message_id=0, delta=True, timestamp=1.5, usages={"total_tokens": 1}, raw=object()),
    Message("user", additional_properties={"nested": Message("user", "b")}),
    ChatResponse(text="a", usage_details={"input_token_count": 1}, additional_properties={"x": 1}),
    AgentResponse(text="a", response_format={"type": "object"}, agent_id="x", value=[1]),
    AgentResponse(text='{"name": "Oslo"}', response_format=City, value=City(name="Rome")),
    ChatResponseUpdate(text="a", role="assistant", additional_properties={}),
    AgentResponseUpdate(contents=CONTENTS),
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_values_come_back_with_everything_but_what_services_sent(value: Any) -> None:
    again = from_json(to_json(value))
    assert type(again) is type(value)
    assert again == value
    assert again.raw_representation is None
    assert getattr(again, "response_format", None) == getattr(value, "response_format", None)
    assert getattr(again, "value", None) == getattr(value, "value", None)
    assert getattr(again, "timestamp", None) == getattr(value, "timestamp", None)
    assert getattr(again, "usages", None) == getattr(value, "usages", None)


def test_arguments_that_json_does_not_have_come_back_as_they_were() -> None:
    assert from_json(to_json(CONTENTS[1])).arguments == {"a": (1, 2), "when": {3}}


def test_values_are_frozen_once_saved_and_so_they_are_shared() -> None:
    for value in VALUES:
        assert is_atomic(value)
        assert isolate({"messages": [value]})["messages"][0] is value


def test_a_subclass_may_hold_more_and_is_copied() -> None:
    class Note(Message):
        pass

    note = Note("user", "a")
    assert isolate([note])[0] is not note


READER = """
import asyncio, sys
from agentbench.checkpoints.file import FileCheckpointStorage

async def main():
    storage = FileCheckpointStorage(sys.argv[1])
    assert not any(name.startswith("agentbench.messages") for name in sys.modules)
    checkpoint = await storage.get_latest(workflow_name="chat")
    conversation, response = checkpoint.state["conversation"], checkpoint.state["response"]
    assert "agentbench.messages.message" in sys.modules
    assert "agentbench.workflows" not in sys.modules
    print(repr(conversation))
    print(repr(response))

asyncio.run(main())
"""


def test_a_checkpoint_is_read_in_a_process_that_has_not_imported_messages(tmp_path: Path) -> None:
    conversation = [Message("user", "hi", message_id=1), Message("assistant", CONTENTS)]
    state = {"conversation": conversation, "response": AgentResponse(text="bye", agent_id="x")}
    storage = FileCheckpointStorage(tmp_path)
    asyncio.run(storage.save(WorkflowCheckpoint(workflow_name="chat", graph_signature_hash="g", state=state)))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", READER, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == f"{conversation!r}\n{state['response']!r}\n"
