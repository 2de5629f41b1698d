"""The tool calls of one model answer: classify them, plan them, and run them concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from agentbench.agents.loop.call import Calling, Outcome, ToolCall, copy_with, new_approval_id
from agentbench.agents.tools.collection import enter_tool, normalize_tools, tool_name
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

RUN: Final = "run"
REQUEST_APPROVAL: Final = "request approval"
HAND_BACK: Final = "hand back"
UNKNOWN: Final = "unknown"


class Toolbox:
    """The tools of one request by name. `taken_away` tools failed too often; `additional` tools are not run here."""

    def __init__(self, tools: Sequence[Any], additional: Sequence[Any] = ()) -> None:
        self.tools: dict[str, Any] = {}
        for tool in tools:
            enter_tool(self.tools, tool)
        self._additional = {tool_name(tool) for tool in normalize_tools(additional)} if additional else frozenset[str]()
        self.taken_away: dict[str, str] = {}

    def kind_of(self, call: Content) -> str:
        """Classify a call: `RUN`, `REQUEST_APPROVAL`, `HAND_BACK` or `UNKNOWN`."""
        name = call.name
        if name in self._additional:
            return HAND_BACK
        tool = self.tools.get(name or "")
        if tool is None:
            return UNKNOWN
        if getattr(tool, "approval_mode", None) == "always_require":
            return REQUEST_APPROVAL
        if isinstance(tool, FunctionTool):
            return HAND_BACK if tool.func is None else RUN
        return RUN if hasattr(tool, "invoke") and not getattr(tool, "declaration_only", False) else HAND_BACK


class Batch(NamedTuple):
    """The calls of one answer to make now, and the approval requests instead of them or in addition."""

    calls: list[Content]
    requests: list[Content]


def open_calls(messages: Iterable[Message]) -> list[Content]:
    """Return the calls of an answer that have no result in it."""
    calls: list[Content] = []
    done = set[str | None]()
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                calls.append(content)
            elif content.type == "function_result" and content.call_id:
                done.add(content.call_id)
    return [call for call in calls if call.call_id not in done] if done else calls


def plan_batch(calls: Sequence[Content], toolbox: Toolbox, *, terminate_on_unknown: bool, ask_alone: bool) -> Batch:
    """Plan the calls of an answer: the first call that is not simply run decides for all.

    With `ask_alone`, only the calls that need approval wait, and the others are made. With
    `terminate_on_unknown` a call of an unknown tool raises a KeyError.
    """
    waiting: list[Content] = []
    for call in calls:
        kind = toolbox.kind_of(call)
        if kind == REQUEST_APPROVAL:
            if not ask_alone:
                return Batch([], [_approval_request(one) for one in calls])
            waiting.append(call)
        elif kind == HAND_BACK:
            return Batch([], [copy_with(one, id=one.call_id, user_input_request=True) for one in calls])
        elif kind == UNKNOWN and terminate_on_unknown:
            raise _unknown_tool(call)
    if not waiting:
        return Batch([*calls], [])
    remaining = [call for call in calls if not any(call is one for one in waiting)]
    return Batch(remaining, [_approval_request(call) for call in waiting])


def _approval_request(call: Content) -> Content:
    return Content.from_function_approval_request(new_approval_id(), call)


async def run_batch(
    calls: Sequence[ToolCall],
    toolbox: Toolbox,
    calling: Calling,
    *,
    room: int | None = None,
    note: Callable[[ToolCall, Outcome], None] | None = None,
) -> list[Outcome]:
    """Make at most `room` calls concurrently, and return the outcomes of all in the order of the calls.

    `note` is called with each outcome immediately, so that it is recorded even if other calls fail or are cancelled.
    """
    running = [_run(call, toolbox, calling, note) for call in calls[:room]]
    if len(running) == 1:
        outcomes = [await running[0]]
    else:
        tasks = [asyncio.ensure_future(one) for one in running]
        try:
            outcomes = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
    if len(outcomes) < len(calls):
        reason = "The maximum number of calls for this request is reached; this call was not made."
        outcomes += [calling.refusal(call.content, reason) for call in calls[len(outcomes) :]]
    return outcomes


async def _run(
    call: ToolCall, toolbox: Toolbox, calling: Calling, note: Callable[[ToolCall, Outcome], None] | None
) -> Outcome:
    content, name = call.content, call.content.name or ""
    if name in toolbox.taken_away:
        return calling.refusal(content, toolbox.taken_away[name])
    if name not in toolbox.tools:
        text = f'Error: Requested function "{content.name}" not found.'
        return calling.failure(content, text, _unknown_tool(content), known=False)
    outcome = await calling.run(toolbox.tools[name], call)
    if note is not None:
        note(call, outcome)
    return outcome


def _unknown_tool(call: Content) -> KeyError:
    return KeyError(f"Requested function {call.name!r} not found.")
