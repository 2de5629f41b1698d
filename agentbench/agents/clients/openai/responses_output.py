"""Convert answers of the Responses API to responses, stream events to updates, and shell calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any, cast

from agentbench.agents.clients.openai.chat_messages import Wire, arguments_text, result_text
from agentbench.agents.clients.openai.hosted_tools import LocalShell
from agentbench.agents.clients.openai.wire import (
    answer_text,
    call_piece,
    citation,
    field,
    iso_time,
    items,
    json_text,
    new_call_id,
    number,
    plain,
    refusal_content,
    text,
    usage_of,
)
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate, ContinuationToken

SHELL_ID = "shell:"
"""Prefix of the ids of local shell calls. The service needs their results in a separate form, even if it stores the
conversation and the request contains nothing else of the call.
"""


def read_shell_item(item: Any, shell: LocalShell | None, index: int | None = None) -> Content:
    """Convert a shell call or result; with a local shell, to a call of its function at `index` in a stream."""
    action, call_id = field(item, "action"), text(item, "call_id")
    commands = [str(command) for command in items(action, "commands")]
    if text(item, "type") == "shell_call_output":
        return Content.from_shell_tool_result(
            call_id=call_id,
            outputs=[_read_output(output) for output in items(item, "output")],
            max_output_length=number(item, "max_output_length"),
        )
    if shell is None:
        return Content.from_shell_tool_call(
            call_id=call_id,
            commands=commands,
            timeout_ms=number(action, "timeout_ms"),
            max_output_length=number(action, "max_output_length"),
            status=text(item, "status"),
        )
    return Content.from_function_call(
        SHELL_ID + (call_id or new_call_id()),
        shell.name,
        arguments=json_text(shell.arguments_of(commands)),
        additional_properties=None if index is None else {"tool_call_index": index},
        raw_representation=item,
    )


def _read_output(output: Any) -> Content:
    outcome = field(output, "outcome")
    return Content.from_shell_command_output(
        stdout=text(output, "stdout"),
        stderr=text(output, "stderr"),
        exit_code=number(outcome, "exit_code"),
        timed_out=text(outcome, "type") == "timeout",
    )


def shell_item(content: Content) -> Wire | None:
    """Convert a local shell call or its result, which is the function's output or error, to an input item."""
    item: Wire = {"call_id": (content.call_id or "").removeprefix(SHELL_ID)}
    if content.type == "function_call":
        value: Any = next(iter(json.loads(arguments_text(content)).values()), [])
        action = {"commands": value if isinstance(value, list) else [value]}
        return {"type": "shell_call", **item, "action": action, "status": "completed"}
    if content.type != "function_result":
        return None
    output = [
        {"stdout": one.stdout or "", "stderr": one.stderr or "", "outcome": _outcome(one.exit_code, one.timed_out)}
        for one in content.items or ()
        if one.type == "shell_command_output"
    ]
    if not output:
        written, has_failed = result_text(content), content.exception is not None
        texts = {"stdout": "", "stderr": written} if has_failed else {"stdout": written, "stderr": ""}
        output = [{**texts, "outcome": _outcome(int(has_failed))}]
    return {"type": "shell_call_output", **item, "output": output}


def _outcome(exit_code: int | None, timed_out: bool | None = None) -> Wire:
    return {"type": "timeout"} if timed_out else {"type": "exit", "exit_code": exit_code or 0}


# ---- responses and updates


logger = logging.getLogger("agentbench.openai")


class OpenAIContinuationToken(ContinuationToken, total=False):
    """The token of a background answer.

    Attributes:
        response_id: Id of the answer.
        sequence_number: Number of the last event that was read from its stream.

    Example:
        from agentbench.openai import OpenAIContinuationToken

        token: OpenAIContinuationToken = {"response_id": "resp_1", "sequence_number": 12}
    """

    response_id: str
    sequence_number: int | None


_CALLS = ("function_call", "custom_tool_call")
_ENDS = ("response.completed", "response.incomplete")
_STOPPED_BY = {"max_output_tokens": "length", "content_filter": "content_filter"}


def response_of(
    answer: Any, *, stored: bool = True, response_format: Any = None, shell: LocalShell | None = None
) -> ChatResponse[Any]:
    """Convert an answer to a response with one message. A stored answer can be continued."""
    contents = [content for item in items(answer, "output") for content in _output_contents(item, shell)]
    response_id = text(answer, "id")
    called = any(content.type == "function_call" for content in contents)
    message = Message("assistant", contents, message_id=response_id, raw_representation=answer)
    return ChatResponse(
        messages=[message] if contents else [],
        response_id=response_id,
        conversation_id=_conversation_id(answer, stored=stored),
        model=text(answer, "model"),
        created_at=iso_time(field(answer, "created_at")),
        finish_reason=cast("Any", _finish_reason(answer, called=called)),
        usage_details=usage_of(answer),
        response_format=response_format,
        continuation_token=cast("Any", {"response_id": response_id} if _is_unfinished(answer) else None),
        raw_representation=answer,
    )


def _conversation_id(answer: Any, *, stored: bool) -> str | None:
    """Return the id that the next request continues: the stored conversation, else this answer."""
    return text(field(answer, "conversation"), "id") or (text(answer, "id") if stored else None)


def _finish_reason(answer: Any, *, called: bool) -> str | None:
    status = text(answer, "status")
    if status == "incomplete":
        return _STOPPED_BY.get(text(field(answer, "incomplete_details"), "reason") or "", "stop")
    if status is not None and status != "completed":
        return None
    return "tool_calls" if called else "stop"


def _is_unfinished(answer: Any) -> bool:
    return text(answer, "status") in ("queued", "in_progress")


def failure_of(answer: Any) -> Any:
    """Return the error that the service reports, if any."""
    return field(answer, "error") or ({} if text(answer, "status") == "failed" else None)


def _output_contents(item: Any, shell: LocalShell | None) -> Iterator[Content]:
    for content in _read_item(item, shell):
        if content.raw_representation is None:
            content.raw_representation = item
        yield content


def _read_item(item: Any, shell: LocalShell | None) -> Iterator[Content]:
    match text(item, "type"):
        case "message":
            for part in items(item, "content"):
                words, refusal = answer_text(part, "text"), refusal_content(part)
                if words:
                    notes = [citation(note) for note in items(part, "annotations")]
                    yield Content.from_text(words, annotations=notes or None, raw_representation=part)
                elif refusal is not None:
                    yield refusal
        case "reasoning":
            parts = items(item, "summary") or items(item, "content")
            thought = "\n".join(line for part in parts if (line := text(part, "text")))
            hidden = text(item, "encrypted_content")
            if thought or hidden:
                yield Content.from_text_reasoning(id=text(item, "id"), text=thought or None, protected_data=hidden)
        case "function_call" | "custom_tool_call":
            call_id = text(item, "call_id") or new_call_id()
            whole = json_text(field(item, "arguments")) or text(item, "input") or ""
            yield Content.from_function_call(call_id, text(item, "name") or "", arguments=whole)
        case "shell_call" | "shell_call_output":
            yield read_shell_item(item, shell)
        case "mcp_approval_request":
            name, server, arguments = (text(item, key) for key in ("name", "server_label", "arguments"))
            call = Content.from_function_call(
                text(item, "id") or "",
                name or "",
                arguments=arguments,
                additional_properties={"server_label": server},
                raw_representation=item,
            )
            yield Content.from_function_approval_request(call.call_id or "", call)
        case _:
            yield from _read_hosted_call(item)


def _read_hosted_call(item: Any) -> Iterator[Content]:
    item_id = text(item, "id") or ""
    match text(item, "type"):
        case "code_interpreter_call":
            code, outputs = text(item, "code"), []
            for output in items(item, "outputs"):
                logs, url = text(output, "logs"), text(output, "url") or ""
                media_type = None if url.startswith("data:") else "image/png"
                made = Content.from_uri(url, media_type=media_type) if logs is None else Content.from_text(logs)
                outputs.append(made)
            inputs = [Content.from_text(code)] if code else []
            yield Content.from_code_interpreter_tool_call(call_id=text(item, "id"), inputs=inputs)
            yield Content.from_code_interpreter_tool_result(call_id=text(item, "id"), outputs=outputs)
        case "image_generation_call":
            yield Content.from_image_generation_tool_call(image_id=text(item, "id"))
            drawn = text(item, "result")
            if drawn:
                made = Content.from_uri(f"data:image/{text(item, 'output_format') or 'png'};base64,{drawn}")
                yield Content.from_image_generation_tool_result(image_id=text(item, "id"), outputs=made)
        case "mcp_call":
            name, server, arguments = (text(item, key) for key in ("name", "server_label", "arguments"))
            yield Content.from_mcp_server_tool_call(item_id, name or "", server_name=server, arguments=arguments)
            output, error = field(item, "output"), field(item, "error")
            if output is not None or error is not None:
                result = str(json_text(plain(error)) if output is None else output)
                yield Content.from_mcp_server_tool_result(item_id, output=[Content.from_text(result)])
        case "web_search_call" | "file_search_call" as kind:
            name, status = kind.removesuffix("_call"), text(item, "status")
            query = plain(field(item, "action") or {"queries": items(item, "queries")})
            yield Content.from_search_tool_call(
                item_id, tool_name=name, arguments=query if isinstance(query, Mapping) else None, status=status
            )
            found = plain(items(item, "results")) or plain(items(field(item, "action"), "sources"))
            if found:
                yield Content.from_search_tool_result(item_id, tool_name=name, result=found, status=status)
        case kind:
            logger.debug("An output item of type %r is only in raw_representation.", kind)


class EventReader:
    """Reads the events of one stream in order; `continues` is the id of an answer that was partly read before."""

    must_end = True  # the service always sends the last event

    def __init__(self, *, stored: bool = True, continues: str | None = None, shell: LocalShell | None = None) -> None:
        self._shell = shell
        self.ended = False
        self.failure: Any = None
        self._stored = stored
        self._response_id = continues
        self._conversation_id = continues if stored else None
        self._model: str | None = None
        self._created_at: str | None = None
        self._background = continues is not None
        self._called = False
        self._with_arguments: set[int] = set()  # indexes of calls whose arguments arrived in pieces
        self._thinking: set[str] = set()  # ids of items whose reasoning arrived in pieces

    def read(self, event: Any) -> ChatResponseUpdate | None:
        """Convert an event to an update; `None` if it is empty or reports a failure."""
        if text(event, "event") == "error":
            event = field(event, "data")  # older SDK versions wrap the event
        kind = text(event, "type") or ""
        if kind in ("error", "response.error"):
            self.failure = event
            return None
        answer = field(event, "response")
        if answer is not None:
            return self._of_answer(kind, event, answer)
        contents = list(self._contents(kind, event))
        return self._update(contents, event) if contents else None

    def _of_answer(self, kind: str, event: Any, answer: Any) -> ChatResponseUpdate | None:
        self.failure = failure_of(answer)
        if self.failure is not None:
            return None
        self._response_id = text(answer, "id") or self._response_id
        self._conversation_id = _conversation_id(answer, stored=self._stored) or self._conversation_id
        self._model = text(answer, "model") or self._model
        self._created_at = iso_time(field(answer, "created_at")) or self._created_at
        self._background = self._background or field(answer, "background") is True
        ends = kind in _ENDS
        self.ended = self.ended or ends
        usage = usage_of(answer) if ends else None
        update = self._update([] if usage is None else [Content.from_usage(usage)], event)
        update.finish_reason = cast("Any", _finish_reason(answer, called=self._called) if ends else None)
        update.continuation_token = self._token(event) if _is_unfinished(answer) else None
        return update

    def _update(self, contents: list[Content], event: Any) -> ChatResponseUpdate:
        return ChatResponseUpdate(
            contents=contents,
            role="assistant",
            response_id=self._response_id,
            message_id=self._response_id,
            conversation_id=self._conversation_id,
            model=self._model,
            created_at=self._created_at,
            continuation_token=self._token(event),
            raw_representation=event,
        )

    def _token(self, event: Any) -> ContinuationToken | None:
        """Return the token for continuing a background answer if its stream breaks after this event."""
        if not self._background or self._response_id is None:
            return None
        number_of_event = number(event, "sequence_number")
        return OpenAIContinuationToken(response_id=self._response_id, sequence_number=number_of_event)

    def _contents(self, kind: str, event: Any) -> Iterator[Content]:
        delta, item_id, item = text(event, "delta"), text(event, "item_id"), field(event, "item")
        index = number(event, "output_index") or 0
        match kind:
            case "response.output_text.delta" if words := answer_text(event, "delta"):
                yield Content.from_text(words)
            case "response.refusal.delta" if delta:
                yield Content.from_text(delta, additional_properties={"refusal": True})
            case "response.output_text.annotation.added":
                yield Content.from_text("", annotations=[citation(field(event, "annotation"))])
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self._thinking.add(item_id or "")
                if delta:
                    yield Content.from_text_reasoning(id=item_id, text=delta)
            case "response.reasoning_summary_part.added" if number(event, "summary_index"):
                yield Content.from_text_reasoning(id=item_id, text="\n")  # the parts of a summary are lines of one text
            case "response.output_item.added" if text(item, "type") in _CALLS:
                self._called = True
                call_id = text(item, "call_id") or new_call_id()
                yield call_piece(index, call_id, text(item, "name") or "", raw=item)
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                self._with_arguments.add(index)
                yield call_piece(index, arguments=json_text(field(event, "delta")), raw=event)
            case "response.output_item.done":
                yield from self._item_done(index, item, event)

    def _item_done(self, index: int, item: Any, event: Any) -> Iterator[Content]:
        """Yield the contents of an item that did not arrive in pieces."""
        kind = text(item, "type")
        if kind == "reasoning" and (text(item, "id") or "") in self._thinking:
            hidden = text(item, "encrypted_content")
            if hidden:
                yield Content.from_text_reasoning(id=text(item, "id"), protected_data=hidden)
        elif kind in _CALLS:
            whole = json_text(field(item, "arguments")) or text(item, "input") or ""
            if whole and index not in self._with_arguments:
                yield call_piece(index, arguments=whole, raw=event)
        elif kind == "shell_call" and self._shell is not None:
            self._called = True
            yield read_shell_item(item, self._shell, index)
        elif kind != "message":
            yield from _output_contents(item, self._shell)
