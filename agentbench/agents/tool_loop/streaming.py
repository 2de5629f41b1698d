"""The loop between a model and its tools, streamed: every update as it comes, and what the loop adds in between."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agentbench.agents.tool_loop.loop import Addition, Model, ToolLoop
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate


def stream_answer(
    loop: ToolLoop, model: Model, *, folds: bool = True
) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
    """Return the stream of a request; nothing happens before its first pull.

    Args:
        loop: The request.
        model: What is asked.
        folds: Whether the final response is the fold of what was streamed, since somebody on the way may have changed
            updates. Otherwise it is put together from the final responses of the calls, which is the same and faster.
    """

    def final(updates: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
        if not folds:
            return loop.response()
        folded: ChatResponse[Any] = ChatResponse.from_updates(updates)
        last = loop.last_response
        if last is not None and last._value_is_given:  # noqa: SLF001 - `value` would read the text
            folded.value = last.value
        return loop.signed(folded)

    return ResponseStream(updates_of(loop, model), finalizer=final)


async def updates_of(loop: ToolLoop, model: Model) -> AsyncGenerator[ChatResponseUpdate, None]:
    """Ask the model until it has no more calls; closing this closes the answer that is just being streamed."""
    for addition in await loop.begin():
        yield _as_update(addition, None)
    is_first = True
    while not loop.done:
        stream = await model.open(loop.messages, loop.options)
        try:
            starts_message = not is_first
            async for update in stream:
                if starts_message:
                    # What has no role continues the message before it, and that one is the tools'.
                    starts_message = False
                    yield _as_assistant(update)
                else:
                    yield update
            response = await stream.get_final_response()
        finally:
            await stream.aclose()
        is_first = False
        for addition in await loop.absorb(response):
            yield _as_update(addition, response)


def _as_assistant(update: ChatResponseUpdate) -> ChatResponseUpdate:
    if update.role:
        return update
    copied = copy.copy(update)
    copied.role = "assistant"
    return copied


def _as_update(addition: Addition, response: ChatResponse[Any] | None) -> ChatResponseUpdate:
    token = None if response is None else response.continuation_token
    return ChatResponseUpdate(role=addition.role, contents=addition.contents, continuation_token=token)
