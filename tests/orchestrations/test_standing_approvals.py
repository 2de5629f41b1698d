"""Standing approvals of agents in workflows: in the session of the node, also after a restore."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    Content,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Message,
    ToolApprovalMiddleware,
    WorkflowAgent,
    WorkflowBuilder,
    create_always_approve_tool_response,
    create_always_approve_tool_with_arguments_response,
    tool,
)
from tests.agents.fake_clients import Model, call

SENT: list[str] = []


@tool(approval_mode="always_require")
def send(to: str) -> str:
    "Send a letter."
    SENT.append(to)
    return f"sent to {to}"


@pytest.fixture(autouse=True)
def nothing_sent():
    SENT.clear()


def office(*answers: Any, storage: Any = None, tool: Any = send) -> Any:
    secretary = Agent(Model(*answers), name="secretary", tools=[tool], middleware=[ToolApprovalMiddleware()])
    return WorkflowBuilder(secretary, name="office", checkpoint_storage=storage).build()


async def run(workflow: Any, message: Any = None, *, stream: bool = False, **more: Any) -> Any:
    if stream:
        return await workflow.run(message, stream=True, **more).get_final_response()
    return await workflow.run(message, **more)


async def last_checkpoint(storage: Any) -> str:
    return str((await storage.get_latest(workflow_name="office")).checkpoint_id)


def to(name: str, call_id: str = "c1") -> Content:
    return call("send", call_id, to=name)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "on disk"])
async def test_the_approval_is_in_the_checkpointed_session(stream: bool, on_disk: bool, tmp_path: Any) -> None:
    storage = FileCheckpointStorage(tmp_path) if on_disk else InMemoryCheckpointStorage()
    first = office(to("Ada"), "done", storage=storage)
    [request] = (await run(first, "Invite Ada.", stream=stream)).get_request_info_events()
    answer = create_always_approve_tool_response(request.data)
    await run(first, responses={request.request_id: answer}, stream=stream)

    later = office(to("Bob", "c2"), "done", storage=storage)
    await run(later, checkpoint_id=await last_checkpoint(storage), stream=stream)
    result = await run(later, "Invite Bob.", stream=stream)
    assert not result.get_request_info_events()
    assert SENT == ["Ada", "Bob"]


async def test_an_answer_after_a_restore_is_kept() -> None:
    storage = InMemoryCheckpointStorage()
    await run(office(to("Ada"), storage=storage), "Invite Ada.")
    later = office(to("Bob", "c2"), "done", storage=storage)
    [request] = (await run(later, checkpoint_id=await last_checkpoint(storage))).get_request_info_events()
    result = await run(later, responses={request.request_id: create_always_approve_tool_response(request.data)})
    assert not result.get_request_info_events()
    assert SENT == ["Ada", "Bob"]


def once(request: Content) -> Content:
    return request.to_function_approval_response(True)


@pytest.mark.parametrize("make", [create_always_approve_tool_response, once])
@pytest.mark.parametrize("changed", [{"description": "Send everything."}, {"schema": {"type": "object"}}],
                         ids=["other description", "other arguments"])  # fmt: skip
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_after_a_restore_an_answer_is_for_the_tool_that_the_person_was_asked_about(
    make: Any, changed: Any, stream: bool, tmp_path: Any
) -> None:
    storage = FileCheckpointStorage(tmp_path)
    await run(office(to("Ada"), storage=storage), "Invite Ada.", stream=stream)
    other = tool(lambda to: SENT.append(to), name="send", approval_mode="always_require",
                 **{"description": "Send a letter.", **changed})  # fmt: skip
    later = office(to("Bob", "c2"), "done", storage=storage, tool=other)
    [request] = (await run(later, checkpoint_id=await last_checkpoint(storage))).get_request_info_events()
    result = await run(later, responses={request.request_id: make(request.data)}, stream=stream)
    assert SENT == []
    [again] = result.get_request_info_events()
    assert again.data.function_call == request.data.function_call
    result = await run(later, responses={again.request_id: make(again.data)}, stream=stream)
    expected = ["Ada"] if make is once else ["Ada", "Bob"]
    assert expected == SENT
    assert len(result.get_request_info_events()) == (make is once)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("which", [0, -1], ids=["first request", "last request"])
async def test_a_workflow_agent_passes_the_approval_on(stream: bool, which: int) -> None:
    agent = WorkflowAgent(office(to("Ada"), to("Ada", "c2"), to("Bob", "c3")))
    session = agent.create_session()
    response = await run(agent, "Invite them.", stream=stream, session=session)
    request = response.user_input_requests[which]
    answer = Message("user", [create_always_approve_tool_with_arguments_response(request)])
    response = await run(agent, answer, stream=stream, session=session)
    assert SENT == ["Ada", "Ada"]
    assert response.user_input_requests


@pytest.mark.parametrize("kept", [True, False], ids=["with these arguments", "once"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_workflow_agent_passes_edited_arguments_on(stream: bool, kept: bool) -> None:
    agent = WorkflowAgent(office(to("Ada"), to("Bob", "c2"), "done"))
    session = agent.create_session()
    [request] = (await run(agent, "Invite them.", stream=stream, session=session)).user_input_requests
    edited = {"to": "Bob"}
    if kept:
        answer = create_always_approve_tool_with_arguments_response(request, arguments=edited)
    else:
        answer = request.to_function_approval_response(True, arguments=edited)
    response = await run(agent, Message("user", [answer]), stream=stream, session=session)
    expected = ["Bob", "Bob"] if kept else ["Bob"]
    assert expected == SENT
    assert bool(response.user_input_requests) is not kept
