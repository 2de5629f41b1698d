"""Token counts, and limits of their use."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from typing import TypedDict, cast

from agentbench._limits import require_limit, require_seconds

_log = logging.getLogger("agentbench")


class UsageDetails(TypedDict, total=False):
    """Token counts of one or several calls; a service may add more integer counts.

    Attributes:
        input_token_count: Tokens of the messages, options and tools.
        output_token_count: Tokens of the answer.
        total_token_count: Sum of both.

    Example:
        from agentbench import UsageDetails, add_usage_details

        first: UsageDetails = {"input_token_count": 12, "output_token_count": 3}
        print(add_usage_details(first, {"input_token_count": 20}))
    """

    input_token_count: int | None
    output_token_count: int | None
    total_token_count: int | None


def add_usage_details(usage1: UsageDetails | None, usage2: UsageDetails | None) -> UsageDetails:
    """Add two usages key by key; either may be `None`.

    A missing or `None` number counts as 0. A key with any other value than an integer is left out, with a warning.

    Example:
        from agentbench import add_usage_details

        total = add_usage_details({"input_token_count": 5}, {"input_token_count": 2, "output_token_count": 4})
        assert total == {"input_token_count": 7, "output_token_count": 4}
    """
    left, right = cast("dict[str, object]", usage1 or {}), cast("dict[str, object]", usage2 or {})
    if usage1 is None or usage2 is None:
        return cast("UsageDetails", {**left, **right})
    total: dict[str, int] = {}
    for key in {**left, **right}:
        a, b = left.get(key), right.get(key)
        a, b = (0 if a is None else a), (0 if b is None else b)
        if isinstance(a, int) and isinstance(b, int):
            total[key] = a + b
        else:
            _log.warning("Usage %r is left out: %r and %r are not both integers.", key, a, b)
    return cast("UsageDetails", total)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of what a whole batch, or an agent that works in a loop, may use.

    When a limit of a batch is reached, no further input begins and open runs finish; tokens and cost count over all
    calls of the batch, seconds and failures over this call. When a limit of an `AgentLoopMiddleware` is reached, no
    further round begins; it counts tokens and seconds.

    Attributes:
        tokens: Tokens that models read and write.
        cost: Cost of the models, in the currency of the prices.
        seconds: Duration of this call or of the loop, in seconds.
        failures: Number of rows that fail in this call.

    Raises:
        TypeError: A limit is not a number.
        ValueError: A limit is not above 0.

    Example:
        from agentbench import Budget
        from agentbench.batch import run_many

        batch = run_many(workflow, questions, budget=Budget(tokens=2_000_000, cost=5.0), prices={"gpt-4o": (2.5, 10)})
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    failures: int | None = None

    def __post_init__(self) -> None:
        """Check the limits."""
        require_limit("tokens", self.tokens, least=1, none="no limit")
        require_limit("failures", self.failures, least=1, none="no limit")
        require_seconds("seconds", self.seconds, none="no limit")
        cost: object = self.cost
        if cost is not None and not (isinstance(cost, (int, float)) and cost > 0):
            msg = f"cost is {self.cost!r}; expected an amount above 0, or None for no limit."
            raise ValueError(msg)

    def usage(self, **used: float) -> dict[str, tuple[float, float]]:
        """Return each limit with what was used of it: `{"tokens": (1200, 50000)}`."""
        limits = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: (used.get(name, 0), limit) for name, limit in limits.items() if limit is not None}
