"""The API called Chat Completions, which most compatible servers speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.agents.clients.openai.chat.messages import chat_messages
from agentbench.agents.clients.openai.chat.options import chat_options
from agentbench.agents.clients.openai.chat.response import ChunkReader, chat_response
from agentbench.agents.clients.openai.wire import WireRequest, field, items, nothing_to_send
from agentbench.messages.inputs import prepend_instructions_to_messages
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse


class ChatCompletions:
    """Every request holds the whole conversation."""

    path = "chat.completions"  # of the SDK's part for this API, and the version that first had it
    since = "1.60"
    stores = False  # whether the service stores answers by default

    def request(
        self, messages: Sequence[Message], options: Mapping[str, Any], *, model: str, instruction_role: str | None
    ) -> WireRequest:
        """Return a request."""
        led = prepend_instructions_to_messages(messages, options.get("instructions"), instruction_role or "system")
        sent = chat_messages(led)
        if not sent:
            raise nothing_to_send()
        body = {"model": options.get("model") or model, "messages": sent, **chat_options(options)}
        return WireRequest("create", body)

    def response(self, answer: Any, options: Mapping[str, Any]) -> ChatResponse[Any] | None:
        """Return an answer as a response; `None` if it holds no choices."""
        if not items(answer, "choices"):
            return None
        return chat_response(answer, response_format=options.get("response_format"))

    def failure(self, answer: Any) -> Any:
        """Return the failure that a compatible service reports in place of choices, if it does."""
        return None if items(answer, "choices") else field(answer, "error") or None

    def reader(self, options: Mapping[str, Any]) -> ChunkReader:
        """Return the reader for a stream."""
        return ChunkReader()

    def stream_body(self, request: WireRequest) -> dict[str, Any]:
        """Return the arguments of a request for a stream, which counts its tokens at the end."""
        counting = {"include_usage": True, **(request.body.get("stream_options") or {})}
        return {**request.body, "stream": True, "stream_options": counting}
