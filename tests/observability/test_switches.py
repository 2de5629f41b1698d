import subprocess
import sys
import textwrap

import pytest

from agentbench.observability import (
    OBSERVABILITY_SETTINGS,
    ObservabilitySettings,
    disable_instrumentation,
    enable_instrumentation,
    enable_sensitive_telemetry,
    is_tracing,
)

SWITCHES = ("ENABLED", "SENSITIVE_DATA_ENABLED", "WORKFLOW_DEFINITION_ENABLED", "is_user_disabled")


@pytest.fixture(autouse=True)
def fresh_switches(monkeypatch):
    """The switches of a fresh process, put back afterwards."""
    for name in ("ENABLE_INSTRUMENTATION", "ENABLE_SENSITIVE_DATA", "ENABLE_WORKFLOW_DEFINITION"):
        monkeypatch.delenv(name, raising=False)
    fresh = ObservabilitySettings()
    for name in SWITCHES:
        monkeypatch.setattr(OBSERVABILITY_SETTINGS, name, getattr(fresh, name))


def switches():
    return OBSERVABILITY_SETTINGS.ENABLED, OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED


@pytest.mark.parametrize(
    ("text", "on"),
    [("1", True), ("true", True), (" Yes ", True), ("ON", True), ("0", False), ("no", False), ("", False)],
)
def test_the_environment_sets_the_switches(monkeypatch, text, on):
    for name in ("ENABLE_INSTRUMENTATION", "ENABLE_SENSITIVE_DATA", "ENABLE_WORKFLOW_DEFINITION"):
        monkeypatch.setenv(name, text)
    settings = ObservabilitySettings()
    assert {getattr(settings, name) for name in SWITCHES[:3]} == {on}


def test_an_unknown_word_switches_nothing_on_and_is_warned_of(monkeypatch, caplog):
    monkeypatch.setenv("ENABLE_INSTRUMENTATION", "sure")
    assert not ObservabilitySettings().ENABLED
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "ENABLE_INSTRUMENTATION is 'sure'" in warning


def test_contents_are_allowed_one_by_one_or_by_the_environment(monkeypatch):
    enable_instrumentation()
    assert switches() == (True, False)
    enable_instrumentation(enable_sensitive_data=True)
    assert switches() == (True, True)
    enable_instrumentation(enable_sensitive_data=False)
    assert switches() == (True, False)
    enable_sensitive_telemetry()
    assert switches() == (True, True)
    enable_instrumentation()
    assert switches() == (True, False)
    monkeypatch.setenv("ENABLE_SENSITIVE_DATA", "true")
    enable_instrumentation()
    assert switches() == (True, True)


def test_what_is_disabled_stays_off_unless_it_is_forced():
    disable_instrumentation()
    for enable in (enable_instrumentation, enable_sensitive_telemetry):
        enable()
        assert switches() == (False, False)
        assert OBSERVABILITY_SETTINGS.is_user_disabled
    enable_sensitive_telemetry(force=True)
    assert switches() == (True, True)
    assert not OBSERVABILITY_SETTINGS.is_user_disabled
    disable_instrumentation()
    enable_instrumentation(force=True)
    assert switches() == (True, False)


def test_there_is_nothing_to_trace_with_until_an_sdk_is_set_up(monkeypatch):
    trace = pytest.importorskip("opentelemetry.trace", reason="OpenTelemetry is not installed")
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")
    seen = []
    for provider in (None, trace.NoOpTracerProvider(), sdk.TracerProvider()):
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
        seen.append((is_tracing(), OBSERVABILITY_SETTINGS.is_setup))
    disable_instrumentation()
    seen.append((is_tracing(), OBSERVABILITY_SETTINGS.is_setup))
    assert seen == [(False, False), (False, False), (True, True), (False, True)]


def test_without_opentelemetry_workflows_run_and_tracers_say_which_extra_brings_them():
    """In a process of its own, in which the package cannot be imported."""
    program = textwrap.dedent("""
        import asyncio, sys
        sys.modules["opentelemetry"] = None
        from agentbench import WorkflowBuilder, WorkflowContext, executor
        from agentbench.exceptions import MissingExtraError
        from agentbench.observability import get_meter, get_tracer, is_tracing

        @executor
        async def show(text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output(text)

        async def main():
            return (await WorkflowBuilder(start_executor=show).build().run("x")).outputs

        assert asyncio.run(main()) == ["x"]
        assert not is_tracing()
        for get in (get_tracer, get_meter):
            try:
                get()
            except MissingExtraError as error:
                print(error)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.count("otel") >= 2


def test_the_engine_does_not_import_opentelemetry_by_itself():
    program = textwrap.dedent("""
        import asyncio, sys
        from agentbench import WorkflowBuilder, WorkflowContext, executor

        @executor
        async def show(text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output(text)

        async def main():
            await WorkflowBuilder(start_executor=show).build().run("x")

        asyncio.run(main())
        print([name for name in sys.modules if name.startswith("opentelemetry")])
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
