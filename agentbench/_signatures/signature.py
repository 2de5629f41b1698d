"""The values that describe a handler: types passed to its decorator, and what it takes and gives."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from agentbench._signatures.forms import TypeLike


class _NotGiven(enum.Enum):
    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN: Final = _NotGiven.NOT_GIVEN
"""Stands for "no type was passed". `None`, the default of the decorators' keywords, means the same."""


class ExplicitTypes(NamedTuple):
    """Types passed to a decorator: each a type, a union or text that names one; `type(None)` is written out."""

    input: TypeLike = NOT_GIVEN
    output: TypeLike = NOT_GIVEN
    workflow_output: TypeLike = NOT_GIVEN
    request: TypeLike = NOT_GIVEN
    response: TypeLike = NOT_GIVEN

    def has(self, slot: str) -> bool:
        """Whether this type was passed."""
        return is_given(getattr(self, slot))

    def has_any(self) -> bool:
        """Whether any type was passed, which makes the mode explicit."""
        return any(map(is_given, self))


class HandlerSignature(NamedTuple):
    """What one handler takes and gives.

    Attributes:
        message_type: Type of the message, a union as one type. For a response handler the type of the response.
        send_types: Types for `send_message`, unions as their members; `Never` is none.
        yield_types: Types for `yield_output`, likewise.
        can_send: Whether the context offers `send_message`.
        can_yield: Whether the context offers `yield_output`.
        takes_context: Whether there is a context parameter.
        request_type: Response handlers only: type of the original request.
        response_type: Response handlers only: type of the answer.
    """

    message_type: TypeLike
    send_types: tuple[TypeLike, ...] = ()
    yield_types: tuple[TypeLike, ...] = ()
    can_send: bool = False
    can_yield: bool = False
    takes_context: bool = True
    request_type: TypeLike = None
    response_type: TypeLike = None

    def resolve(self, owner: type) -> HandlerSignature:
        """Return this signature: all its types are known."""
        return self


def is_given(type_: TypeLike) -> bool:
    """Whether something was passed where `NOT_GIVEN` or `None` stand for nothing."""
    return type_ is not NOT_GIVEN and type_ is not None
