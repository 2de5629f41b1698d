"""Token counts."""

from __future__ import annotations

import logging
from typing import TypedDict, cast

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
