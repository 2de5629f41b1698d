"""The spans around agents, models and tools.

Imported only where `observability.is_tracing()` says yes. Everything happens in the task that awaits: a span is made
the current one and put back there, so that a run may be awaited by `gather`, a task or `wait_for`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
from agentbench.agents.telemetry.stream_span import SpanAround
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.response import ChatResponse
from agentbench.observability import OBSERVABILITY_SETTINGS


class AgentSpan(SpanAround):
    """The span of one run of an agent."""

    __slots__ = ("_agent", "_messages", "_options", "_session", "_totals")

    def __init__(self, agent: Any, messages: Any, options: Any, session: Any) -> None:
        self._agent, self._messages, self._session = agent, messages, session
        self._options = agent_options(agent, options)
        self._totals = RunTotals()

    def begin(self) -> Operation:
        """Begin the span with what is known."""
        attributes = agent_attributes(self._agent, self._options, self._session)
        operation = Operation(agent_title(self._agent), attributes, self._totals)
        _report_input(operation, self._messages, self._options)
        return operation

    def report(self, operation: Operation, result: Any) -> None:
        """Report the result."""
        attributes = {**self._totals.tokens, **response_attributes(result)}
        if attributes.get("gen_ai.response.id") in self._totals.response_ids:
            del attributes["gen_ai.response.id"]
        operation.report(attributes)
        _report_output(operation, result)


class ChatSpan(SpanAround):
    """The span of one call of a model."""

    __slots__ = ("_client", "_messages", "_options")

    def __init__(self, client: Any, messages: Iterable[Any], options: Any) -> None:
        self._client, self._messages, self._options = client, messages, options

    def begin(self) -> Operation:
        """Begin the span with what is known."""
        title = f"chat {model_name(self._client, self._options)}"
        operation = Operation(title, chat_attributes(self._client, self._options))
        _report_input(operation, self._messages, self._options)
        return operation

    def report(self, operation: Operation, result: Any) -> None:
        """Report the result."""
        operation.report_answer(result)
        _report_output(operation, result, result.finish_reason if isinstance(result, ChatResponse) else None)

    def end(self, operation: Operation) -> None:
        """End the span, and measure the call."""
        if operation.end():
            record_model_call(operation.attributes, operation.seconds)


class EmbeddingSpan(ChatSpan):
    """The span of one call of an embedding model."""

    __slots__ = ()

    def begin(self) -> Operation:
        """Begin the span with what is known."""
        title = f"embeddings {model_name(self._client, self._options)}"
        return Operation(title, chat_attributes(self._client, self._options, operation="embeddings"))

    def report(self, operation: Operation, result: Any) -> None:
        """Report the result."""
        operation.report(embedding_attributes(result))


class ToolSpan(SpanAround):
    """The span of one call of a tool."""

    __slots__ = ("_arguments", "_call_id", "_tool")

    def __init__(self, tool: Any, call_id: str | None, arguments: Any) -> None:
        self._tool, self._call_id, self._arguments = tool, call_id, arguments

    def begin(self) -> Operation:
        """Begin the span with what is known."""
        operation = Operation(f"execute_tool {tool_name(self._tool)}", tool_attributes(self._tool, self._call_id))
        if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
            arguments = arguments_json(self._arguments, _secret_parameters(self._tool))
            operation.report_content("gen_ai.tool.call.arguments", arguments)
        return operation

    def report(self, operation: Operation, result: Any) -> None:
        """Report the result."""
        if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
            operation.report_content("gen_ai.tool.call.result", result_text(result))

    def end(self, operation: Operation) -> None:
        """End the span, and measure the call."""
        operation.report({"agentbench.function.invocation.duration": operation.seconds})
        operation.end()
        record_tool_call(operation.attributes, operation.seconds)


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
