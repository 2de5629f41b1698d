"""Pure: the breakpoints offered to a person, from the executors, message types and state keys of a run."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from agentbench._text.escape import esc
from agentbench.notebook.stepping.model.break_places import Where

_EVERYTHING: tuple[object, ...] = (object, Any)
_UNIONS: tuple[object, ...] = (Union, type(int | str))


@dataclass(frozen=True, slots=True)
class Offer:
    """One sort of breakpoint and its possible places: executors, message types or state keys."""

    sort: str
    label: str
    places: tuple[Any, ...] = ()
    asks: Literal["", "number", "text"] = ""
    """The kind of value to type."""

    @property
    def options(self) -> tuple[str, ...]:
        """Labels of the places."""
        return tuple(esc(getattr(place, "__qualname__", place), into="line", limit=80) for place in self.places)


def offers_of(executors: Sequence[str], types: Sequence[type], keys: Iterable[str]) -> tuple[Offer, ...]:
    """Return the sorts of breakpoints for these executor ids, message types and state keys."""
    ids, key_names = tuple(executors), tuple(keys)
    offers = [
        Offer("before", "before an executor", ids),
        Offer("after", "after an executor", ids),
        Offer("superstep", "before superstep", asks="number"),
        Offer("message", "before a message of type", tuple(types)),
        *(Offer(sort, f"when a value {words}", key_names, "text") for sort, (words, _, _) in _TESTS.items()),
        Offer("failure", "at a failure"),
        Offer("request", "at a request to a person"),
    ]
    return tuple(offer for offer in offers if offer.places or offer.sort in ("superstep", "failure", "request"))


def where_of(offers: Iterable[Offer], sort: str, choice: int, value: object) -> Where:
    """Convert an option of a sort and the typed value to the `where` argument of `Stepper.break_at`.

    Raises:
        LookupError: The sort or the option does not exist.
        ValueError: The typed value cannot be read; the message says what is expected.
    """
    offer = next((offer for offer in offers if offer.sort == sort), None)
    if offer is None or not 0 <= choice < max(1, len(offer.places)):
        msg = f"Unknown breakpoint: option {choice} of {sort!r} does not exist."
        raise LookupError(msg)
    if sort == "superstep":
        if type(value) is not int or value < 0:
            msg = "Type the number of a superstep, 0 or above."
            raise ValueError(msg)
        return value
    if sort in ("failure", "request"):
        return sort
    place: Where = offer.places[choice]
    if sort in ("before", "after"):
        return f"{sort}:{place}"
    if sort not in _TESTS:
        return place
    try:
        return _StateTest(str(place), sort, json.loads(value if isinstance(value, str) else ""))
    except ValueError:
        msg = 'Type a value as JSON, such as 0.5, true or "draft".'
        raise ValueError(msg) from None


def message_types(executors: Mapping[str, Any]) -> list[type]:
    """Return the message classes that executors accept, each once: unions by member, generics by origin."""
    types: dict[type, None] = {}
    for executor in executors.values():
        for declared in getattr(executor, "input_types", ()):
            types.update(dict.fromkeys(_classes(declared)))
    return [cls for cls in types if cls not in _EVERYTHING]


def _classes(declared: Any) -> list[type]:
    if get_origin(declared) in _UNIONS:
        return [cls for part in get_args(declared) for cls in _classes(part)]
    origin = get_origin(declared) or declared
    return [origin] if isinstance(origin, type) and origin is not type(None) else []


# Words, sign and function of each comparison. Values that cannot be compared raise an error, which pauses the run.
_TESTS: dict[str, tuple[str, str, Callable[[Any, Any], object]]] = {
    "equals": ("equals", "==", operator.eq),
    "above": ("is above", ">", operator.gt),
    "below": ("is below", "<", operator.lt),
}


class _StateTest:
    """A condition on one value of the state; false if the key is missing."""

    def __init__(self, key: str, sort: str, value: Any) -> None:
        self._key, self._sort, self._value = key, sort, value
        self.__name__ = f"{key} {_TESTS[sort][1]} {json.dumps(value)}"

    def __call__(self, state: Mapping[str, Any]) -> object:
        return self._key in state and _TESTS[self._sort][2](state[self._key], self._value)
