"""The tracer and the meter of the library, the names of attributes, and the marking of failed spans."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench._extras import require
from agentbench._secrets import mask_text
from agentbench.observability.switches import OBSERVABILITY_SETTINGS

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Span, Tracer

SCOPE: Final = "agentbench"
# Read from sys.modules, because modules of the library never import the root package.
VERSION: Final = str(sys.modules["agentbench"].__version__)

TOKEN_BUCKETS: Final = tuple(4**power for power in range(14))
"""The bucket boundaries of token histograms: 1, 4, 16 … 67108864."""
DURATION_BUCKETS: Final = tuple(round(0.01 * 2**power, 2) for power in range(14))
"""The bucket boundaries of duration histograms in seconds: 0.01, 0.02, 0.04 … 81.92."""

_cache: dict[str, tuple[Any, Any]] = {}


def get_tracer(
    instrumenting_module_name: str = SCOPE,
    instrumenting_library_version: str | None = VERSION,
    schema_url: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Tracer:
    """Return a tracer of the installed provider, for your own spans next to those of the library.

    Args:
        instrumenting_module_name: The name of the code that creates the spans; by default the library's.
        instrumenting_library_version: The version of that code.
        schema_url: The address of the conventions that the spans follow.
        attributes: Attributes of all spans of the tracer; ignored if the installed OpenTelemetry does not support them.

    Raises:
        MissingExtraError: The OpenTelemetry API is not installed.

    Example:
        from agentbench.observability import get_tracer

        with get_tracer().start_as_current_span("prepare the input"):
            ...
    """
    provider = require("opentelemetry.trace", extra="otel", purpose="trace runs").get_tracer_provider()
    scope = (instrumenting_module_name, instrumenting_library_version, schema_url)
    return cast("Tracer", _instrument(provider, "get_tracer", scope, attributes))


def get_meter(
    name: str = SCOPE,
    version: str | None = VERSION,
    schema_url: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Meter:
    """Return a meter of the installed provider, for your own metrics next to those of the library.

    Args:
        name: The name of the code that measures; by default the library's.
        version: The version of that code.
        schema_url: The address of the conventions that the metrics follow.
        attributes: Attributes of all metrics of the meter; ignored if the installed OpenTelemetry does not support
            them.

    Raises:
        MissingExtraError: The OpenTelemetry API is not installed.

    Example:
        from agentbench.observability import get_meter

        get_meter().create_counter("questions").add(1)
    """
    provider = require("opentelemetry.metrics", extra="otel", purpose="measure runs").get_meter_provider()
    return cast("Meter", _instrument(provider, "get_meter", (name, version, schema_url), attributes))


def mark_failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed. Error texts may contain sensitive data, so they are added only if that is allowed."""
    from opentelemetry.trace import StatusCode  # the API is installed if there is a span

    kind = type(error).__name__
    span.set_attribute(OtelAttr.ERROR_TYPE, kind)
    if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED:
        text = "".join(traceback.format_exception(error))
        masked = {"exception.message": mask_text(str(error)), "exception.stacktrace": mask_text(text)}
        span.record_exception(error, attributes=masked)
    else:
        span.add_event("exception", {"exception.type": f"{type(error).__module__}.{kind}"})
    span.set_status(StatusCode.ERROR, error_text(error))


def error_text(error: BaseException) -> str:
    """Return the text of an error if sensitive data is allowed in spans, otherwise only the name of its class."""
    return mask_text(str(error)) if OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED else type(error).__name__


def _instrument(
    provider: Any, getter: str, scope: tuple[str, str | None, str | None], attributes: Mapping[str, Any] | None
) -> Any:
    """Return a tracer or meter. The library's own is cached, because creating one costs more than a span."""
    get = getattr(provider, getter)
    if attributes is not None and "attributes" in inspect.signature(get).parameters:
        return get(*scope, attributes=attributes)
    if scope != (SCOPE, VERSION, None):
        return get(*scope)
    entry = _cache.get(getter)
    if entry is None or entry[0] is not provider:
        entry = _cache[getter] = provider, get(*scope)
    return entry[1]


class OtelAttr(StrEnum):
    """A name in telemetry. Each member is a string and can be used as one: `span.attributes[OtelAttr.OPERATION]`.

    Example:
        from agentbench.observability import OtelAttr

        assert OtelAttr.OPERATION == "gen_ai.operation.name"
    """

    # general
    OPERATION = "gen_ai.operation.name"
    PROVIDER_NAME = "gen_ai.provider.name"
    SYSTEM = "gen_ai.system"
    ERROR_TYPE = "error.type"
    ADDRESS = "server.address"
    PORT = "server.port"
    SPAN_ID = "SpanId"
    TRACE_ID = "TraceId"
    SERVICE_NAME = "service.name"
    SERVICE_VERSION = "service.version"
    EVENT_NAME = "event.name"
    # request
    REQUEST_MODEL = "gen_ai.request.model"
    REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
    REQUEST_TEMPERATURE = "gen_ai.request.temperature"
    REQUEST_TOP_P = "gen_ai.request.top_p"
    TOP_K = "gen_ai.request.top_k"
    SEED = "gen_ai.request.seed"
    FREQUENCY_PENALTY = "gen_ai.request.frequency_penalty"
    PRESENCE_PENALTY = "gen_ai.request.presence_penalty"
    STOP_SEQUENCES = "gen_ai.request.stop_sequences"
    CHOICE_COUNT = "gen_ai.request.choice.count"
    ENCODING_FORMATS = "gen_ai.request.encoding_formats"
    # response, usage
    RESPONSE_ID = "gen_ai.response.id"
    RESPONSE_MODEL = "gen_ai.response.model"
    FINISH_REASONS = "gen_ai.response.finish_reasons"
    INPUT_TOKENS = "gen_ai.usage.input_tokens"
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
    # contents
    INPUT_MESSAGES = "gen_ai.input.messages"
    OUTPUT_MESSAGES = "gen_ai.output.messages"
    SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
    OUTPUT_TYPE = "gen_ai.output.type"
    # agent
    AGENT_ID = "gen_ai.agent.id"
    AGENT_NAME = "gen_ai.agent.name"
    AGENT_DESCRIPTION = "gen_ai.agent.description"
    CONVERSATION_ID = "gen_ai.conversation.id"
    DATA_SOURCE_ID = "gen_ai.data_source.id"
    # tool
    TOOL_NAME = "gen_ai.tool.name"
    TOOL_DESCRIPTION = "gen_ai.tool.description"
    TOOL_TYPE = "gen_ai.tool.type"
    TOOL_CALL_ID = "gen_ai.tool.call.id"
    TOOL_DEFINITIONS = "gen_ai.tool.definitions"
    TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
    TOOL_RESULT = "gen_ai.tool.call.result"
    # operations
    CHAT_COMPLETION_OPERATION = "chat"
    EMBEDDING_OPERATION = "embeddings"
    TOOL_EXECUTION_OPERATION = "execute_tool"
    AGENT_CREATE_OPERATION = "create_agent"
    AGENT_INVOKE_OPERATION = "invoke_agent"
    # metrics
    LLM_TOKEN_USAGE = "gen_ai.client.token.usage"
    LLM_OPERATION_DURATION = "gen_ai.client.operation.duration"
    T_UNIT = "{token}"
    T_TYPE = "gen_ai.token.type"
    T_TYPE_INPUT = "input"
    T_TYPE_OUTPUT = "output"
    DURATION_UNIT = "s"
    # message events
    SYSTEM_MESSAGE = "gen_ai.system.message"
    USER_MESSAGE = "gen_ai.user.message"
    ASSISTANT_MESSAGE = "gen_ai.assistant.message"
    TOOL_MESSAGE = "gen_ai.tool.message"
    CHOICE = "gen_ai.choice"
    # workflow
    WORKFLOW_ID = "workflow.id"
    WORKFLOW_NAME = "workflow.name"
    WORKFLOW_DESCRIPTION = "workflow.description"
    WORKFLOW_DEFINITION = "workflow.definition"
    WORKFLOW_BUILDER_NAME = "workflow_builder.name"
    WORKFLOW_BUILDER_DESCRIPTION = "workflow_builder.description"
    WORKFLOW_BUILD_SPAN = "workflow.build"
    WORKFLOW_RUN_SPAN = "workflow.run"
    WORKFLOW_STARTED = "workflow.started"
    WORKFLOW_COMPLETED = "workflow.completed"
    WORKFLOW_ERROR = "workflow.error"
    # build
    BUILD_STARTED = "build.started"
    BUILD_VALIDATION_COMPLETED = "build.validation_completed"
    BUILD_COMPLETED = "build.completed"
    BUILD_ERROR = "build.error"
    BUILD_ERROR_MESSAGE = "build.error.message"
    BUILD_ERROR_TYPE = "build.error.type"
    # executor, edge, message
    EXECUTOR_PROCESS_SPAN = "executor.process"
    EXECUTOR_ID = "executor.id"
    EXECUTOR_TYPE = "executor.type"
    EDGE_GROUP_PROCESS_SPAN = "edge_group.process"
    EDGE_GROUP_TYPE = "edge_group.type"
    EDGE_GROUP_ID = "edge_group.id"
    EDGE_GROUP_DELIVERED = "edge_group.delivered"
    EDGE_GROUP_DELIVERY_STATUS = "edge_group.delivery_status"
    MESSAGE_SEND_SPAN = "message.send"
    MESSAGE_SOURCE_ID = "message.source_id"
    MESSAGE_TARGET_ID = "message.target_id"
    MESSAGE_TYPE = "message.type"
    MESSAGE_PAYLOAD_TYPE = "message.payload_type"
    MESSAGE_DESTINATION_EXECUTOR_ID = "message.destination_executor_id"
    # specific to this library
    MEASUREMENT_FUNCTION_TAG_NAME = "agentbench.function.name"
    MEASUREMENT_FUNCTION_INVOCATION_DURATION = "agentbench.function.invocation.duration"
    AGENT_FRAMEWORK_GEN_AI_SYSTEM = "agentbench"
    WORKFLOW_RUN_ID = "workflow.run_id"
    WORKFLOW_ITERATION = "workflow.iteration"
    ERROR_MESSAGE = "error.message"

    __str__ = __repr__ = str.__str__
