"""The limits of a request: when the model gets no tools any more."""

from __future__ import annotations

from collections.abc import Sequence

from agentbench import _clock
from agentbench.agents.loop.call import Outcome
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration

_NS_PER_S = 1_000_000_000


class Limits:
    """Counts what a request uses up of the limits of its configuration.

    Attributes:
        failed_too_often: Names of tools to be taken away one by one, where errors are counted for each tool.
    """

    __slots__ = (
        "_config",
        "_ends_ns",
        "_errors",
        "_errors_of",
        "_executed",
        "_most_errors",
        "_rounds",
        "failed_too_often",
    )

    def __init__(self, config: FunctionInvocationConfiguration) -> None:
        self._config = config
        self._rounds = self._executed = self._errors = 0
        self._most_errors = max(config["max_consecutive_errors_per_request"], 1)
        self._errors_of: dict[str, int] | None = {} if config.get("error_scope") == "tool" else None
        self.failed_too_often: list[str] = []
        duration_s = config.get("max_duration_s")
        self._ends_ns = None if duration_s is None else _now_ns() + duration_s * _NS_PER_S

    def room(self) -> int | None:
        """Return how many calls of the next batch may be made; `None` for all of them."""
        most = self._config["max_function_calls"]
        if most is None or not self._config.get("strict_max_function_calls", False):
            return None
        return max(most - self._executed, 0)

    def count_round(self) -> None:
        """Count one call of the model that led to tool calls."""
        self._rounds += 1

    def count(self, outcomes: Sequence[Outcome], executed: int) -> None:
        """Count a batch and its errors."""
        self._executed += executed
        if self._errors_of is None:
            self._errors = self._errors + 1 if [outcome for outcome in outcomes if outcome.failed] else 0
            return
        failing = {outcome.name for outcome in outcomes if outcome.failed}
        for name in {outcome.name for outcome in outcomes}:
            self._errors_of[name] = self._errors_of.get(name, 0) + 1 if name in failing else 0
            if self._errors_of[name] == self._most_errors:
                self.failed_too_often.append(name)

    def reason_to_stop(self) -> str | None:
        """Return the limit that is used up, so that the model gets no tools any more; `None` if none is."""
        config, most = self._config, self._config["max_function_calls"]
        if self._rounds >= config["max_iterations"]:
            return f"max_iterations={config['max_iterations']}"
        if most is not None and self._executed >= most:
            return f"max_function_calls={most}"
        if self._errors >= self._most_errors:
            return f"max_consecutive_errors_per_request={config['max_consecutive_errors_per_request']}"
        if self._ends_ns is not None and _now_ns() >= self._ends_ns:
            return f"max_duration_s={config.get('max_duration_s')}"
        return None


def _now_ns() -> int:
    return _clock.runtime_defaults().clock.perf_ns()
