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
from agentbench.observability.failures import mark_failed
from agentbench.observability.instruments import get_tracer

_RUN_KEY = otel_context.create_key("agentbench-run")


class RunTotals:
    """What the model calls of one run of an agent have reported on their own spans.

    Attributes:
        response_ids: Of their answers.
        tokens: Sums by attribute.
    """

    __slots__ = ("response_ids", "tokens")

    def __init__(self) -> None:
        self.response_ids: set[str] = set()
        self.tokens: dict[str, int] = {}

    def add(self, attributes: Attributes) -> None:
        """Take in what a model call reported."""
        if "gen_ai.response.id" in attributes:
            self.response_ids.add(attributes["gen_ai.response.id"])
        for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
            if key in attributes:
                self.tokens[key] = self.tokens.get(key, 0) + attributes[key]


class Operation:
    """A span that has begun.

    Args:
        title: Its name.
        attributes: What is known already. Grows by what is reported later.
        totals: Where the model calls within this operation report to, if it is the run of an agent.

    Attributes:
        attributes: All that was reported, contents aside.
    """

    __slots__ = ("_around", "_began", "_ended_at", "_span", "_totals", "attributes")

    def __init__(self, title: str, attributes: Attributes, totals: RunTotals | None = None) -> None:
        self.attributes = dict(attributes)
        self._totals = totals
        around = otel_context.get_value(_RUN_KEY)
        self._around = around if isinstance(around, RunTotals) else None
        self._ended_at: float | None = None
        self._span: Span = get_tracer().start_span(title, attributes=self.attributes)
        self._began = time.perf_counter()

    @contextmanager
    def current(self) -> Iterator[None]:
        """The span is the current one within; to be left in the task that entered."""
        context = trace.set_span_in_context(self._span)
        if self._totals is not None:
            context = otel_context.set_value(_RUN_KEY, self._totals, context)
        token = otel_context.attach(context)
        try:
            yield
        except GeneratorExit:
            # A coroutine that is given up while it waits may be closed by the garbage collector, outside its task.
            with suppress(ValueError):
                token.var.reset(token)
            raise
        except BaseException:
            otel_context.detach(token)
            raise
        otel_context.detach(token)

    def report(self, attributes: Attributes) -> None:
        """Put more attributes on the span."""
        self.attributes.update(attributes)
        self._span.set_attributes(attributes)

    def report_answer(self, response: Any) -> None:
        """Put a model's answer on the span, and tell the run of the agent around it."""
        found = response_attributes(response)
        self.report(found)
        if self._around is not None:
            self._around.add(found)

    def report_content(self, key: str, text: str | None) -> None:
        """Put contents on the span; the caller has asked whether that is allowed."""
        if text is not None:
            self._span.set_attribute(key, text)

    def fail(self, error: BaseException) -> None:
        """Mark the span as failed. What an error says may be content, so that is kept only where contents are."""
        if isinstance(error, UserInputRequiredException):
            return
        self.attributes["error.type"] = type(error).__name__
        mark_failed(self._span, error)

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        return (time.perf_counter() if self._ended_at is None else self._ended_at) - self._began

    def end(self) -> bool:
        """End the span; False if it had ended before."""
        if self._ended_at is not None:
            return False
        self._ended_at = time.perf_counter()
        self._span.end()
        return True
