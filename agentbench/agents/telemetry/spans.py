"""The spans around agents, models and tools.

Imported only where `observability.is_tracing()` says yes. Everything happens in the task that awaits: a span is made
the current one and put back there, so that a run may be awaited by `gather`, a task or `wait_for`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from agentbench.agents.telemetry.attributes import (
    agent_attributes,
    agent_options,
    agent_title,
    chat_attributes,
    embedding_attributes,
    model_name,
    response_attributes,
    tool_attributes,
    tool_name,
)
from agentbench.agents.telemetry.message_json import arguments_json, instructions_json, messages_json, result_text
from agentbench.agents.telemetry.metrics import record_model_call, record_tool_call
from agentbench.agents.telemetry.operation import Operation, RunTotals
from agentbench.agents.telemetry.stream_span import stream_in_span
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.observability import OBSERVABILITY_SETTINGS

R = TypeVar("R")


async def traced_agent_run(agent: Any, messages: Any, options: Any, session: Any, run: Callable[[], Awaitable[R]]) -> R:
    """Run an agent within its span.

    Args:
        agent: The agent.
        messages: Its input, in any form that `run` takes.
        options: Of the run; the agent's default options are added.
        session: Of the run, or `None`.
        run: The run itself.
    """
    span = _AgentSpan(agent, messages, options, session)
    return await _call_in_span(span.begin(), run, span.report)


def traced_agent_stream(
    agent: Any, messages: Any, options: Any, session: Any, open_stream: Callable[[], ResponseStream[Any, Any]]
) -> ResponseStream[Any, Any]:
    """Return the stream of an agent's run within its span, which begins at the first pull.

    Args:
        agent: The agent.
        messages: Its input, in any form that `run` takes.
        options: Of the run; the agent's default options are added.
        session: Of the run, or `None`.
        open_stream: Makes the stream; called at the first pull.
    """
    span = _AgentSpan(agent, messages, options, session)
    return stream_in_span(open_stream, begin=span.begin, report=span.report)


async def traced_chat(client: Any, messages: Iterable[Any], options: Any, call: Callable[[], Awaitable[R]]) -> R:
    """Call a model within its span.

    Args:
        client: The client.
        messages: The messages to the model.
        options: Of the call.
        call: The call itself.
    """
    span = _ChatSpan(client, messages, options)
    return await _call_in_span(span.begin(), call, span.report, _end_model_call)


def traced_chat_stream(
    client: Any, messages: Iterable[Any], options: Any, open_stream: Callable[[], ResponseStream[Any, Any]]
) -> ResponseStream[Any, Any]:
    """Return the stream of a model's answer within its span, which begins at the first pull.

    Args:
        client: The client.
        messages: The messages to the model.
        options: Of the call.
        open_stream: Makes the stream; called at the first pull.
    """
    span = _ChatSpan(client, messages, options)
    return stream_in_span(open_stream, begin=span.begin, report=span.report, end=_end_model_call)


async def traced_tool(tool: Any, call_id: str | None, arguments: Any, call: Callable[[], Awaitable[R]]) -> R:
    """Call a tool within its span.

    Args:
        tool: The tool.
        call_id: Of the model's call.
        arguments: A mapping, a model of pydantic, or JSON text.
        call: The call itself.
    """
    operation = Operation(f"execute_tool {tool_name(tool)}", tool_attributes(tool, call_id))
    if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
        operation.report_content("gen_ai.tool.call.arguments", arguments_json(arguments, _secret_parameters(tool)))

    def report(operation: Operation, result: Any) -> None:
        if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
            operation.report_content("gen_ai.tool.call.result", result_text(result))

    def end(operation: Operation) -> None:
        operation.report({"agentbench.function.invocation.duration": operation.seconds})
        operation.end()
        record_tool_call(operation.attributes, operation.seconds)

    return await _call_in_span(operation, call, report, end)


async def traced_embeddings(client: Any, options: Any, call: Callable[[], Awaitable[R]]) -> R:
    """Embed values within its span.

    Args:
        client: The client.
        options: Of the call.
        call: The call itself.
    """
    title = f"embeddings {model_name(client, options)}"
    operation = Operation(title, chat_attributes(client, options, operation="embeddings"))
    return await _call_in_span(
        operation, call, lambda operation, made: operation.report(embedding_attributes(made)), _end_model_call
    )


async def _call_in_span(
    operation: Operation,
    call: Callable[[], Awaitable[R]],
    report: Callable[[Operation, Any], None],
    end: Callable[[Operation], object] = Operation.end,
) -> R:
    try:
        with operation.current():
            response = await call()
        report(operation, response)
        return response
    except BaseException as error:
        operation.fail(error)
        raise
    finally:
        end(operation)


class _AgentSpan:
    """The span of one run of an agent."""

    __slots__ = ("_agent", "_messages", "_options", "_session", "_totals")

    def __init__(self, agent: Any, messages: Any, options: Any, session: Any) -> None:
        self._agent, self._messages, self._session = agent, messages, session
        self._options = agent_options(agent, options)
        self._totals = RunTotals()

    def begin(self) -> Operation:
        attributes = agent_attributes(self._agent, self._options, self._session)
        operation = Operation(agent_title(self._agent), attributes, self._totals)
        _report_input(operation, self._messages, self._options)
        return operation

    def report(self, operation: Operation, response: Any) -> None:
        attributes = {**self._totals.tokens, **response_attributes(response)}
        if attributes.get("gen_ai.response.id") in self._totals.response_ids:
            del attributes["gen_ai.response.id"]
        operation.report(attributes)
        _report_output(operation, response)


class _ChatSpan:
    """The span of one call of a model."""

    __slots__ = ("_client", "_messages", "_options")

    def __init__(self, client: Any, messages: Iterable[Any], options: Any) -> None:
        self._client, self._messages, self._options = client, messages, options

    def begin(self) -> Operation:
        title = f"chat {model_name(self._client, self._options)}"
        operation = Operation(title, chat_attributes(self._client, self._options))
        _report_input(operation, self._messages, self._options)
        return operation

    def report(self, operation: Operation, response: Any) -> None:
        operation.report_answer(response)
        finish = response.finish_reason if isinstance(response, ChatResponse) else None
        _report_output(operation, response, finish)


def _end_model_call(operation: Operation) -> None:
    if operation.end():
        record_model_call(operation.attributes, operation.seconds)


def _report_input(operation: Operation, messages: Any, options: Any) -> None:
    if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
        operation.report_content("gen_ai.input.messages", messages_json(normalize_messages(messages)))
        instructions = options.get("instructions") if isinstance(options, Mapping) else None
        operation.report_content("gen_ai.system_instructions", instructions_json(instructions))


def _report_output(operation: Operation, response: Any, finish_reason: object = None) -> None:
    if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED and response is not None:
        operation.report_content(
            "gen_ai.output.messages", messages_json(response.messages, finish_reason=finish_reason)
        )


def _secret_parameters(tool: Any) -> list[str]:
    """The parameters of a tool that are secret by their schema."""
    parameters = getattr(tool, "parameters", None)
    schema = parameters() if callable(parameters) else {}
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    return [name for name, part in properties.items() if _is_secret_schema(part)]


def _is_secret_schema(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    return schema.get("format") == "password" or any(map(_is_secret_schema, schema.get("anyOf", ())))
