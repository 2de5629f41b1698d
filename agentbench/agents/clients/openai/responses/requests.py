"""The API called Responses, where the service can keep the conversation and run tools itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.agents.clients.openai.chat.completions import options_as_sent, tool_fields, tool_specifications
from agentbench.agents.clients.openai.response_format import responses_text_format
from agentbench.agents.clients.openai.responses.input import response_input
from agentbench.agents.clients.openai.responses.output import EventReader, failure_of, response_of
from agentbench.agents.clients.openai.wire import WireRequest, field, nothing_to_send, text
from agentbench.exceptions import ChatClientInvalidRequestException
from agentbench.messages.inputs import prepend_instructions_to_messages
from agentbench.messages.message import Message
from agentbench.messages.options import ToolMode
from agentbench.messages.response import ChatResponse

logger = logging.getLogger("agentbench.openai")

# Options that Chat Completions has and this API refuses.
_NOT_HERE = ("frequency_penalty", "logit_bias", "prediction", "presence_penalty", "seed", "stop")

_LOG_PROBABILITIES = "message.output_text.logprobs"


class Responses:
    """A request may hold only new messages, and name the answer that it continues."""

    path = "responses"
    since = "1.66"
    stores = True

    def request(
        self, messages: Sequence[Message], options: Mapping[str, Any], *, model: str, instruction_role: str | None
    ) -> WireRequest:
        """Return a request; with a continuation token, one for an answer that is still being made."""
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
            raise nothing_to_send()
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


def response_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that say how to answer; model, input and instructions are not among them."""
    sent = options_as_sent(options)
    for name in _NOT_HERE:
        if sent.pop(name, None) is not None:
            logger.warning("The Responses API has no option %r; it is not sent.", name)
    if options.get("max_tokens") is not None:
        sent.setdefault("max_output_tokens", options["max_tokens"])
    if sent.pop("logprobs", None):
        sent["include"] = [*sent.get("include", ()), _LOG_PROBABILITIES]
    conversation_id = options.get("conversation_id")
    if conversation_id:  # of a conversation that the service stores, or of the answer that this request continues
        is_conversation = str(conversation_id).startswith("conv_")
        sent["conversation" if is_conversation else "previous_response_id"] = conversation_id
    _nest(sent, "reasoning_effort", "reasoning", "effort")
    _nest(sent, "verbosity", "text", "verbosity")
    if options.get("response_format") is not None:
        sent["text"] = {**sent.get("text", {}), "format": responses_text_format(options["response_format"])}
    return sent | tool_fields([_flat(tool) for tool in tool_specifications(options)], options, _tool_choice)


def _nest(sent: dict[str, Any], flat: str, group: str, name: str) -> None:
    value = sent.pop(flat, None)
    if value is not None:
        sent[group] = {**sent.get(group, {}), name: value}


def _flat(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool in the form of this API; functions are also understood in that of Chat Completions."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, Mapping):
        return tool
    # Without this word the service would make every parameter a required one.
    return {"type": "function", "strict": False, **function}


def _tool_choice(mode: ToolMode) -> Any:
    if mode.get("required_function_name"):
        return {"type": "function", "name": mode["required_function_name"]}
    allowed = mode.get("allowed_tools")
    if allowed is not None:
        named = [{"type": "function", "name": name} for name in allowed]
        return {"type": "allowed_tools", "mode": mode["mode"], "tools": named}
    return mode["mode"]
