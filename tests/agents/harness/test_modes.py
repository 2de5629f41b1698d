"""Modes of an agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench import AgentModeProvider, AgentSession, get_agent_mode, set_agent_mode
from tests.agents.harness.runs import call, shown
from tests.parts.errors import raises


async def test_the_model_reads_and_sets_the_mode():
    provider, session = AgentModeProvider(), AgentSession()
    assert provider.available_modes == ("plan", "execute")
    assert json.loads(await call(provider, session, "mode_get")) == {"mode": "plan"}
    reply = json.loads(await call(provider, session, "mode_set", {"mode": " Execute "}))
    assert reply["mode"] == "execute"
    [instructions] = await shown(provider, session)  # its own switch is not announced
    assert "current mode is execute" in instructions
    assert "- plan: Work together" in instructions
    assert "Expected one of: plan, execute" in await call(provider, session, "mode_set", {"mode": "sleep"})
    assert get_agent_mode(session) == "execute"


async def test_a_change_from_outside_is_told_once():
    provider, session = AgentModeProvider(), AgentSession()
    await shown(provider, session)
    assert set_agent_mode(session, "PLAN") == "plan"
    assert len(await shown(provider, session)) == 1
    set_agent_mode(session, "execute")
    session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    notice, _ = await shown(provider, session)
    assert notice.startswith("The mode was changed from plan to execute.")
    assert len([text for text in await shown(provider, session) if text.startswith("The mode was changed")]) == 0


async def test_there_and_back_again_is_no_change():
    provider, session = AgentModeProvider(), AgentSession()
    await shown(provider, session)
    set_agent_mode(session, "execute")
    set_agent_mode(session, "plan")
    assert len(await shown(provider, session)) == 1


async def test_modes_of_your_own_and_other_ones_later():
    provider = AgentModeProvider("m", mode_descriptions={"Draft": "Write.", "EDIT": "Mend."}, default_mode="edit")
    session = AgentSession()
    assert (provider.available_modes, provider.default_mode) == (("draft", "edit"), "edit")
    assert json.loads(await call(provider, session, "mode_get")) == {"mode": "edit"}
    later = AgentModeProvider("m", mode_descriptions={"sing": "Sing."}, instructions="{current_mode}|{available_modes}")
    assert (await shown(later, session))[-1] == "sing|- sing: Sing."
    assert get_agent_mode(session, source_id="m", available_modes=["sing"]) == "sing"


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode_descriptions": {}},
        {"mode_descriptions": {"a": "", " A": ""}},
        {"default_mode": "sleep"},
    ],
)
def test_modes_that_make_no_sense_are_refused(arguments: dict[str, Any]):
    with raises(ValueError):
        AgentModeProvider(**arguments)


def test_another_state_under_the_id_is_refused():
    session = AgentSession()
    session.state["agent_mode"] = "plan"
    with raises(TypeError, "AgentModeProvider"):
        get_agent_mode(session)
    with raises(ValueError, "sleep"):
        set_agent_mode(AgentSession(), "sleep")
