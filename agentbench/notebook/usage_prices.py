"""What models cost: prices that a user gives, never ones that are guessed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Price", "cost_of", "read_prices"]

_PER = 1_000_000
_FORMS = "Price(input, output), or the numbers (input, output) or (input, output, cached), per million tokens"


@dataclass(frozen=True)
class Price:
    """What a million tokens of a model cost, in any currency; costs come out in the same.

    Attributes:
        input: Of what the model reads.
        output: Of what it writes.
        cached: Of the part of the input that the provider had kept; `None`: the same as `input`.
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if value is None and name == "cached":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                msg = f"The {name} price is {value!r}; expected a number per million tokens, 0 or more."
                raise ValueError(msg)


def read_prices(given: Any) -> dict[str, Price]:
    """Bring prices to one form.

    Args:
        given: By model name as events tell it: `Price`, or two or three numbers for one. `None` for no prices.

    Raises:
        ValueError: It is something else; the message names the model.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        msg = f"prices is {given!r}; expected a mapping of model names to {_FORMS}."
        raise ValueError(msg)
    return {str(model): _price(model, each) for model, each in given.items()}


def _price(model: object, given: Any) -> Price:
    if isinstance(given, Price):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) not in (2, 3):
        msg = f"The price of {model!r} is {given!r}; expected {_FORMS}."
        raise ValueError(msg)
    try:
        return Price(*given)
    except ValueError as error:
        msg = f"The price of {model!r} is {given!r}: {error}"
        raise ValueError(msg) from error


def cost_of(
    model: str | None,
    tokens_in: int | None,
    tokens_out: int | None,
    tokens_cached: int | None,
    prices: Mapping[str, Price],
) -> float | None:
    """What one call cost; `None` without a price, or where tokens that cost something were not counted.

    Args:
        model: Its name.
        tokens_in: What it read, cached tokens included.
        tokens_out: What it wrote.
        tokens_cached: The part of `tokens_in` that was cached.
        prices: By model name.
    """
    price = prices.get(model or "")
    if price is None or (tokens_in is None and price.input) or (tokens_out is None and price.output):
        return None
    read = tokens_in or 0
    cached = min(tokens_cached or 0, read)
    per_cached = price.input if price.cached is None else price.cached
    return ((read - cached) * price.input + cached * per_cached + (tokens_out or 0) * price.output) / _PER
