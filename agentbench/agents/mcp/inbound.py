"""What a server sends: checks of its messages, its log lines, its questions to the model and to a person."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from agentbench import _clock
from agentbench._plain_text import plain_line
from agentbench.agents.mcp.connection import WatchedStream
from agentbench.agents.mcp.contents import content_of, part_of
from agentbench.agents.mcp.limits import MCPLimits, measure
from agentbench.agents.mcp.package import as_received, error_response, listing_problem, make, parse_problem, wire
from agentbench.agents.middleware.contexts import INNER_APPROVALS, RUN_INVOCATIONS
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.agents.tools.input_schema import JsonSchema
from agentbench.exceptions import MCPLimitError, ToolArgumentsError, UserInputRequiredException
from agentbench.messages.content.content import EDITED_ARGUMENTS, ELICITATION, Content, question_in
from agentbench.messages.message import Message

logger = logging.getLogger("agentbench")

_ANSWER = re.compile(r'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"')
"""Matches the beginning of a response, so that the id is known even if the rest cannot be parsed."""

_MINUTE_NS = 60_000_000_000

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}

_LISTS = ("tools", "prompts", "resources")
_NAME_CHARS = 100


class CheckedStream(WatchedStream):
    """Checks each message of a server before the session receives it; invalid ones are dropped."""

    def __init__(self, stream: Any, on_end: Callable[[], None], server: str, limits: MCPLimits) -> None:
        super().__init__(stream, on_end)
        self._server, self._limits = server, limits

    async def __anext__(self) -> Any:
        while (message := self._check(await super().__anext__())) is None:
            pass
        return message

    async def receive(self) -> Any:
        """Return the next message."""
        while (message := self._check(await super().receive())) is None:
            pass
        return message

    def _check(self, message: Any) -> Any:
        """Return the message for the session, or `None` to drop it.

        A response that is too large becomes an error response, so that its request does not wait forever.
        """
        if isinstance(message, Exception):
            return self._failed_answer(message) or message
        payload: Any = getattr(message, "message", None)
        payload = getattr(payload, "root", payload)
        result, error = getattr(payload, "result", None), getattr(payload, "error", None)
        too_much = self._excess(
            [getattr(payload, "params", result), *(() if error is None else (error.message, error.data))]
        )
        if too_much is not None:
            if not hasattr(payload, "method"):
                return replace(message, message=error_response(payload.id, too_much))
            logger.warning("A message was dropped: %s", too_much)
            return None
        if isinstance(result, dict):
            for kind in _LISTS:
                if isinstance(result.get(kind), list):
                    result[kind] = self._usable(kind, result[kind])
        return message

    def _failed_answer(self, error: Exception) -> Any:
        """Return an error response for a response that could not be parsed; `None` if the line is not a response."""
        problem, line = parse_problem(error)
        answer = _ANSWER.match(line)
        if answer is None:
            return None
        reason: Exception = ValueError(f"The response cannot be parsed: {problem}")
        if "recursion" in problem:
            reason = MCPLimitError(
                self._server, "a message that is nested too deeply", "max_depth", self._limits.max_depth
            )
        return as_received(error_response(int(answer[1]), reason))

    def _excess(self, body: Any) -> MCPLimitError | None:
        limits = self._limits
        most = limits.max_message_bytes
        size, depth = measure(body, most, limits.max_depth)
        if depth > limits.max_depth:
            return MCPLimitError(self._server, "a message that is nested too deeply", "max_depth", limits.max_depth)
        return (
            MCPLimitError(self._server, "a message that is too large", "max_message_bytes", most)
            if size > most
            else None
        )

    def _usable(self, kind: str, listings: list[Any]) -> list[Any]:
        """Return the valid entries of a list, so that one invalid entry does not hide the others."""
        most = getattr(self._limits, f"max_{kind}")
        if len(listings) > most:  # read_pages() rejects the list anyway, and checking every entry would be slow
            listings = listings[: int(most) + 1]
        if kind == "tools":
            listings = [_with_object_schema(one) for one in listings]
        if listing_problem(kind, listings) is None:
            return listings
        valid = []
        for listing in listings:
            problem = listing_problem(kind, [listing])
            if problem is None:
                valid.append(listing)
                continue
            name = plain_line(listing.get("name") if isinstance(listing, dict) else listing, _NAME_CHARS)
            logger.warning("The MCP server %r lists the %s %r in an invalid form; it is ignored: %s",
                           self._server, kind.removesuffix("s"), name, plain_line(problem, _NAME_CHARS))  # fmt: skip
        return valid


def _with_object_schema(tool: Any) -> Any:
    """Return a tool whose schema has `"type": "object"`; some servers omit it."""
    schema = tool.get("inputSchema", {}) if isinstance(tool, dict) else None
    if isinstance(schema, dict) and "type" not in schema:
        return {**tool, "inputSchema": {**schema, "type": "object"}}
    return tool


def level_name(level: int) -> str:
    """Return the protocol's name for a level of `logging`."""
    return next((name for name, number in _LEVELS.items() if number >= level), "emergency")


class ServerLog:
    """Logs the lines of one server as plain text, up to a limit per minute."""

    def __init__(self, server: str, limits: MCPLimits) -> None:
        self._server, self._limits = server, limits
        self._begin_ns = self._count = 0

    def log(self, level: str | None, text: object) -> None:
        """Log a line with the name of the server. Lines over the limit are dropped with a single warning."""
        now = _clock.runtime_defaults().clock.perf_ns()
        if now - self._begin_ns >= _MINUTE_NS:
            self._begin_ns, self._count = now, 0
        self._count += 1
        most = self._limits.max_log_lines_per_minute
        if self._count <= most:
            line = " ".join(self._limits.log_text(text).split())
            logger.log(_LEVELS.get(level or "", logging.INFO), "%s: %s", self._server, line)
        elif self._count <= most + 1:
            error = MCPLimitError(self._server, "too many log lines", "max_log_lines_per_minute", most)
            logger.warning("Log lines are dropped: %s", error)


# ---- questions to the model


_INTERNAL_ERROR = -32603
_TOOL_CHOICES = {"auto": "auto", "required": "required", "none": "none"}


class Sampling:
    """Answers the requests of a server to the model, up to a limit per tool call."""

    def __init__(self, server: str, limits: MCPLimits) -> None:
        self._server, self._limits = server, limits
        self._requests = self._calls = 0

    @contextmanager
    def count_requests(self) -> Iterator[None]:
        """Count the requests during a tool call; concurrent calls share one count."""
        if not self._calls:
            self._requests = 0
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    async def answer(self, params: Any, client: Any, approve: Callable[[Any], Any] | None) -> Any:
        """Return the answer of the model if `approve` returns `True` for the parameters of the request.

        A failure is returned as a protocol error and never raised.
        """
        request, limits = wire(params), self._limits
        if client is None:
            return _error("This client has no model: client= is not set.")
        if approve is None:
            return _error("This client does not allow requests to its model: sampling_approval_callback= is not set.")
        self._requests += 1
        try:
            if self._requests > limits.max_sampling_requests:
                sent, name = "too many requests to the model", "max_sampling_requests"
                raise MCPLimitError(self._server, sent, name, limits.max_sampling_requests)
            check_payload(self._server, request, limits)
            approved = approve(params)
            if (await approved if inspect.isawaitable(approved) else approved) is not True:
                return _error("The request to the model was denied.")
            return _result(await self._ask(client, request))
        except MCPLimitError as error:
            logger.warning("A request to the model was denied: %s", error)
            return _error(f"The request exceeds the limit {error.limit}={error.value:g} of this client.")
        except Exception as error:
            logger.warning("A request of the server %s to the model failed.", self._server, exc_info=True)
            return _error(f"The model failed: {type(error).__name__}.")

    async def _ask(self, client: Any, request: Mapping[str, Any]) -> Any:
        ask, options = client.get_response, _options(request)
        options["max_tokens"] = int(min(options["max_tokens"], self._limits.max_sampling_tokens))
        parameters = inspect.signature(ask).parameters.values()
        takes_options = any(
            parameter.name == "options" or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters
        )
        messages = [_message(message) for message in request["messages"]]
        answer = ask(messages, options=options) if takes_options else ask(messages)
        return await answer if inspect.isawaitable(answer) else answer


def check_payload(server: str, request: Mapping[str, Any], limits: MCPLimits) -> None:
    """Raise `MCPLimitError` if a sampling request or a question to a person is too large."""
    most = limits.max_host_payload_size_bytes
    if measure(request, most, limits.max_depth)[0] > most:
        raise MCPLimitError(server, "a request that is too large", "max_host_payload_size_bytes", most)


def _result(response: Any) -> Any:
    """Return the first text or image of a response as a sampling result; a protocol error if there is neither."""
    if response is None or not getattr(response, "messages", None):
        return _error("The model did not answer.")
    parts = (part_of(content) for message in response.messages for content in message.contents)
    first = next((part for part in parts if part and part["type"] in ("text", "image")), None)
    if first is None or first.get("text") == "":
        return _error("The answer of the model contains neither text nor an image.")
    model = getattr(response, "model", None) or "unknown"
    return make("CreateMessageResult", {"role": "assistant", "content": first, "model": model})


def _message(sent: dict[str, Any]) -> Message:
    contents = sent["content"] if isinstance(sent["content"], list) else [sent["content"]]
    return Message(sent["role"], [content_of(content) for content in contents])


def _options(request: Mapping[str, Any]) -> dict[str, Any]:
    choice = (request.get("toolChoice") or {}).get("mode")
    tools = [
        FunctionTool(
            name=tool["name"], description=tool.get("description", ""), input_model=tool.get("inputSchema") or {}
        )
        for tool in request.get("tools") or ()
    ]
    options = {
        "instructions": request.get("systemPrompt"),
        "tools": tools,
        "tool_choice": _TOOL_CHOICES.get(choice or ""),
        "temperature": request.get("temperature"),
        "stop": request.get("stopSequences"),
    }
    non_empty = {name: value for name, value in options.items() if value is not None and value != []}
    return {**non_empty, "max_tokens": request["maxTokens"]}


def _error(message: str) -> Any:
    return make("ErrorData", {"code": _INTERNAL_ERROR, "message": message})


# ---- questions to a person


_ANSWERED: Final = "answered"
_REFUSED: Final = (
    "The MCP server %r asked a question that cannot be passed on: %s. Call its tool in a run of an agent, or pass "
    "elicitation_callback= when you create the MCP tool."
)


class _Answer(NamedTuple):
    """A person's answer to a question. If it is not valid, `problem` says why and the question is asked again."""

    question: dict[str, Any]
    action: str
    content: dict[str, Any] | None = None
    problem: str = ""


@dataclass(eq=False)
class _ElicitationCall:
    """A tool call in progress. `unused` holds the answers to questions that the server has not repeated yet."""

    can_ask: bool
    answers: list[_Answer]
    unused: list[_Answer]
    ended: asyncio.Future[None]
    requests: list[Content] = field(default_factory=list)


class Elicitation:
    """Answers the questions of one server. Must be used on the event loop of the connection.

    The protocol does not say to which call a question belongs. After the first question of a server, its tools are
    therefore called one at a time.
    """

    def __init__(self, server: str, callback: Callable[[Any], Any] | None, limits: MCPLimits) -> None:
        self._server, self._callback, self._limits = server, callback, limits
        self._calls: list[_ElicitationCall] = []
        self._is_serial = False

    async def during(self, send: Callable[[], Awaitable[Any]], metadata: Mapping[str, Any]) -> Any:
        """Call a tool and return its result; raise `UserInputRequiredException` if a person must answer first.

        `metadata` comes from the `FunctionInvocationContext`; it is empty if the tool is not called by an agent.
        """
        answers = _read_answers(metadata)
        self._is_serial = self._is_serial or bool(answers)
        while self._is_serial and self._calls:
            await asyncio.wait([one.ended for one in self._calls])
        ended = asyncio.get_running_loop().create_future()
        call = _ElicitationCall(RUN_INVOCATIONS in metadata, answers, [*answers], ended)
        self._calls.append(call)
        try:
            result = await send()
        except Exception:
            if not call.requests:  # otherwise the call failed because its question was not answered
                raise
        finally:
            self._calls.remove(call)
            ended.set_result(None)
        if call.requests:
            raise UserInputRequiredException(call.requests)
        return result

    async def answer(self, params: Any) -> Any:
        """Return the recorded answer to a question, or cancel the question and record a request for it."""
        request = wire(params)
        try:
            check_payload(self._server, request, self._limits)
            _check_schema(self._server, request.get("requestedSchema", {}))
        except (MCPLimitError, ValueError) as error:
            logger.warning("A question to a person was declined: %s", error)
            return _answer("decline")
        if self._callback is not None:
            return await self._ask_callback(self._callback, params)
        self._is_serial = True
        if len(self._calls) != 1 or not self._calls[0].can_ask:
            is_outside = len(self._calls) < 2
            reason = (
                "the tool was not called by an agent" if is_outside else "it may belong to any of several running calls"
            )
            logger.warning(_REFUSED, self._server, reason)
            return _answer("decline" if is_outside else "cancel")
        [call] = self._calls
        question = _question_of(request)
        answer = next((one for one in call.unused if one.question == question), None)
        if answer is not None:
            call.unused.remove(answer)  # a server may ask the same question twice
            if not answer.problem:
                return _answer(answer.action, answer.content)
        if len(call.answers) + len(call.requests) >= self._limits.max_questions:
            most = self._limits.max_questions
            limit = MCPLimitError(self._server, "too many questions to a person", "max_questions", most)
            logger.warning("A question to a person was declined: %s", limit)
            return _answer("decline")
        call.requests.append(self._request(question, call.answers, answer.problem if answer else ""))
        return _answer("cancel")

    async def _ask_callback(self, callback: Callable[[Any], Any], params: Any) -> Any:
        try:
            answer = callback(params)
            answer = await answer if inspect.isawaitable(answer) else answer
        except Exception:
            logger.warning("The elicitation_callback of the MCP server %r failed.", self._server, exc_info=True)
            return _answer("cancel")
        return _answer("decline") if answer is None else _answer("accept", dict(answer))

    def _request(self, question: dict[str, Any], answers: list[_Answer], problem: str) -> Content:
        properties = question.get("requestedSchema", {}).get("properties") or {}
        defaults = {name: one["default"] for name, one in properties.items() if "default" in one}
        ids = _clock.runtime_defaults().ids
        call = Content.from_function_call(ids.new_id("call"), f"answer to {self._server}", arguments=defaults)
        details = {"server": self._server, **question, **({"problem": problem} if problem else {})}
        valid_answers = [answer._asdict() for answer in answers if not answer.problem]
        return Content.from_function_approval_request(
            ids.new_id("request"), call, additional_properties={ELICITATION: details, _ANSWERED: valid_answers}
        )


def _read_answers(metadata: Mapping[str, Any]) -> list[_Answer]:
    """Return the answers of a person; the answers of earlier rounds come first."""
    requests, answers = metadata.get(INNER_APPROVALS) or ((), ())
    by_id = {answer.id: answer for answer in answers}
    earlier: list[Any] = []
    found: list[_Answer] = []
    for request in requests:
        details, answer = question_in(request), by_id.get(request.id)
        if details is None or answer is None:  # the request is from an earlier round, or has no answer yet
            continue
        earlier, question = request.additional_properties[_ANSWERED], _question_of(details)
        if not answer.approved:
            found.append(_Answer(question, "decline"))
        elif "url" in question:  # the person answers at that address, so there are no fields
            found.append(_Answer(question, "accept"))
        else:
            content = answer.additional_properties.get(EDITED_ARGUMENTS, request.function_call.parse_arguments())
            try:
                content = JsonSchema(question.get("requestedSchema") or {}).validate("answer", content or {})
                found.append(_Answer(question, "accept", content))
            except ToolArgumentsError as error:
                found.append(_Answer(question, "accept", problem="; ".join(error.problems)))
    return [*(_Answer(**one) for one in earlier), *found]


def _check_schema(server: str, schema: Mapping[str, Any]) -> None:
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or not all(isinstance(one, Mapping) for one in properties.values()):
        message = f"The MCP server {server!r} sent a question without a valid schema of its fields."
        raise ValueError(message)


def _question_of(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a key that is equal for equal questions."""
    return {name: value for name, value in details.items() if name in ("message", "requestedSchema", "url")}


def _answer(action: str, content: Mapping[str, Any] | None = None) -> Any:
    return make("ElicitResult", {"action": action, **({} if content is None else {"content": content})})
