"""How much a batch may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from agentbench._limits import require_limit, require_seconds


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a batch as a whole. When one is reached, no further input begins; open runs finish.

    Tokens and cost count over all calls of the batch, seconds and failures over this call.

    Attributes:
        tokens: Tokens that models read and write.
        cost: Cost of the models, in the currency of the prices.
        seconds: Duration of this call, in seconds.
        failures: Number of rows that fail in this call.

    Raises:
        TypeError: A limit is not a number.
        ValueError: A limit is not above 0.

    Example:
        from agentbench.batch import Budget, run_many

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
