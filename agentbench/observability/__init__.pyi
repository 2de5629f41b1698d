# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._lazy import Door
from agentbench.agents.telemetry.layers import AgentTelemetryLayer as AgentTelemetryLayer
from agentbench.agents.telemetry.layers import ChatTelemetryLayer as ChatTelemetryLayer
from agentbench.agents.telemetry.layers import EmbeddingTelemetryLayer as EmbeddingTelemetryLayer
from agentbench.observability.feature_stages import ExperimentalFeature as ExperimentalFeature
from agentbench.observability.feature_stages import ReleaseCandidateFeature as ReleaseCandidateFeature
from agentbench.observability.feature_stages import experimental as experimental
from agentbench.observability.instruments import DURATION_BUCKETS as DURATION_BUCKETS
from agentbench.observability.instruments import TOKEN_BUCKETS as TOKEN_BUCKETS
from agentbench.observability.instruments import OtelAttr as OtelAttr
from agentbench.observability.instruments import get_meter as get_meter
from agentbench.observability.instruments import get_tracer as get_tracer
from agentbench.observability.providers import configure_otel_providers as configure_otel_providers
from agentbench.observability.providers import create_metric_views as create_metric_views
from agentbench.observability.providers import create_resource as create_resource
from agentbench.observability.switches import OBSERVABILITY_SETTINGS as OBSERVABILITY_SETTINGS
from agentbench.observability.switches import ObservabilitySettings as ObservabilitySettings
from agentbench.observability.switches import disable_instrumentation as disable_instrumentation
from agentbench.observability.switches import enable_instrumentation as enable_instrumentation
from agentbench.observability.switches import enable_sensitive_telemetry as enable_sensitive_telemetry
from agentbench.observability.switches import is_measuring as is_measuring
from agentbench.observability.switches import is_tracing as is_tracing
from agentbench.observability.user_agent import AGENT_FRAMEWORK_USER_AGENT as AGENT_FRAMEWORK_USER_AGENT
from agentbench.observability.user_agent import APP_INFO as APP_INFO
from agentbench.observability.user_agent import USER_AGENT_KEY as USER_AGENT_KEY
from agentbench.observability.user_agent import (
    USER_AGENT_TELEMETRY_DISABLED_ENV_VAR as USER_AGENT_TELEMETRY_DISABLED_ENV_VAR,
)
from agentbench.observability.user_agent import (
    prepend_agent_framework_to_user_agent as prepend_agent_framework_to_user_agent,
)

_door: Door
__all__: list[str]
