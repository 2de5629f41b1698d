"""OpenTelemetry support. It costs nothing while it is switched off or no SDK is installed.

A program that has already set up OpenTelemetry does not need these functions: spans and metrics go to its providers.
"""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.agents.telemetry.layers: AgentTelemetryLayer ChatTelemetryLayer EmbeddingTelemetryLayer
    instruments: DURATION_BUCKETS OtelAttr TOKEN_BUCKETS get_meter get_tracer
    feature_stages: ExperimentalFeature ReleaseCandidateFeature experimental
    providers: configure_otel_providers create_metric_views create_resource
    switches: OBSERVABILITY_SETTINGS ObservabilitySettings disable_instrumentation enable_instrumentation
        enable_sensitive_telemetry is_measuring is_tracing
    user_agent: AGENT_FRAMEWORK_USER_AGENT APP_INFO USER_AGENT_KEY USER_AGENT_TELEMETRY_DISABLED_ENV_VAR
        prepend_agent_framework_to_user_agent
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing
