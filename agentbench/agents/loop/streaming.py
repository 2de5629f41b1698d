"""The loop between a model and its tools, streamed: every update as it comes, and what the loop adds in between."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator
from typing import Any

from agentbench.agents.loop.answers import Addition
from agentbench.agents.loop.loop import Model, ToolLoop
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate


def stream_answer(loop: ToolLoop, model: Model) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
    """Return the stream of a request; nothing happens before its first pull.

    Its final response is put together from those of the calls. That is what folding all updates gives, but for what
    result hooks of a call made of its response.
    """
    return ResponseStream(updates_of(loop, model), finalizer=lambda _: loop.response())


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
            response: Any = await stream.get_final_response()
            if not isinstance(response, ChatResponse):  # a middleware made a stream that has no finalizer
                response = ChatResponse.from_updates(stream.updates)
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
