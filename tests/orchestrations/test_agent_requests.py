"""Requests of an agent to a person: approvals, and tools that only a person can carry out."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentExecutor,
    AgentExecutorRequest,
    AgentSession,
    Content,
    FileCheckpointStorage,
    FunctionTool,
    InMemoryCheckpointStorage,
    Message,
    Workflow,
    WorkflowAgent,
    WorkflowBuilder,
    WorkflowRunState,
    tool,
)
from tests.agents.fake_clients import Model, call
from tests.orchestrations.nodes import agent, asked
from tests.parts.errors import raises

SENT: list[str] = []


@tool(approval_mode="always_require")
def send(to: str) -> str:
    "Send a letter."
    SENT.append(to)
    return f"sent to {to}"


ASK = FunctionTool(name="ask", description="Asks a person.", input_model={"type": "object", "properties": {}})


@pytest.fixture(autouse=True)
def nothing_sent():
    SENT.clear()


def secretary(*, raises: bool = False) -> Agent:
    calls = [call("send", "c1", to="Ada"), call("send", "c2", to="Bob")]
    return Agent(Model(calls, "all sent"), name="secretary", tools=[send], raise_on_user_input=raises)


def office(storage: Any = None, *, raises: bool = False) -> tuple[Agent, Agent, Any]:
    first, clerk = secretary(raises=raises), agent("clerk")
    return (
        first,
        clerk,
        WorkflowBuilder(first, name="office", checkpoint_storage=storage).add_edge(first, clerk).build(),
    )


async def first_requests(workflow: Any) -> Any:
    return (await workflow.run("Invite them.")).get_request_info_events()


def approve(event: Any, approved: bool = True) -> Any:
    return event.data.to_function_approval_response(approved)


async def ask(workflow: Any, message: Any, *, stream: bool) -> Any:
    return await (workflow.run(message, stream=True).get_final_response() if stream else workflow.run(message))


def kinds(messages: list[Message]) -> list[tuple[str, list[str]]]:
    return [(message.role, [content.type for content in message.contents]) for message in messages]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("raises", [False, True])
async def test_a_run_waits_for_all_approvals_and_then_goes_on_with_the_whole_conversation(stream, raises):
    first, clerk, workflow = office(raises=raises)
    waiting = await ask(workflow, "Invite them.", stream=stream)
    one, two = waiting.get_request_info_events()
    assert waiting.get_final_state() is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    assert (one.data.type, one.response_type) == ("function_approval_request", Content)
    assert one.request_id != one.data.id
    assert bool(waiting.outputs) is (not raises or stream)
    assert asked(clerk) == []

    still = await workflow.run(responses={one.request_id: approve(one)})
    assert still.get_final_state() is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    assert (len(asked(first)), SENT) == (1, [])

    done = await workflow.run(responses={two.request_id: approve(two)})
    assert done.get_final_state() is WorkflowRunState.IDLE
    assert sorted(SENT) == ["Ada", "Bob"]
    assert [output.text for output in done.outputs] == ["all sent", "CLERK"]
    # What the next agent's model sees is a conversation that services accept.
    (seen,) = clerk.client.asked
    assert kinds(seen.messages) == [
        ("user", ["text"]),
        ("assistant", ["function_call", "function_call"]),
        ("tool", ["function_result", "function_result"]),
        ("assistant", ["text"]),
    ]
    assert (seen.messages[0].text, seen.messages[-1].text) == ("Invite them.", "all sent")


@pytest.mark.parametrize("order", ["answer first", "withdraw first"])
async def test_an_agent_goes_on_with_the_answers_to_the_requests_that_were_not_withdrawn(order, tmp_path):
    first, _, workflow = office(FileCheckpointStorage(tmp_path))
    one, two = await first_requests(workflow)
    if order == "answer first":
        await workflow.run(responses={one: approve(one)})
        done = await workflow.cancel_pending_requests(two)
    else:
        await workflow.cancel_pending_requests(two)
        done = await workflow.run(responses={one: approve(one)})
    assert (done.get_final_state(), SENT) == (WorkflowRunState.IDLE, ["Ada"])
    (_, seen) = first.client.asked
    results = [one for message in seen.messages for one in message.contents if one.type == "function_result"]
    assert sorted(one.call_id for one in results) == ["c1", "c2"]


async def test_an_agent_whose_requests_were_all_withdrawn_waits_for_its_next_message():
    _, _, workflow = office()
    await first_requests(workflow)
    done = await workflow.cancel_pending_requests()
    assert (done.get_final_state(), len(done.warnings), done.outputs) == (WorkflowRunState.IDLE, 2, [])
    again = await workflow.run("Never mind.")
    assert (SENT, [output.text for output in again.outputs]) == ([], ["all sent", "CLERK"])


def office_inside(depth: int) -> tuple[Any, WorkflowAgent, Workflow]:
    """Return an agent, the workflow around it as an agent, and a workflow around that, `depth` times."""
    calls = [call("send", "c1", to="Ada"), call("send", "c2", to="Bob")]
    first = agent("first", calls, "all sent", "later", tools=[send])
    inner = WorkflowBuilder(first).build().as_agent("inner")
    workflow = WorkflowBuilder(inner).build()
    for level in range(1, depth):
        workflow = WorkflowBuilder(workflow.as_agent(f"level {level}")).build()
    return first, inner, workflow


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_workflow_as_an_agent_in_a_workflow_takes_a_message_after_all_requests_were_withdrawn(depth):
    first, inner, workflow = office_inside(depth)
    await first_requests(workflow)
    done = await workflow.cancel_pending_requests()
    assert (done.get_final_state(), inner.pending_requests) == (WorkflowRunState.IDLE, {})
    assert [output.text for output in (await workflow.run("Never mind.")).outputs] == ["all sent"]
    results = [one for message in first.client.asked[-1].messages for one in message.contents]
    assert {"c1", "c2"} <= {one.call_id for one in results if one.type == "function_result"}
    assert SENT == []


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("order", ["answer first", "withdraw first"])
async def test_a_workflow_as_an_agent_in_a_workflow_goes_on_with_the_other_answers(order, depth):
    _, inner, workflow = office_inside(depth)
    one, two = await first_requests(workflow)
    if order == "answer first":
        await workflow.run(responses={one: approve(one)})
        done = await workflow.cancel_pending_requests(two)
    else:
        await workflow.cancel_pending_requests(two)
        done = await workflow.run(responses={one: approve(one)})
    assert (done.get_final_state(), SENT, inner.pending_requests) == (WorkflowRunState.IDLE, ["Ada"], {})
    assert [output.text for output in done.outputs] == ["all sent"]
    assert [output.text for output in (await workflow.run("And now?")).outputs] == ["later"]


async def test_answers_of_one_call_reach_the_agent_as_one_message():
    first, _, workflow = office()
    waiting = await workflow.run("Invite them.")
    await workflow.run(responses={e.request_id: approve(e, approved=False) for e in waiting.get_request_info_events()})
    assert len(asked(first)) == 2
    assert SENT == []


async def test_a_tool_without_a_function_is_carried_out_by_a_person():
    clerk = agent("clerk")
    first = Agent(Model(call("ask", "c1"), "It is 42."), name="first", tools=[ASK])
    workflow = WorkflowBuilder(first).add_edge(first, clerk).build()
    (event,) = await first_requests(workflow)
    assert event.data.type == "function_call"
    done = await workflow.run(responses={event: Content.from_function_result("c1", result="42")})
    assert [output.text for output in done.outputs] == ["It is 42.", "CLERK"]
    assert kinds(clerk.client.asked[0].messages)[1:3] == [
        ("assistant", ["function_call"]),
        ("tool", ["function_result"]),
    ]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_messages_that_come_while_requests_are_open_wait_for_the_next_turn():
    first, _, workflow = office()
    events = await first_requests(workflow)
    await workflow.run(AgentExecutorRequest([Message("user", "By the way: use blue ink.")], should_respond=False))
    await workflow.run(responses={event: approve(event) for event in events})
    await workflow.run("Thanks.")
    assert asked(first)[-1][-2:] == ["By the way: use blue ink.", "Thanks."]
    assert asked(first)[-1].count("Invite them.") == 1


@pytest.mark.parametrize("place", ["memory", "file"])
@pytest.mark.parametrize("together", [True, False])
async def test_answers_may_come_in_another_process(place, together, tmp_path):
    storage: Any = InMemoryCheckpointStorage() if place == "memory" else FileCheckpointStorage(tmp_path)
    await office(storage)[2].run("Invite them.")
    for wanted in (2,) if together else (1, 1):
        if place == "file":
            storage = FileCheckpointStorage(tmp_path)
        saved = await storage.get_latest(workflow_name="office")
        first, clerk, workflow = office(storage)
        first.client.answers = ["all sent"]
        events = list(saved.pending_request_info_events.values())[:wanted]
        done = await workflow.run(
            checkpoint_id=saved.checkpoint_id, responses={e.request_id: approve(e) for e in events}
        )
    assert [output.text for output in done.outputs] == ["all sent", "CLERK"]
    assert sorted(SENT) == ["Ada", "Bob"]
    assert asked(clerk)[0][0] == "Invite them."
    assert kinds(first.client.asked[0].messages) == [
        ("user", ["text"]),
        ("assistant", ["function_call", "function_call"]),
        ("tool", ["function_result", "function_result"]),
    ]


async def test_a_session_that_cannot_be_read_begins_anew(caplog):
    node = AgentExecutor(agent("a"))
    state = {**await node.on_checkpoint_save(), "agent_session": {"state": 1}}
    with caplog.at_level(logging.WARNING, "agentbench"):
        await node.on_checkpoint_restore(state)
    assert "session of agent node 'a' cannot be restored" in caplog.text
    await node.on_checkpoint_restore({})
    assert (node.session.state, (await node.on_checkpoint_save())["cache"]) == ({}, [])


async def test_a_session_in_its_own_written_form_is_read_too():
    node, session = AgentExecutor(agent("a")), AgentSession(session_id="s1")
    session.state["notes"] = [Message("user", "hi")]
    await node.on_checkpoint_restore({"agent_session": session.to_dict()})
    assert node.session == session
    assert AgentSession.from_dict((await node.on_checkpoint_save())["agent_session"]) == session


async def test_a_saved_state_does_not_change_with_the_node():
    node = AgentExecutor(agent("a"))
    workflow = WorkflowBuilder(node).build()
    saved = await node.on_checkpoint_save()
    await workflow.run("hi")
    assert (saved["cache"], saved["full_conversation"], saved["agent_session"]["state"]) == ([], [], {})
    before = await node.on_checkpoint_save()
    await workflow.run("again")
    assert len(before["agent_session"]["state"]["in_memory"]["messages"]) == 2


IN_ANOTHER_PROCESS = """
import asyncio, sys
from agentbench import FileCheckpointStorage

async def main():
    storage = FileCheckpointStorage(sys.argv[1])
    saved = await storage.get_latest(workflow_name="office")
    assert "agentbench.agents.agent" not in sys.modules
    from tests.orchestrations.test_agent_requests import approve, office
    first, clerk, workflow = office(storage)
    first.client.answers = ["all sent"]
    answers = {key: approve(event) for key, event in saved.pending_request_info_events.items()}
    done = await workflow.run(checkpoint_id=saved.checkpoint_id, responses=answers)
    print([output.text for output in done.outputs], clerk.client.asked[0].texts[0])

asyncio.run(main())
"""

READ_ALONE = """
import asyncio, sys
from agentbench import FileCheckpointStorage

async def main():
    for saved in await FileCheckpointStorage(sys.argv[1]).list_checkpoints(workflow_name="office"):
        print([(type(one.data).__name__, one.source_id) for sent in saved.messages.values() for one in sent])

asyncio.run(main())
"""


def run_script(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_process_that_knows_only_the_storage_answers_and_goes_on(tmp_path):
    await office(FileCheckpointStorage(tmp_path))[2].run("Invite them.")
    assert run_script(IN_ANOTHER_PROCESS, tmp_path) == "['all sent', 'CLERK'] Invite them.\n"
    # What agents sent each other is read without the workflow, too.
    assert run_script(READ_ALONE, tmp_path).splitlines() == [
        "[]",
        "[('Content', 'internal:secretary'), ('Content', 'internal:secretary')]",
        "[('AgentExecutorResponse', 'secretary')]",
        "[('AgentExecutorResponse', 'clerk')]",
        "[]",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda request: True,
        lambda request: request,
        lambda request: Content.from_text("yes"),
        lambda request: Content.from_function_result("c1", result="sent"),
        lambda request: Content.from_function_approval_response(True, "another", request.function_call),
    ],
)
async def test_an_answer_that_is_none_is_refused_with_the_one_that_is_and_the_request_stays_open(wrong):
    *_, workflow = office()
    first, second = await first_requests(workflow)
    with raises(ValueError, "request.data.to_function_approval_response(True)"):
        await workflow.run(responses={first: approve(first), second: wrong(second.data)})
    assert SENT == []
    await workflow.run(responses={first: approve(first), second: approve(second)})
    assert sorted(SENT) == ["Ada", "Bob"]


async def test_a_result_for_another_call_is_refused_with_the_id_of_the_call():
    workflow = WorkflowBuilder(Agent(Model(call("ask", "c1"), "thanks"), name="clerk", tools=[ASK])).build()
    (request,) = await first_requests(workflow)
    with raises(ValueError, "'c1'", "Content.from_function_result", "result=..."):
        await workflow.run(responses={request: Content.from_function_result("c2", result="42")})
    done = await workflow.run(responses={request: Content.from_function_result("c1", result="42")})
    assert done.get_outputs()[0].text == "thanks"


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_message_while_requests_are_open_does_not_repeat_what_the_agent_was_asked():
    first, clerk, workflow = office()
    await workflow.run("Invite them.")
    first.client.answers = ["Later, then."]
    await workflow.run("Wait.")
    assert [text for text in asked(first)[-1] if text] == ["Invite them.", "Wait."]
    assert [text for text in asked(clerk)[0] if text] == ["Invite them.", "Wait.", "Later, then."]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_workflow_that_is_the_agent_of_a_node_asks_each_question_once(stream):
    inner = office()[2]
    workflow = WorkflowBuilder(inner.as_agent(name="team")).build()
    waiting = await ask(workflow, "Invite them.", stream=stream)
    events = waiting.get_request_info_events()
    assert [event.data.function_call.name for event in events] == ["send", "send"]
    done = await workflow.run(responses={event: approve(event) for event in events})
    assert done.get_final_state() is WorkflowRunState.IDLE
    assert sorted(SENT) == ["Ada", "Bob"]
    assert [message.text for output in done.outputs for message in output.messages] == ["all sent", "CLERK"]
