"""The Responses API, in which the service can store conversations and run tools."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentbench.agents.clients.openai.chat_completions import (
    options_as_sent,
    responses_text_format,
    tool_fields,
    tool_specifications,
)
from agentbench.agents.clients.openai.chat_messages import (
    INSTRUCTING_ROLES,
    Wire,
    arguments_text,
    audio_part,
    description_of,
    file_fields,
    image_detail,
    media_group,
    result_text,
)
from agentbench.agents.clients.openai.hosted_tools import find_shell
from agentbench.agents.clients.openai.responses_output import SHELL_ID, EventReader, failure_of, response_of, shell_item
from agentbench.agents.clients.openai.wire import WireRequest, field, nothing_to_send, text
from agentbench.exceptions import ChatClientInvalidRequestException
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import prepend_instructions_to_messages
from agentbench.messages.message import Message
from agentbench.messages.options import ToolMode
from agentbench.messages.response import ChatResponse

logger = logging.getLogger("agentbench.openai")

# Options of Chat Completions that this API rejects.
_NOT_HERE = ("frequency_penalty", "logit_bias", "prediction", "presence_penalty", "seed", "stop")

_LOG_PROBABILITIES = "message.output_text.logprobs"


class Responses:
    """The Responses API: a request may contain only new messages and the id of the answer that it continues."""

    path = "responses"
    failure = staticmethod(failure_of)

    def __init__(self, *, stores: bool = True) -> None:
        self.stores = stores

    def request(
        self, messages: Sequence[Message], options: Mapping[str, Any], *, model: str, instruction_role: str | None
    ) -> WireRequest:
        """Return a request; with a continuation token, one for an unfinished answer."""
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
        """Convert an answer to a response; `None` if it has no id or no output list."""
        if text(answer, "id") is None or not isinstance(field(answer, "output"), (list, tuple)):
            return None
        stored = self._is_stored(options) and field(answer, "store") is not False
        shell = find_shell(options.get("tools"))
        return response_of(answer, stored=stored, response_format=options.get("response_format"), shell=shell)

    def _is_stored(self, options: Mapping[str, Any]) -> bool:
        return self.stores and options.get("store") is not False

    def reader(self, options: Mapping[str, Any]) -> EventReader:
        """Return the reader for a stream."""
        token = options.get("continuation_token")
        continues = text(token, "response_id") if token else None
        return EventReader(stored=self._is_stored(options), continues=continues, shell=find_shell(options.get("tools")))

    def stream_request(self, request: WireRequest) -> WireRequest:
        """Return the request for a stream."""
        return request._replace(body={**request.body, "stream": True})


def _continuation(token: Any) -> WireRequest:
    response_id = text(token, "response_id")
    if response_id is None:
        message = "The continuation token has no response id. Pass the token of a response or update unchanged."
        raise ChatClientInvalidRequestException(message)
    after = field(token, "sequence_number")
    return WireRequest("retrieve", {"response_id": response_id, **({} if after is None else {"starting_after": after})})


def response_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request without model, input and instructions."""
    sent = options_as_sent(options)
    for name in _NOT_HERE:
        if sent.pop(name, None) is not None:
            logger.warning("The Responses API does not support the option %r; it is not sent.", name)
    if options.get("max_tokens") is not None:
        sent.setdefault("max_output_tokens", options["max_tokens"])
    if sent.pop("logprobs", None):
        sent["include"] = [*sent.get("include", ()), _LOG_PROBABILITIES]
    conversation_id = options.get("conversation_id")
    if conversation_id:  # id of a stored conversation, or of the answer that this request continues
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
    """Convert a tool to the format of this API; functions may have the format of Chat Completions."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, Mapping):
        return tool
    # Without this field, the service would make every parameter required.
    return {"type": "function", "strict": False, **function}


def _tool_choice(mode: ToolMode) -> Any:
    if mode.get("required_function_name"):
        return {"type": "function", "name": mode["required_function_name"]}
    allowed = mode.get("allowed_tools")
    if allowed is not None:
        named = [{"type": "function", "name": name} for name in allowed]
        return {"type": "allowed_tools", "mode": mode["mode"], "tools": named}
    return mode["mode"]


def response_input(messages: Iterable[Message], *, continued: bool = False) -> list[Wire]:
    """Convert messages to input items; a continued conversation already contains its approval requests."""
    return [item for message in messages for item in _items(message, continued=continued)]


def _items(message: Message, *, continued: bool) -> Iterator[Wire]:
    pending: list[Content] = []
    for content in message.contents:
        item = _item(content, continued=continued)
        if item is None:
            pending.append(content)
        else:
            yield from _message_item(message, pending)
            pending = []
            yield item
    yield from _message_item(message, pending)


def _item(content: Content, *, continued: bool) -> Wire | None:
    """Convert a content to a separate item; `None` if it is part of a message."""
    if (content.call_id or "").startswith(SHELL_ID):
        return shell_item(content)
    if content.type == "function_call":
        call = {"call_id": content.call_id or "", "name": content.name or "", "arguments": arguments_text(content)}
        return {"type": "function_call", **call}
    if content.type == "function_result":
        return {"type": "function_call_output", "call_id": content.call_id or "", "output": _output(content)}
    if content.type == "text_reasoning" and content.protected_data:
        summary = [{"type": "summary_text", "text": content.text}] if content.text else []
        item: Wire = {"type": "reasoning", "summary": summary, "encrypted_content": content.protected_data}
        return {**item, "id": content.id} if content.id else item
    return _approval(content, continued=continued)


def _approval(content: Content, *, continued: bool) -> Wire | None:
    """Convert approvals of tools that the service calls; approvals of our own tools are handled earlier."""
    call = content.function_call
    label = None if call is None else call.additional_properties.get("server_label")
    if call is None or label is None:
        return None
    if content.type == "function_approval_response":
        return {"type": "mcp_approval_response", "approval_request_id": content.id, "approve": bool(content.approved)}
    if content.type == "function_approval_request" and not continued:
        fields = {"id": content.id, "name": call.name, "arguments": arguments_text(call), "server_label": label}
        return {"type": "mcp_approval_request", **fields}
    return None


def _output(content: Content) -> str | list[Wire]:
    """Return a tool result as text, or as parts if it contains more than text."""
    if all(item.type == "text" for item in content.items or ()):
        return result_text(content)
    return [_result_part(item) for item in content.items or ()]


def _result_part(item: Content) -> Wire:
    """Return a part of a tool result. Content that the service cannot read or fetch is described."""
    is_reachable = item.type != "uri" or (item.uri or "").startswith(("https://", "http://"))
    part = _part(item) if is_reachable else None
    return part if part is not None else {"type": "input_text", "text": description_of(item)}


def _message_item(message: Message, contents: Sequence[Content]) -> Iterator[Wire]:
    role = message.role if message.role in ("assistant", *INSTRUCTING_ROLES) else "user"
    parts = [part for content in contents if (part := _part(content)) is not None]
    if not parts:
        return
    if all("text" in part for part in parts):
        joined = "\n".join(part["text"] for part in parts)
        if joined or role not in INSTRUCTING_ROLES:
            yield {"type": "message", "role": role, "content": joined}
        return
    if role == "assistant":
        # An assistant message can only contain text, so its images are sent as user content.
        images = [part for part in parts if "text" not in part]
        yield from _message_item(message, [content for content in contents if content.type == "text"])
        yield {"type": "message", "role": "user", "content": images}
        return
    yield {"type": "message", "role": role, "content": parts}


def _part(content: Content) -> Wire | None:
    if content.type == "text":
        return {"type": "input_text", "text": content.text or ""}
    if content.type == "hosted_file":
        is_image = (content.media_type or "").startswith("image/")
        return {"type": "input_image" if is_image else "input_file", "file_id": content.file_id}
    if content.type not in ("data", "uri"):
        logger.debug("A content of type %r is not sent to the Responses API.", content.type)
        return None
    group = media_group(content)
    if group == "image":
        return {"type": "input_image", "image_url": content.uri, "detail": image_detail(content) or "auto"}
    if group == "audio":
        return audio_part(content)
    if group == "video":
        logger.warning("A video of type %r is not sent: the Responses API does not support video.", content.media_type)
        return None
    if content.type == "uri":
        return {"type": "input_file", "file_url": content.uri}
    return {"type": "input_file", **file_fields(content)}
