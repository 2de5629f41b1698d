"""What a middleware is handed."""

from __future__ import annotations

from typing import Any

from agentbench.agents.middleware.contexts import AgentContext, ChatContext, FunctionInvocationContext

AGENT_NONE = ["session", "tools", "compaction_strategy", "tokenizer", "result"]
HOOKS = ["stream_transform_hooks", "stream_result_hooks", "stream_cleanup_hooks"]


def test_defaults_of_an_agent_context_are_none_or_new_and_empty() -> None:
    context, other = AgentContext(agent="a"), AgentContext(agent="a")
    assert [getattr(context, name) for name in AGENT_NONE] == [None] * len(AGENT_NONE)
    assert context.stream is False
    assert context.messages == []
    for name in ["options", "metadata", "kwargs", "client_kwargs", "function_invocation_kwargs"]:
        assert getattr(context, name) == {}
        assert getattr(context, name) is not getattr(other, name)
    for name in HOOKS:
        assert getattr(context, name) == []
        assert getattr(context, name) is not getattr(other, name)


def test_none_stands_for_an_empty_value_in_every_context() -> None:
    nothing: Any = None
    hooks: Any = (print,)
    shared = {"trace": 1}
    agent = AgentContext(agent="a", messages=None, options=None, metadata=shared, kwargs=nothing)
    assert (agent.messages, agent.options, agent.kwargs) == ([], {}, {})
    assert agent.metadata is shared
    chat = ChatContext("client", None, None, stream_transform_hooks=hooks, stream_result_hooks=nothing)
    assert (chat.messages, chat.options) == ([], {})
    assert (chat.stream_transform_hooks, chat.stream_result_hooks) == ([print], [])
    function = FunctionInvocationContext("function", {}, metadata=nothing, kwargs=nothing)
    assert (function.metadata, function.kwargs) == ({}, {})


def test_a_function_context_takes_its_parts_by_position() -> None:
    context = FunctionInvocationContext("function", {"a": 1}, "session", {"m": 1}, "result", {"k": 1})
    assert (context.function, context.arguments, context.session) == ("function", {"a": 1}, "session")
    assert (context.metadata, context.result, context.kwargs) == ({"m": 1}, "result", {"k": 1})


def test_a_context_shows_what_is_called_and_no_values() -> None:
    class Tool:
        name = "send_mail"

    context = FunctionInvocationContext(Tool(), {"to": "secret@example.com"}, kwargs={"token": "hidden"})
    assert repr(context) == "FunctionInvocationContext(send_mail(to), no result yet)"
    context.result = []
    assert repr(context) == "FunctionInvocationContext(send_mail(to), result=list)"
    assert repr(ChatContext(Tool(), [1])) == "ChatContext(client=Tool, messages=1, stream=False, no result yet)"
    assert repr(AgentContext(agent=Tool(), stream=True)) == (
        "AgentContext(agent='send_mail', messages=0, stream=True, no result yet)"
    )
