"""Conversations to evaluate."""

from __future__ import annotations

from typing import Any

from agentbench import Content, EvalItem, Message


def said(*texts: str) -> list[Message]:
    """Return messages, a user's first, then an assistant's, and so on."""
    return [Message("assistant" if place % 2 else "user", [text]) for place, text in enumerate(texts)]


def item(response: str = "Paris", query: str = "Capital of France?", **fields: Any) -> EvalItem:
    return EvalItem(said(query, response), **fields)


def with_call(name: str, arguments: Any, **fields: Any) -> EvalItem:
    """Return an item in which a tool is called."""
    call = Content.from_function_call("c1", name, arguments=arguments)
    result = Content.from_function_result("c1", result="rain")
    messages = [Message("user", ["Weather?"]), Message("assistant", [call]), Message("tool", [result])]
    return EvalItem([*messages, Message("assistant", ["Rain."])], **fields)
