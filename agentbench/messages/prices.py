"""Prices and costs of models: prices come from the user and are never guessed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_PER = 1_000_000
_FORMS = "Price(input, output), or the numbers (input, output) or (input, output, cached), per million tokens"


@dataclass(frozen=True)
class Price:
    """The price of a million tokens of a model, in any currency; costs are in the same currency.

    Attributes:
        input: Price of input tokens.
        output: Price of output tokens.
        cached: Price of input tokens that the provider served from its cache; `None`: the same as `input`.

    Raises:
        ValueError: A price is not a number, negative or infinite.

    Example:
        usage_frame(run, prices={"gpt-4o": Price(2.5, 10, cached=1.25)})
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
            if not is_number and (name != "cached" or value is not None):
                msg = f"The {name} price is {value!r}; expected a number per million tokens, 0 or more."
                raise ValueError(msg)


def read_prices(prices: Any) -> dict[str, Price]:
    """Return prices by model name; each is converted from a `Price` or from two or three numbers."""
    if not isinstance(prices, Mapping | None):
        msg = f"prices is {prices!r}; expected a mapping of model names to {_FORMS}."
        raise ValueError(msg)
    return {str(model): _price(model, each) for model, each in (prices or {}).items()}


def _price(model: object, price: Any) -> Price:
    try:
        return price if isinstance(price, Price) else Price(*price)
    except (TypeError, ValueError) as error:
        msg = f"The price of {model!r} is {price!r}; expected {_FORMS}. {error}"
        raise ValueError(msg) from error


def cost_of(
    model: str | None,
    tokens_in: int | None,
    tokens_out: int | None,
    tokens_cached: int | None,
    prices: Mapping[str, Price],
) -> float | None:
    """Return the cost of one call; `None` without a price, or if billed tokens were not counted.

    Cached tokens are a part of the input tokens.
    """
    price = prices.get(model or "")
    if price is None or (tokens_in is None and price.input) or (tokens_out is None and price.output):
        return None
    read = tokens_in or 0
    cached = min(tokens_cached or 0, read)
    per_cached = price.input if price.cached is None else price.cached
    return ((read - cached) * price.input + cached * per_cached + (tokens_out or 0) * price.output) / _PER
