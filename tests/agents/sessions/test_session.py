"""Sessions: ids, equality, copies, and what registered types become."""

from __future__ import annotations

import pickle
import subprocess
import sys
from copy import copy, deepcopy
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agentbench import AgentSession, Message
from agentbench._clock import runtime_defaults
from agentbench.serialization.json_text import from_json, to_json
from agentbench.testing import CountingIds, set_runtime_defaults
from tests.parts.errors import raises

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("given", [None, ""])
def test_a_session_without_an_id_gets_one(given: str | None) -> None:
    assert UUID(AgentSession(session_id=given).session_id).version == 4
    assert AgentSession().session_id != AgentSession().session_id


def test_ids_come_from_the_source_of_ids() -> None:
    before = runtime_defaults()
    set_runtime_defaults(ids=CountingIds())
    try:
        assert [AgentSession().session_id, AgentSession().session_id] == ["session-1", "session-2"]
    finally:
        set_runtime_defaults(ids=before.ids)


def test_the_id_does_not_change_and_the_id_of_the_service_may() -> None:
    session = AgentSession(session_id="s", service_session_id="svc")
    with pytest.raises(AttributeError):
        session.session_id = "t"
    session.service_session_id = "other"
    assert (session.session_id, session.service_session_id, session.state) == ("s", "other", {})


def test_an_id_that_is_no_text_is_refused() -> None:
    wrong: Any = UUID(int=1)
    with raises(TypeError, "session_id", "UUID"):
        AgentSession(session_id=wrong)


def test_a_session_is_written_in_four_fields() -> None:
    session = AgentSession(session_id="s", service_session_id="svc")
    session.state["a"] = {"b": [1]}
    data = session.to_dict()
    assert data == {"type": "session", "session_id": "s", "service_session_id": "svc", "state": {"a": {"b": [1]}}}
    assert AgentSession.from_dict(data) == session


def test_subclasses_are_read_as_themselves() -> None:
    class Own(AgentSession):
        pass

    assert type(Own.from_dict({"session_id": "s"})) is Own


def test_sessions_are_equal_by_value_and_hashed_by_their_id() -> None:
    one, other = AgentSession(session_id="s"), AgentSession(session_id="s")
    assert one == other
    assert len({one, other}) == 1
    one.state["a"] = 1
    assert one != other
    assert hash(one) == hash(other)
    assert AgentSession(session_id="s", service_session_id="x") != other
    assert other != "s"


@pytest.mark.parametrize("twin_of", [copy, deepcopy, lambda session: pickle.loads(pickle.dumps(session))])
def test_copies_are_equal(twin_of: Any) -> None:
    session = AgentSession(session_id="s")
    session.state["m"] = [Message("user", ["hi"])]
    assert twin_of(session) == session
    assert (twin_of(session).state is session.state) == (twin_of is copy)


def test_a_session_may_be_part_of_what_a_checkpoint_holds() -> None:
    session = AgentSession(session_id="s", service_session_id="svc")
    session.state["in_memory"] = {"messages": [Message("user", ["hi"])], "seen": (1, 2)}
    text = to_json({"session": session})
    assert from_json(text) == {"session": session}
    program = (
        "import sys; from agentbench.serialization.json_text import from_json;"
        "session = from_json(sys.argv[1])['session'];"
        "assert repr(session.state['in_memory']['messages']) == \"[Message('user', 'hi')]\""
    )
    subprocess.run([sys.executable, "-c", program, text], cwd=ROOT, check=True)


def test_its_repr_names_ids_and_what_it_holds_and_no_content() -> None:
    session = AgentSession(session_id="s")
    assert repr(session) == "AgentSession(session_id='s', no state)"
    session.service_session_id = "svc"
    session.state.update(in_memory={"messages": []}, api_key="s3cr3t")
    assert repr(session) == "AgentSession(session_id='s', service_session_id='svc', state of 'in_memory', 'api_key')"
