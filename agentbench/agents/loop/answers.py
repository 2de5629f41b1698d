"""The answer of a request, put together of the answers of the model and what the loop adds to them.

Pure: no message and no response is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agentbench.agents.loop.call import Outcome
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.usage import UsageDetails, add_usage_details


class Addition(NamedTuple):
    """What the loop adds to an answer: results, in the role `tool`, or requests to a person (`assistant`)."""

    role: str
    contents: list[Content]


def sort_outcomes(
    requests: Iterable[Content], outcomes: Iterable[Outcome]
) -> tuple[list[Content], list[Addition], bool]:
    """Return all requests, those of the outcomes last; what follows the answer; whether a middleware ended the loop."""
    requests, results, has_ended = list(requests), [], False
    for outcome in outcomes:
        requests.extend(outcome.requests)
        if outcome.result is not None:
            results.append(outcome.result)
        has_ended = has_ended or outcome.ended
    additions = [Addition("assistant", requests)] if requests else []
    return requests, [*additions, Addition("tool", results)] if results else additions, has_ended


def with_additions(messages: Sequence[Message], additions: Iterable[Addition]) -> list[Message]:
    """Return messages with additions behind them, as the fold of their updates has them.

    A call that is handed back replaces the one that it is a copy of.
    """
    combined = list(messages)
    for role, contents in additions:
        left = _replace_calls(combined, contents) if role == "assistant" else contents
        if left and combined and combined[-1].role == role:
            combined[-1] = copy.copy(combined[-1])
            combined[-1].contents = [*combined[-1].contents, *left]
        elif left:
            combined.append(Message(role, left))
    return combined


def _replace_calls(messages: list[Message], contents: list[Content]) -> list[Content]:
    """Put handed-back calls in the place of their originals, and return the other contents."""
    back = {one.call_id: one for one in contents if one.type == "function_call" and one.call_id}
    if not back:
        return contents
    used: set[str] = set()
    for index, message in enumerate(messages):
        ids = {one.call_id for one in message.contents if one.type == "function_call" and one.call_id} & back.keys()
        if ids:
            used |= ids
            messages[index] = copied = copy.copy(message)
            copied.contents = [
                back[one.call_id or ""] if one.type == "function_call" and one.call_id in ids else one
                for one in message.contents
            ]
    return [one for one in contents if one.type != "function_call" or one.call_id not in used]


def merge_responses(responses: Sequence[ChatResponse[Any]], messages: list[Message]) -> ChatResponse[Any]:
    """Return the last response with other messages, the usage of all, and fields that only earlier ones have."""
    if not responses:
        return ChatResponse(messages=messages)
    whole = copy.copy(responses[-1])
    whole.messages = messages
    whole.additional_properties = {}
    usage: UsageDetails | None = None
    for response in responses:
        if response.usage_details is not None:
            usage = add_usage_details(usage, response.usage_details)
        whole.additional_properties.update(response.additional_properties)
    whole.usage_details = usage
    for name in ("response_id", "conversation_id", "model", "created_at", "finish_reason"):
        for response in reversed(responses):
            if value := getattr(response, name):
                setattr(whole, name, value)
                break
    return whole
