"""`RetryPolicy`: after which errors a node runs again, and how long it waits before."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench._limits import require_limit, require_seconds
from agentbench.workflows.executors.options import RetryAfter

# Errors of the code or of this machine, which another attempt would meet again.
_NOT_RETRIED = (
    ArithmeticError, ImportError, LookupError, NameError, OSError, ReferenceError, RuntimeError, StopAsyncIteration,
    StopIteration, SyntaxError, TypeError, ValueError,
)  # fmt: skip


def default_retry_on(error: Exception) -> bool:
    """Return whether another attempt may help: the connection failed, or a server reported an error of its own."""
    if isinstance(error, ConnectionError):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    return 500 <= status < 600 if isinstance(status, int) else not isinstance(error, _NOT_RETRIED)


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When a node runs again after an error, for `add_node(retry_policy=...)`.

    Args:
        initial_interval: Seconds to wait before the second attempt.
        backoff_factor: The factor by which the time grows with each further attempt.
        max_interval: Maximum of seconds to wait.
        max_attempts: Maximum number of attempts, including the first.
        jitter: Whether to wait up to one more second, chosen at random.
        retry_on: The errors to retry: a class, several classes, or a function of the error that returns a bool. By
            default errors of connections and servers, and those that Python does not define.

    Raises:
        TypeError: A limit is not a number, or `retry_on` is neither classes nor a function.
        ValueError: `max_attempts` is less than 1, or a time is negative.

    Example:
        >>> graph.add_node("search", search, retry_policy=RetryPolicy(max_attempts=5, retry_on=TimeoutError))
    """

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool] = default_retry_on

    def __post_init__(self) -> None:
        """Check the number of attempts and the times."""
        require_limit("max_attempts", self.max_attempts, least=1)
        require_seconds("initial_interval", self.initial_interval, zero=True)
        require_seconds("max_interval", self.max_interval, zero=True)
        given: Any = self.retry_on
        if not all(map(callable, given if isinstance(given, (list, tuple)) else [given])):
            message = f"retry_on is {self.retry_on!r}; expected a class of errors, a list of classes, or a function."
            raise TypeError(message)

    def covers(self, error: Exception) -> bool:
        """Return whether the policy is about an error."""
        if isinstance(self.retry_on, (type, Sequence)):
            classes = (self.retry_on,) if isinstance(self.retry_on, type) else tuple(self.retry_on)
            return isinstance(error, classes)
        return self.retry_on(error)

    def seconds_after(self, attempt: int) -> float:
        """Return the seconds to wait after a failed attempt, the first of which is 1."""
        interval = min(self.max_interval, self.initial_interval * self.backoff_factor ** (attempt - 1))
        return interval + (random.random() if self.jitter else 0)


def retry_after(policies: Sequence[RetryPolicy]) -> RetryAfter:
    """Return the engine's function for policies, of which the first that covers an error decides."""

    def seconds(error: Exception, attempt: int) -> float | None:
        policy = next((policy for policy in policies if policy.covers(error)), None)
        return None if policy is None or attempt >= policy.max_attempts else policy.seconds_after(attempt)

    return seconds
