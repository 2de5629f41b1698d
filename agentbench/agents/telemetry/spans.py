"""The spans around agents, models and tools.

Imported only where `observability.is_tracing()` says yes. Everything happens in the task that awaits: a span is made
the current one and put back there, so that a run may be awaited by `gather`, a task or `wait_for`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from opentelemetry.metrics import Histogram

from agentbench.agents.telemetry.attributes import (
    agent_attributes,
    agent_options,
    agent_title,
    chat_attributes,
    embedding_attributes,
    metric_attributes,
    model_name,
    response_attributes,
    tool_attributes,
    tool_name,
)
from agentbench.agents.telemetry.message_json import arguments_json, instructions_json, messages_json, result_text
from agentbench.agents.telemetry.operation import Operation, RunTotals, SpanAround
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.response import ChatResponse
from agentbench.observability import (
    DURATION_BUCKETS,
    OBSERVABILITY_SETTINGS,
    TOKEN_BUCKETS,
    get_meter,
    is_measuring,
)

TOKENS: Final = "gen_ai.client.token.usage"
MODEL_SECONDS: Final = "gen_ai.client.operation.duration"
TOOL_SECONDS: Final = "agentbench.function.invocation.duration"

_HISTOGRAMS = {
    TOKENS: ("tokens", "Tokens that calls of models read and wrote", TOKEN_BUCKETS),
    MODEL_SECONDS: ("s", "Time that calls of models took", DURATION_BUCKETS),
    TOOL_SECONDS: ("s", "Time that calls of tools took", DURATION_BUCKETS),
}
_cache: dict[str, tuple[object, Histogram]] = {}


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
            _record_model_call(operation.attributes, operation.seconds)


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
        _record_tool_call(operation.attributes, operation.seconds)


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


def _record_model_call(attributes: Mapping[str, Any], seconds: float) -> None:
    """Count a call of a model, by the attributes of its span."""
    if not is_measuring():
        return
    few = metric_attributes(attributes)
    _histogram(MODEL_SECONDS).record(seconds, few)
    for direction in ("input", "output"):
        tokens = attributes.get(f"gen_ai.usage.{direction}_tokens")
        if tokens is not None:
            _histogram(TOKENS).record(tokens, {**few, "gen_ai.token.type": direction})


def _record_tool_call(attributes: Mapping[str, Any], seconds: float) -> None:
    """Count a call of a tool, by the attributes of its span."""
    if is_measuring():
        _histogram(TOOL_SECONDS).record(seconds, metric_attributes(attributes))


def _histogram(name: str) -> Histogram:
    """The histogram of the meter in use; a second one of the same name would make the SDK warn."""
    meter = get_meter()
    owner, histogram = _cache.get(name, (None, None))
    if histogram is not None and owner is meter:
        return histogram
    unit, description, buckets = _HISTOGRAMS[name]
    histogram = meter.create_histogram(
        name, unit=unit, description=description, explicit_bucket_boundaries_advisory=buckets
    )
    _cache[name] = meter, histogram
    return histogram
