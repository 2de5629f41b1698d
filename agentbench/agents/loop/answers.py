"""The answer of a request, put together of what the model said and what the loop adds to it.

Pure: nothing that is given is changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from agentbench.agents.loop.call import Outcome
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.usage import UsageDetails, add_usage_details


class Addition(NamedTuple):
    """What the loop puts into the answer besides what the model said.

    Attributes:
        role: `tool` for results, `assistant` for questions to a person.
        contents: Those.
    """

    role: str
    contents: list[Content]


def additions_of(questions: list[Content], results: list[Content]) -> list[Addition]:
    """Return what follows an answer: questions to a person first, then results."""
    additions = [Addition("assistant", questions)] if questions else []
    return [*additions, Addition("tool", results)] if results else additions


def with_additions(messages: Sequence[Message], additions: Iterable[Addition]) -> list[Message]:
    """Return messages with additions behind them, in the way in which folding their updates would put them.

    A call that is handed back replaces the one that it is a copy of.
    """
    said = list(messages)
    for role, contents in additions:
        left = contents
        if role == "assistant":
            left = _replace_calls(said, contents)
        if not left:
            continue
        if said and said[-1].role == role:
            said[-1] = _with_contents(said[-1], [*said[-1].contents, *left])
        else:
            said.append(Message(role, left))
    return said


def _replace_calls(said: list[Message], contents: list[Content]) -> list[Content]:
    """Put handed-back calls in the place of their originals; return the contents that are none."""
    back = {one.call_id: one for one in contents if one.type == "function_call" and one.call_id}
    if not back:
        return contents
    used: set[str | None] = set()
    for index, message in enumerate(said):
        ids = {one.call_id for one in message.contents if one.type == "function_call"} & back.keys()
        if ids:
            used |= ids
            said[index] = _with_contents(
                message,
                [
                    back[one.call_id or ""] if one.type == "function_call" and one.call_id in ids else one
                    for one in message.contents
                ],
            )
    return [one for one in contents if one.type != "function_call" or one.call_id not in used]


def _with_contents(message: Message, contents: list[Content]) -> Message:
    copied = copy.copy(message)
    copied.contents = contents
    return copied


def merged(responses: Sequence[ChatResponse[Any]], said: list[Message]) -> ChatResponse[Any]:
    """Return the last of several answers, with other messages, the usage of all, and what only earlier ones told."""
    if not responses:
        return ChatResponse(messages=said)
    whole = copy.copy(responses[-1])
    whole.messages = said
    whole.additional_properties = {}
    usage: UsageDetails | None = None
    for response in responses:
        if response.usage_details is not None:
            usage = add_usage_details(usage, response.usage_details)
        whole.additional_properties.update(response.additional_properties)
    whole.usage_details = usage
    for name in _LATEST:
        if not getattr(whole, name):
            setattr(whole, name, next((told for r in reversed(responses) if (told := getattr(r, name))), None))
    return whole


_LATEST: Final = ("response_id", "conversation_id", "model", "created_at", "finish_reason")


def sorted_out(questions: Iterable[Content], outcomes: Iterable[Outcome]) -> tuple[list[Content], list[Content], bool]:
    """Return all questions, those of the outcomes last; the results; and whether a middleware ended the loop."""
    asked, results, has_ended = list(questions), [], False
    for outcome in outcomes:
        asked.extend(outcome.requests)
        if outcome.result is not None:
            results.append(outcome.result)
        has_ended = has_ended or outcome.ended
    return asked, results, has_ended
