"""What a middleware is handed."""

from __future__ import annotations

from typing import Any

from agentbench.agents.middleware.contexts import AgentContext, ChatContext, FunctionInvocationContext


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
