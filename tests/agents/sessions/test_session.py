"""Sessions as objects, and one run as its context providers see it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from copy import copy, deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from agentbench import (
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ContextProvider,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareException,
    SessionContext,
    chat_middleware,
)
from agentbench._clock import runtime_defaults
from agentbench.serialization.json_text import from_json, to_json
from agentbench.testing import CountingIds, set_runtime_defaults
from tests.parts.errors import raises
from tests.parts.tools import passing

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


def message(text: str) -> Message:
    return Message("user", [text])


def texts(messages: list[Message]) -> list[str]:
    return [each.text for each in messages]


def context(**given: Any) -> SessionContext:
    return SessionContext(**{"input_messages": [message("in")], **given})


class Provider(ContextProvider):
    pass


class Chat(ChatMiddleware):
    async def process(self, context: ChatContext, call_next: Any) -> None:
        await call_next()


class Function(FunctionMiddleware):
    async def process(self, context: Any, call_next: Any) -> None:
        await call_next()


class Around(AgentMiddleware):
    async def process(self, context: AgentContext, call_next: Any) -> None:
        await call_next()


# ---- messages ------------------------------------------------------------------------------------------------


def test_a_message_is_copied_and_carries_its_source() -> None:
    made, original = context(), message("a")
    made.extend_messages(Provider("p"), [original])
    made.extend_messages("text", [original])
    stored, other = made.context_messages["p"][0], made.context_messages["text"][0]
    assert stored.additional_properties == {"_attribution": {"source_id": "p", "source_type": "Provider"}}
    assert other.additional_properties == {"_attribution": {"source_id": "text"}}
    assert original.additional_properties == {}
    assert stored == original
    stored.contents.append(stored.contents[0])
    assert original.text == "a"


def test_a_message_retains_the_first_source_it_got() -> None:
    made = context()
    made.extend_messages(Provider("first"), [message("a")])
    made.extend_messages("second", made.get_messages())
    assert made.context_messages["second"][0].additional_properties["_attribution"]["source_id"] == "first"
    assert made.context_messages["second"][0] is not made.context_messages["first"][0]


def test_a_source_without_messages_has_its_place() -> None:
    made = context()
    made.extend_messages("empty", [])
    made.extend_messages("b", [message("b")])
    made.extend_messages("empty", [message("e")])
    assert texts(made.get_messages()) == ["e", "b"]


@pytest.mark.parametrize("source", [None, 5, object(), SimpleNamespace(source_id=None)])
def test_what_is_no_source_is_refused(source: Any) -> None:
    for extend, added in (
        ("extend_messages", []),
        ("extend_instructions", "x"),
        ("extend_tools", []),
        ("extend_middleware", []),
    ):
        with pytest.raises(TypeError):
            getattr(context(), extend)(source, added)


def test_texts_in_the_place_of_messages_are_refused() -> None:
    wrong: Any = ["hi"]
    with raises(TypeError, "hi"):
        context().extend_messages("a", wrong)


def filled() -> SessionContext:
    made = context()
    made.extend_messages("b", [message("b")])
    made.extend_messages("a", [message("a")])
    made.extend_messages("b", [message("b2")])
    made._response = AgentResponse(messages=[Message("assistant", ["out"])])
    return made


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["b", "b2", "a"]),
        ({"exclude_sources": {"a"}}, ["b", "b2"]),
        ({"exclude_sources": "a"}, ["b", "b2"]),
        ({"sources": {"a"}}, ["a"]),
        ({"sources": ["b", "unknown"]}, ["b", "b2"]),
        ({"sources": "a"}, ["a"]),
        ({"sources": set()}, []),
        ({"sources": {"a"}, "exclude_sources": {"a"}}, []),
        ({"sources": set(), "include_input": True}, ["in"]),
        ({"include_input": True, "include_response": True}, ["b", "b2", "a", "in", "out"]),
    ],
)
def test_messages_are_chosen_by_source(asked: dict[str, Any], expected: list[str]) -> None:
    assert texts(filled().get_messages(**asked)) == expected


# ---- instructions and tools ------------------------------------------------------------------------------------


def test_instructions_are_appended_and_their_sources_noted() -> None:
    made = context(instructions=["base"])
    made.extend_instructions("one", "i1")
    made.extend_instructions(Provider("two"), ["i2", "i3"])
    assert made.instructions == ["base", "i1", "i2", "i3"]
    assert made.instruction_sources == [None, "one", "two", "two"]


def test_a_tool_is_noted_with_its_source_on_a_copy() -> None:
    def add(a: int) -> int:
        return a

    tool = FunctionTool(add, additional_properties={"x": 1})
    made, plain = context(), {"type": "web_search"}
    made.extend_tools(Provider("p"), [tool, plain, add])
    noted = made.tools[0]
    assert noted.additional_properties == {"x": 1, "context_source": "p"}
    assert tool.additional_properties == {"x": 1}
    assert noted.name == "add"
    assert made.tools[1:] == [plain, add]
    made.extend_tools("p", [noted])
    assert made.tools[-1] is noted


# ---- middleware ------------------------------------------------------------------------------------------------


@chat_middleware
async def around_chat(context: Any, call_next: Any) -> None:
    await call_next()


def test_middleware_is_stored_by_source_and_handed_out_in_their_order() -> None:
    chat, function, other = Chat(), Function(), Chat()
    made = context(middleware={"first": [chat]})
    made.extend_middleware("second", [function, [around_chat]])
    made.extend_middleware(Provider("first"), other)
    assert made.middleware == {"first": [chat, other], "second": [function, around_chat]}
    assert made.get_middleware() == [chat, other, function, around_chat]


@pytest.mark.parametrize("given", [Around(), [Chat(), Around()], passing])
def test_middleware_for_whole_runs_is_refused(given: Any) -> None:
    made = context()
    with raises(MiddlewareException, "'p'"):
        made.extend_middleware(Provider("p"), given)
    assert made.middleware == {}
    with pytest.raises(MiddlewareException):
        context(middleware={"p": given})


@pytest.mark.parametrize("given", [5, "x", lambda a, b: None, Chat])
def test_what_is_no_middleware_is_refused(given: Any) -> None:
    with pytest.raises(MiddlewareException):
        context().extend_middleware("p", given)
