"""One span of an agent, a model or a tool, from its start to its end; imported only when telemetry is set up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span

from agentbench.agents.telemetry.attributes import Attributes, response_attributes
from agentbench.exceptions import UserInputRequiredException
from agentbench.observability.instruments import get_tracer, mark_failed

_RUN_KEY = otel_context.create_key("agentbench-run")


class RunTotals:
    """The ids of the answers, and the sums of tokens by attribute, of the model calls of one run of an agent."""

    __slots__ = ("response_ids", "tokens")

    def __init__(self) -> None:
        self.response_ids: set[str] = set()
        self.tokens: dict[str, int] = {}

    def add(self, attributes: Attributes) -> None:
        """Add the attributes of a model call."""
        if "gen_ai.response.id" in attributes:
            self.response_ids.add(attributes["gen_ai.response.id"])
        for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
            if key in attributes:
                self.tokens[key] = self.tokens.get(key, 0) + attributes[key]


class Operation:
    """A span that has begun, with its attributes; to the totals of an agent's run its model calls are added."""

    __slots__ = ("_agent_run", "_ended_at", "_span", "_started_at", "_totals", "attributes")

    def __init__(self, title: str, attributes: Attributes, totals: RunTotals | None = None) -> None:
        self.attributes = dict(attributes)
        self._totals = totals
        agent_run = otel_context.get_value(_RUN_KEY)
        self._agent_run = agent_run if isinstance(agent_run, RunTotals) else None
        self._ended_at: float | None = None
        self._span: Span = get_tracer().start_span(title, attributes=self.attributes)
        self._started_at = time.perf_counter()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the span the current one within; the task that enters must leave."""
        context = trace.set_span_in_context(self._span)
        if self._totals is not None:
            context = otel_context.set_value(_RUN_KEY, self._totals, context)
        token = otel_context.attach(context)
        try:
            yield
        except GeneratorExit:
            # A coroutine that is dropped while it waits may be closed by the garbage collector, outside its task.
            with suppress(ValueError):
                token.var.reset(token)
            raise
        except BaseException:
            otel_context.detach(token)
            raise
        otel_context.detach(token)

    def report(self, attributes: Attributes) -> None:
        """Set more attributes."""
        self.attributes.update(attributes)
        self._span.set_attributes(attributes)

    def report_answer(self, response: Any) -> None:
        """Set the attributes of a model's answer, and add them to the run of the agent around it."""
        attributes = response_attributes(response)
        self.report(attributes)
        if self._agent_run is not None:
            self._agent_run.add(attributes)

    def report_content(self, key: str, text: str | None) -> None:
        """Set contents; the caller has checked that they are allowed."""
        if text is not None:
            self._span.set_attribute(key, text)

    def fail(self, error: BaseException) -> None:
        """Mark the span as failed, unless the run waits for a person."""
        if isinstance(error, UserInputRequiredException):
            return
        self.attributes["error.type"] = type(error).__name__
        mark_failed(self._span, error)

    @property
    def seconds(self) -> float:
        """How long it took, or has been running."""
        return (time.perf_counter() if self._ended_at is None else self._ended_at) - self._started_at

    def end(self) -> bool:
        """End the span, and return whether it had not ended before."""
        if self._ended_at is not None:
            return False
        self._ended_at = time.perf_counter()
        self._span.end()
        return True
