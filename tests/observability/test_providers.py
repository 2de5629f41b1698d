"""Setting telemetry up: resources, views, exporters, providers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

import agentbench
from agentbench.exceptions import MissingExtraError
from agentbench.observability import (
    OBSERVABILITY_SETTINGS,
    configure_otel_providers,
    create_metric_views,
    create_resource,
    providers,
)
from agentbench.observability.providers import (
    OtlpTarget,
    make_otlp_exporter,
    read_otlp_targets,
)
from tests.parts.errors import raises

KEY = "sk-not-to-be-seen"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OTEL_", "ENABLE_", "VS_CODE_", "AGENTBENCH_USER_AGENT")):
            monkeypatch.delenv(name)


def in_a_process(program: str, **environment: str) -> str:
    """What a program prints; it has to say nothing on stderr."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env={**around, **environment},
    )
    assert done.stderr == ""
    return done.stdout


# ------------------------------------------------------------------------------------------------------------ resource


@pytest.mark.parametrize(
    ("argument", "variable", "attributes", "expected"),
    [
        ("mine", "variable", "service.name=listed", "mine"),
        (None, "variable", "service.name=listed", "variable"),
        (None, None, "service.name=listed", "listed"),
        (None, None, "deployment.environment=test", "agentbench"),
    ],
)
def test_the_name_of_the_service_is_the_argument_then_a_variable_then_the_default(
    monkeypatch: pytest.MonkeyPatch, argument: str | None, variable: str | None, attributes: str, expected: str
) -> None:
    if variable:
        monkeypatch.setenv("OTEL_SERVICE_NAME", variable)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
    assert create_resource(argument).attributes["service.name"] == expected


def test_a_resource_takes_attributes_under_their_very_names() -> None:
    more: dict[str, Any] = {"deployment.environment": "prod", "ports": [1, 2]}
    found = create_resource("orders", "2", custom_attr="x", **more).attributes
    assert (found["service.name"], found["service.version"], found["custom_attr"]) == ("orders", "2", "x")
    assert (found["deployment.environment"], found["ports"]) == ("prod", (1, 2))


def test_a_resource_reads_a_file(tmp_path: Path) -> None:
    pytest.importorskip("dotenv", reason="python-dotenv is not installed (extra settings)")
    path = tmp_path / ".env"
    path.write_text("OTEL_SERVICE_NAME=filed\nOTEL_SERVICE_VERSION=3\n")
    found = create_resource(None, None, path, "utf-8").attributes
    assert (found["service.name"], found["service.version"]) == ("filed", "3")


def test_tracers_and_meters_are_of_the_installed_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newer:
        def get_tracer(self, *scope: Any, attributes: Any = None) -> Any:
            return scope, attributes

    class Older:  # OpenTelemetry before meters had attributes
        def get_meter(self, name: str, version: str | None = None, schema_url: str | None = None) -> Any:
            return name, version, schema_url

    version = agentbench.__version__
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", Newer())
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", Older())
    tracer: Any = agentbench.observability.get_tracer
    assert tracer() == (("agentbench", version, None), None)
    assert tracer("mine", "2", "https://schema", {"a": 1}) == (("mine", "2", "https://schema"), {"a": 1})
    meter: Any = agentbench.observability.get_meter
    assert meter() == ("agentbench", version, None)
    assert meter(name="mine", attributes={"a": 1}) == ("mine", version, None)


def test_the_views_retain_our_metrics_and_drop_all_others() -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    meter = MeterProvider([reader], views=create_metric_views()).get_meter("m")
    for name in ("agentbench.function.invocation.duration", "gen_ai.client.token.usage", "http.server.duration"):
        meter.create_histogram(name).record(1)
    data = reader.get_metrics_data()
    assert data is not None
    metrics = [metric.name for scope in data.resource_metrics[0].scope_metrics for metric in scope.metrics]
    assert sorted(metrics) == ["agentbench.function.invocation.duration", "gen_ai.client.token.usage"]


# ---------------------------------------------------------------------------------------------------------- user agent


OURS = f"agentbench-python/{agentbench.__version__}"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, {"User-Agent": OURS}),
        ({}, {"User-Agent": OURS}),
        ({"User-Agent": "mine/1", "X-Team": "a"}, {"User-Agent": f"{OURS} mine/1", "X-Team": "a"}),
        ({"user-agent": "mine/1"}, {"user-agent": f"{OURS} mine/1"}),
        ({"User-Agent": None}, {"User-Agent": f"{OURS} None"}),
    ],
)
def test_a_client_of_ones_own_puts_the_library_before_itself_unless_it_is_switched_off(
    headers: dict[str, Any] | None, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(agentbench.USER_AGENT_TELEMETRY_DISABLED_ENV_VAR, "1")
    before = dict(headers or {})
    assert (agentbench.prepend_agent_framework_to_user_agent(headers), agentbench.APP_INFO) == (before, None)
    monkeypatch.setenv(agentbench.USER_AGENT_TELEMETRY_DISABLED_ENV_VAR, "false")
    changed = agentbench.prepend_agent_framework_to_user_agent(headers)
    assert changed == expected
    assert headers is None or changed is headers
    assert agentbench.AGENT_FRAMEWORK_USER_AGENT == OURS
    assert list((agentbench.APP_INFO or {}).values()) == [f"python/{agentbench.__version__}"]


# ------------------------------------------------------------------------------------------------------- OTLP variables


def otlp_targets(settings: dict[str, str]) -> list[OtlpTarget]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in settings.items():
            environment.setenv(f"OTEL_EXPORTER_OTLP_{name.upper()}", value)
        return read_otlp_targets()


@pytest.mark.parametrize("base", ["http://localhost:4318", "http://localhost:4318/"])
def test_over_http_each_kind_has_its_path_unless_it_has_an_endpoint_of_its_own(base: str) -> None:
    settings = {"endpoint": base, "protocol": "http/protobuf", "traces_endpoint": "http://localhost:9/own"}
    assert [target.endpoint for target in otlp_targets(settings)] == [
        "http://localhost:9/own",
        "http://localhost:4318/v1/metrics",
        "http://localhost:4318/v1/logs",
    ]


def test_settings_of_one_kind_win_over_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://localhost:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20a,x=1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x=2, y = 3 ,")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x=4")
    headers = {"authorization": "Bearer a", "x": "2", "y": "3"}
    assert read_otlp_targets() == [OtlpTarget("metrics", "http/protobuf", "http://localhost:9", headers)]  # type: ignore[arg-type]


def test_headers_hide_themselves() -> None:
    targets = otlp_targets({"endpoint": "http://localhost", "headers": f"authorization={KEY}"})
    assert targets[0].headers["authorization"] == KEY
    assert KEY not in repr(targets)
    with raises(ValueError, "OTEL_EXPORTER_OTLP_HEADERS") as caught:
        otlp_targets({"endpoint": "http://localhost", "headers": KEY})
    assert KEY not in str(caught.value)


def test_an_unknown_protocol_is_an_error() -> None:
    with raises(ValueError, "http/json", "grpc", "http/protobuf"):
        otlp_targets({"endpoint": "http://localhost", "protocol": "http/json"})


# ------------------------------------------------------------------------------------------------------------ exporters


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The exporters that were made, by stand-ins for the packages of OTLP exporters."""
    made: list[tuple[str, dict[str, Any]]] = []
    for protocol in ("grpc", "http"):
        for part, name in providers._EXPORTERS.values():
            path = f"opentelemetry.exporter.otlp.proto.{protocol}.{part}"
            module = ModuleType(path)
            known = f"{protocol}.{name}"
            setattr(module, name, lambda known=known, **keywords: made.append((known, keywords)))
            parent = ""
            for piece in path.split(".")[1:-1]:
                parent = f"{parent}.{piece}"
                monkeypatch.setitem(sys.modules, f"opentelemetry{parent}", ModuleType(piece))
            monkeypatch.setitem(sys.modules, path, module)
    return made


@pytest.mark.parametrize(
    ("target", "name", "keywords"),
    [
        (
            OtlpTarget("traces", "grpc", "http://localhost:1", {}),
            "grpc.OTLPSpanExporter",
            {"endpoint": "http://localhost:1", "headers": None, "insecure": True},
        ),
        (
            OtlpTarget("metrics", "grpc", "https://x", {"a": "b"}),  # type: ignore[dict-item]
            "grpc.OTLPMetricExporter",
            {"endpoint": "https://x", "headers": {"a": "b"}, "insecure": False},
        ),
        (
            OtlpTarget("logs", "http/protobuf", "http://x/v1/logs", {}),
            "http.OTLPLogExporter",
            {"endpoint": "http://x/v1/logs", "headers": None},
        ),
    ],
)
def test_an_exporter_is_made_for_its_target(
    made: list[tuple[str, dict[str, Any]]], target: OtlpTarget, name: str, keywords: dict[str, Any]
) -> None:
    make_otlp_exporter(target)
    assert made == [(name, keywords)]


# ------------------------------------------------------------------------------------------------------------ providers


SET_UP = """
    import logging, sys
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from agentbench.observability import (
        OBSERVABILITY_SETTINGS, configure_otel_providers, disable_instrumentation, get_meter, get_tracer, is_measuring,
        is_tracing,
    )

    spans = InMemorySpanExporter()

    def finished():
        trace.get_tracer_provider().force_flush()
        return [span.name for span in spans.get_finished_spans()]
"""


def test_one_call_sets_everything_up_and_a_second_one_changes_nothing() -> None:
    program = (
        SET_UP
        + """
    assert not is_tracing()
    configure_otel_providers(exporters=[spans], enable_sensitive_data=True)
    assert is_tracing() and is_measuring() and OBSERVABILITY_SETTINGS.is_setup
    assert OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED
    configure_otel_providers(exporters=[spans])
    assert not OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED
    with get_tracer().start_as_current_span("s"):
        get_meter().create_counter("c").add(1)
    print(finished(), trace.get_tracer_provider().resource.attributes["service.name"])
    """
    )
    assert in_a_process(program) == "['s'] agentbench\n"


def test_without_an_exporter_nothing_is_installed_and_a_later_call_may_bring_one() -> None:
    program = (
        SET_UP
        + """
    logged = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.getLogger("agentbench").addHandler(handler)
    configure_otel_providers()
    with get_tracer().start_as_current_span("s") as span:
        print(span.get_span_context().trace_id, OBSERVABILITY_SETTINGS.is_setup, len(logged), "exporters=" in logged[0])
    configure_otel_providers(exporters=[spans])
    get_tracer("mine", "2", attributes={"a": 1}).start_span("t").end()
    print(finished(), spans.get_finished_spans()[0].instrumentation_scope.to_json(indent=None))
    """
    )
    own = '{"name": "mine", "version": "2", "schema_url": "", "attributes": {"a": 1}}'
    assert in_a_process(program) == f"0 False 1 True\n['t'] {own}\n"


def test_a_provider_that_is_there_stays_and_exports_to_ours_too() -> None:
    program = (
        SET_UP
        + """
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    mine, meters = TracerProvider(), MeterProvider()
    trace.set_tracer_provider(mine)
    metrics.set_meter_provider(meters)
    logged = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: logged.append(record.getMessage())
    logging.getLogger("agentbench").addHandler(handler)
    configure_otel_providers(exporters=[spans, ConsoleMetricExporter()])
    assert trace.get_tracer_provider() is mine and metrics.get_meter_provider() is meters
    get_tracer().start_span("s").end()
    print(finished(), len(logged), "meter provider" in logged[0])
    """
    )
    assert in_a_process(program) == "['s'] 1 True\n"


def test_the_console_prints_spans_metrics_and_log_records() -> None:
    program = (
        SET_UP
        + """
    configure_otel_providers()
    with get_tracer().start_as_current_span("the span"):
        get_meter().create_counter("the_counter").add(1)
        logging.getLogger("agentbench").warning("the record")
    """
    )
    printed = in_a_process(program, ENABLE_CONSOLE_EXPORTERS="yes")
    assert [word for word in ("the span", "the_counter", "the record") if word not in printed] == []


def test_the_file_says_what_the_environment_could(tmp_path: Path) -> None:
    pytest.importorskip("dotenv", reason="python-dotenv is not installed (extra settings)")
    path = tmp_path / ".env"
    path.write_text("ENABLE_SENSITIVE_DATA=on\nOTEL_SERVICE_NAME=filed\nENABLE_CONSOLE_EXPORTERS=1\n")
    program = (
        SET_UP
        + f"""
    configure_otel_providers(exporters=[spans], env_file_path={str(path)!r}, enable_console_exporters=False)
    print(OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED)
    print(trace.get_tracer_provider().resource.attributes["service.name"])
    """
    )
    assert in_a_process(program) == "True\nfiled\n"


@pytest.mark.parametrize(
    "environment", [{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}, {"VS_CODE_EXTENSION_PORT": "1"}], ids=str
)
def test_an_endpoint_needs_the_package_of_its_exporter(environment: dict[str, str]) -> None:
    program = (
        SET_UP
        + """
    from agentbench.exceptions import MissingExtraError

    sys.modules["opentelemetry.exporter"] = None
    try:
        configure_otel_providers(exporters=[spans])
    except MissingExtraError as error:
        print(error.package, OBSERVABILITY_SETTINGS.is_setup)
    """
    )
    assert in_a_process(program, **environment) == "opentelemetry-exporter-otlp-proto-grpc False\n"


def test_without_the_sdk_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENABLED", "SENSITIVE_DATA_ENABLED", "is_user_disabled"):
        monkeypatch.setattr(OBSERVABILITY_SETTINGS, name, getattr(OBSERVABILITY_SETTINGS, name))
    for name in [name for name in sys.modules if name.startswith("opentelemetry.sdk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    for make in (configure_otel_providers, create_resource, create_metric_views):
        with raises(MissingExtraError, extra="otel"):
            make()
