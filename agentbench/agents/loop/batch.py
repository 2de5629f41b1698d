"""The calls of one answer: what is done with them, and the calls themselves, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from agentbench.agents.loop.call import Calling, Outcome, ToolCall, changed, unknown_tool
from agentbench.agents.loop.toolbox import ASK, HAND_BACK, RUN, UNKNOWN, Toolbox
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message


class Batch(NamedTuple):
    """What is done with the calls of one answer.

    Attributes:
        calls: To be made now.
        questions: For a person, instead of calls or beside them.
    """

    calls: list[Content]
    questions: list[Content]


def open_calls(messages: Iterable[Message]) -> list[Content]:
    """Return the calls of an answer that it does not hold the result of; one id is one call."""
    calls: list[Content] = []
    done: set[str] = set()
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                calls.append(content)
            elif content.type == "function_result" and content.call_id:
                done.add(content.call_id)
    if len(calls) < 2 and not done:
        return calls
    found: list[Content] = []
    for call in calls:
        if not call.call_id or call.call_id not in done:
            found.append(call)
            done.add(call.call_id or "")
    return found


def plan_batch(calls: Sequence[Content], toolbox: Toolbox, *, terminate_on_unknown: bool, ask_alone: bool) -> Batch:
    """Decide what is done with calls: the first one that is not simply run decides for all.

    Args:
        calls: In the order in which the model made them.
        toolbox: The tools of the request.
        terminate_on_unknown: Whether a tool that is not there is an error of the request.
        ask_alone: Whether a person is only asked about calls that need it, while the others are made.

    Raises:
        KeyError: A tool is not there, and that is an error of the request.
    """
    asks: list[Content] = []
    for call in calls:
        kind = toolbox.kind_of(call.name)
        if kind == RUN:
            continue
        if kind == ASK:
            if not ask_alone:
                return Batch([], [approval_request(one) for one in calls])
            asks.append(call)
        elif kind == HAND_BACK:
            return Batch([], [handed_back(one) for one in calls])
        elif kind == UNKNOWN and terminate_on_unknown:
            raise unknown_tool(call)
    if not asks:
        return Batch(list(calls), [])
    waiting = {id(call) for call in asks}
    return Batch([call for call in calls if id(call) not in waiting], [approval_request(call) for call in asks])


def approval_request(call: Content) -> Content:
    """Return the question whether a call may be made."""
    return Content.from_function_approval_request(call.call_id or "", call)


def handed_back(call: Content) -> Content:
    """Return a call as one that the caller has to answer."""
    return changed(call, id=call.call_id, user_input_request=True)


async def run_batch(
    calls: Sequence[ToolCall], toolbox: Toolbox, calling: Calling, *, room: int | None = None
) -> list[Outcome]:
    """Make calls side by side and return what came of them, in their order.

    Args:
        calls: To be made.
        toolbox: The tools of the request.
        calling: What all calls of the request share.
        room: How many calls may be made; the others fail.

    Raises:
        BaseException: What is no `Exception` ends all calls of the batch: those that still run are cancelled.
    """
    if len(calls) == 1 and room is None:
        return [await _outcome_of(calls[0], toolbox, calling)]
    made = calls if room is None else calls[:room]
    outcomes = await _side_by_side([_outcome_of(call, toolbox, calling) for call in made])
    reason = "The calls that this request may make are used up; this one was not made."
    return [*outcomes, *(calling.refused(call.content, reason) for call in calls[len(made) :])]


async def _outcome_of(call: ToolCall, toolbox: Toolbox, calling: Calling) -> Outcome:
    name = call.content.name or ""
    if name in toolbox.taken_away:
        return calling.refused(call.content, toolbox.taken_away[name])
    tool = toolbox.find(name)
    if tool is None:
        return calling.unknown(call.content)
    return await calling.run(tool, call)


async def _side_by_side(running: Sequence[Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    if len(running) == 1:
        return [await running[0]]
    tasks = [asyncio.ensure_future(one) for one in running]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
