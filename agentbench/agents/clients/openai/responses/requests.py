"""The API called Responses, where the service can keep the conversation and run tools itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.agents.clients.openai.responses.input import response_input
from agentbench.agents.clients.openai.responses.options import response_options
from agentbench.agents.clients.openai.responses.output import failure_of, response_of
from agentbench.agents.clients.openai.responses.updates import EventReader
from agentbench.agents.clients.openai.wire import WireRequest, field, text
from agentbench.exceptions import ChatClientInvalidRequestException
from agentbench.messages.inputs import prepend_instructions_to_messages
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse


class Responses:
    """A request may hold only new messages, and name the answer that it continues.

    Attributes:
        path: Of the SDK's part for this API.
        since: The version of the SDK that first had this part.
        stores: Whether the service stores answers by default.
    """

    path = "responses"
    since = "1.66"
    stores = True

    def request(
        self, messages: Sequence[Message], options: Mapping[str, Any], *, model: str, instruction_role: str | None
    ) -> WireRequest:
        """Return a request; with a continuation token, one for an answer that is still being made.

        Raises:
            ChatClientInvalidRequestException: There is nothing to send.
        """
        token = options.get("continuation_token")
        if token:
            return _continuation(token)
        instructions = options.get("instructions")
        body = response_options(options)
        if instructions and instruction_role:
            messages = prepend_instructions_to_messages(messages, instructions, instruction_role)
        elif instructions:
            body["instructions"] = instructions
        sent = response_input(messages, continued=bool(options.get("conversation_id")))
        if not sent and "prompt" not in body:
            message = "There is no message to send. Pass at least one with text, an image, a file or a tool's result."
            raise ChatClientInvalidRequestException(message)
        return WireRequest("create", {"model": options.get("model") or model, "input": sent, **body})

    def response(self, answer: Any, options: Mapping[str, Any]) -> ChatResponse[Any] | None:
        """Return an answer as a response; `None` if it has no id or no list of output."""
        if text(answer, "id") is None or not isinstance(field(answer, "output"), (list, tuple)):
            return None
        stored = _is_stored(options) and field(answer, "store") is not False
        return response_of(answer, stored=stored, response_format=options.get("response_format"))

    def failure(self, answer: Any) -> Any:
        """Return the failure that the service reports, if it does."""
        return failure_of(answer)

    def reader(self, options: Mapping[str, Any]) -> EventReader:
        """Return the reader for a stream."""
        token = options.get("continuation_token")
        return EventReader(stored=_is_stored(options), continues=text(token, "response_id") if token else None)

    def stream_body(self, request: WireRequest) -> dict[str, Any]:
        """Return the arguments of a request for a stream."""
        return {**request.body, "stream": True}


def _is_stored(options: Mapping[str, Any]) -> bool:
    return options.get("store") is not False


def _continuation(token: Any) -> WireRequest:
    response_id = text(token, "response_id")
    if response_id is None:
        message = "The continuation token names no answer. Hand back the token of a response or an update as it is."
        raise ChatClientInvalidRequestException(message)
    after = field(token, "sequence_number")
    return WireRequest("retrieve", {"response_id": response_id, **({} if after is None else {"starting_after": after})})
