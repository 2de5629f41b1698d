"""Elicitation: questions that a server asks a person while one of its tools runs.

A person may take days to answer, and a server cannot wait that long. So the call ends with a request to the person,
which is answered like a request for approval. The tool is then called again, and when the server repeats its question
it gets the recorded answer.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agentbench import _clock
from agentbench.agents.mcp.limits import MCPLimits
from agentbench.agents.mcp.package import make, wire
from agentbench.agents.mcp.sampling import check_payload
from agentbench.agents.middleware.contexts import INNER_APPROVALS, RUN_INVOCATIONS
from agentbench.agents.tools.input_schema import JsonSchema
from agentbench.exceptions import MCPLimitError, ToolArgumentsError, UserInputRequiredException
from agentbench.messages.content.content import EDITED_ARGUMENTS, ELICITATION, Content, question_in

logger = logging.getLogger("agentbench")

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
            return _result("decline")
        if self._callback is not None:
            return await self._ask_callback(self._callback, params)
        self._is_serial = True
        if len(self._calls) != 1 or not self._calls[0].can_ask:
            is_outside = len(self._calls) < 2
            reason = (
                "the tool was not called by an agent" if is_outside else "it may belong to any of several running calls"
            )
            logger.warning(_REFUSED, self._server, reason)
            return _result("decline" if is_outside else "cancel")
        [call] = self._calls
        question = _question_of(request)
        answer = next((one for one in call.unused if one.question == question), None)
        if answer is not None:
            call.unused.remove(answer)  # a server may ask the same question twice
            if not answer.problem:
                return _result(answer.action, answer.content)
        if len(call.answers) + len(call.requests) >= self._limits.max_questions:
            most = self._limits.max_questions
            limit = MCPLimitError(self._server, "too many questions to a person", "max_questions", most)
            logger.warning("A question to a person was declined: %s", limit)
            return _result("decline")
        call.requests.append(self._request(question, call.answers, answer.problem if answer else ""))
        return _result("cancel")

    async def _ask_callback(self, callback: Callable[[Any], Any], params: Any) -> Any:
        try:
            answer = callback(params)
            answer = await answer if inspect.isawaitable(answer) else answer
        except Exception:
            logger.warning("The elicitation_callback of the MCP server %r failed.", self._server, exc_info=True)
            return _result("cancel")
        return _result("decline") if answer is None else _result("accept", dict(answer))

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


def _result(action: str, content: Mapping[str, Any] | None = None) -> Any:
    return make("ElicitResult", {"action": action, **({} if content is None else {"content": content})})
