"""A session shows its ids and what it holds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    Call,
    InMemoryHistoryProvider,
    Message,
    ScriptedChatClient,
    SecretString,
    ToolApprovalMiddleware,
    create_always_approve_tool_response,
    create_always_approve_tool_with_arguments_response,
    tool,
)
from agentbench._text.escape import MASK
from agentbench.notebook.cards.session import approvals
from agentbench.notebook.cards.session import session as view
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_bundle


def lines(session: Any) -> list[str]:
    return str(view(session)["text/plain"]).splitlines()


def filled() -> AgentSession:
    session = AgentSession(session_id="s-1")
    state: dict[str, Any] = {}
    said = [Message("user", ["What is 2 < 3?"]), Message("assistant", ["<b>True</b>\nindeed"])]
    asyncio.run(InMemoryHistoryProvider().save_messages("s-1", said, state=state))
    session.state.update(in_memory=state, todo={"items": [1, 2], "next_id": 3}, tags=["a"], n=5)
    return session


def test_it_tells_ids_keys_sizes_and_how_many_messages_are_stored() -> None:
    session = filled()
    assert lines(session) == [
        "AgentSession: s-1, 2 messages",
        "state",
        "  in_memory  2 messages  last by assistant: <b>True</b> indeed",
        "  todo       2 keys      {'items': [1, 2], 'next_id': 3}",
        "  tags       1 item      ['a']",
        "  n          int         5",
    ]
    session.service_session_id = "svc"
    assert lines(session)[0] == "AgentSession: s-1, stored by the service as svc, 2 messages"


@pytest.mark.parametrize("how", ["key", "nested", "object", "message"])
def test_secrets_are_hidden(how: str) -> None:
    session = AgentSession()
    states: dict[str, dict[str, Any]] = {
        "key": {"api_key": "s3cr3t", "password": {"deep": "s3cr3t"}},
        "nested": {"mine": {"token": "s3cr3t", "list": [{"authorization": "s3cr3t"}]}},
        "object": {"x": SecretString("s3cr3t"), "y": [SecretString("s3cr3t")]},
        "message": {"h": {"messages": [Message("user", [""], additional_properties={"token": "s3cr3t"})]}},
    }
    session.state = states[how]
    assert "s3cr3t" not in str(view(session))
    assert "s3cr3t" not in repr(session)


def test_a_state_that_is_broken_is_no_reason_to_fail() -> None:
    session: Any = AgentSession(session_id="s")
    session.state = None
    assert lines(session) == ["AgentSession: s, 0 messages"]


def test_many_keys_are_counted_rather_than_shown() -> None:
    session = AgentSession()
    session.state = {f"key-{number}": number for number in range(100)}
    assert "40 more" in lines(session)[-1]


def approved(**arguments: Any) -> AgentSession:
    """A session in which a person approved two tools for good, one of them with these arguments."""
    session, client = AgentSession(session_id="s"), ScriptedChatClient([[Call("wipe"), Call("login", arguments)], "ok"])
    wipe = tool(lambda: "wiped", name="wipe", approval_mode="always_require")
    login = tool(lambda **_: "in", name="login", approval_mode="always_require", schema={"type": "object"})
    agent = Agent(client, tools=[wipe, login], middleware=[ToolApprovalMiddleware()])
    first, second = asyncio.run(agent.run("go", session=session)).user_input_requests
    answers = [
        create_always_approve_tool_response(first),
        create_always_approve_tool_with_arguments_response(second),
    ]
    asyncio.run(agent.run(Message("user", answers), session=session))
    return session


def approval_lines(session: AgentSession) -> list[str]:
    return str(approvals(session.approvals)["text/plain"]).splitlines()


def test_standing_approvals_are_listed_without_secrets() -> None:
    session = approved(user="<b>ada</b>", password="s3cr3t")
    head, title, *rows = approval_lines(session)
    assert (head, title) == ("Standing approvals: 2 approvals", "approvals")
    assert [row.split() for row in rows] == [
        ["wipe", "any", "arguments", "active"],
        ["login", '{"password":', f'"{MASK}",', '"user":', '"<b>ada</b>"}', "active"],
    ]
    assert "s3cr3t" not in str(approvals(session.approvals))
    assert "  tool_approvals  2 approvals  wipe with any arguments; login with" in str(view(session)["text/plain"])
    assert "s3cr3t" not in str(view(session))
    for attack in ATTACKS:
        check_bundle(approvals(approved(user=attack).approvals))


def test_inactive_approvals_say_how_they_become_active(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session = approved()
    monkeypatch.setenv("AGENTBENCH_CONFIG_DIR", str(tmp_path))
    assert approval_lines(session)[0].endswith("2 inactive: look at them, then session.approvals.confirm()")
    session.approvals.revoke()
    assert approval_lines(session) == ["Standing approvals: no approvals"]
