"""The types that a handler takes, sends and yields, read from its annotations or from explicit types.

A type may be named before it exists. A `PendingSignature` is then read again by `resolve(owner)`, when the first
executor of a class is constructed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agentbench._signatures.annotations import take_apart
from agentbench._signatures.forms import TypeLike
from agentbench._signatures.reading import ContextTypes, ExplicitTypes, HandlerSignature, Reading

_Read = Callable[[Reading], HandlerSignature]


class PendingSignature(NamedTuple):
    """A signature that names types which did not exist when the handler was decorated."""

    read: _Read
    reading: Reading

    def resolve(self, owner: type) -> HandlerSignature:
        """Look names up again, including the handler's class; `NameError` or `ValueError` if one is still unknown."""
        return _complete(self.reading.with_names({**vars(owner), owner.__name__: owner}), self.read)


def read_handler(
    func: Callable[..., object], *, context_type: type, explicit: ExplicitTypes | None = None
) -> HandlerSignature | PendingSignature:
    """Read a `@handler` method `(self, message, ctx)`: its annotations, or only the decorator's explicit types."""
    reading = Reading("@handler", take_apart(func), context_type, explicit or ExplicitTypes())
    reading.expect_parameters("(self, message, ctx)")
    return _start(reading, _handler)


def read_response_handler(
    func: Callable[..., object], *, context_type: type, explicit: ExplicitTypes | None = None
) -> HandlerSignature | PendingSignature:
    """Read a `@response_handler` method `(self, original_request, response, ctx)`; `ctx` needs no annotation."""
    reading = Reading("@response_handler", take_apart(func), context_type, explicit or ExplicitTypes())
    reading.expect_parameters("(self, original_request, response, ctx)")
    return _start(reading, _response_handler)


def read_function(
    func: Callable[..., object], *, context_type: type, explicit: ExplicitTypes | None = None
) -> HandlerSignature:
    """Read an `@executor` callable `(message)` or `(message, ctx)`; an explicit type overrides its annotation."""
    reading = Reading("@executor", take_apart(func), context_type, explicit or ExplicitTypes())
    reading.expect_parameters("(message)", "(message, ctx)")
    return _complete(reading, _function)


def _start(reading: Reading, read: _Read) -> HandlerSignature | PendingSignature:
    signature = read(reading)
    return PendingSignature(read, reading.with_names(reading.types_in_scope())) if reading.unknown else signature


def _complete(reading: Reading, read: _Read) -> HandlerSignature:
    signature = read(reading)
    if reading.unknown:
        raise reading.unknown[0]
    return signature


def _handler(reading: Reading) -> HandlerSignature:
    if not reading.explicit.has_any():
        return _signature(reading.message_type(1), reading.context_types(2, required=True))
    reading.expect_explicit("input")
    reading.expect_unannotated(1, "input")
    context = reading.explicit_context_types()
    reading.expect_agreement(reading.context_types(2, required=False), context)
    return _signature(reading.explicit_type("input"), context)


def _response_handler(reading: Reading) -> HandlerSignature:
    is_explicit = reading.explicit.has_any()
    if is_explicit:
        reading.expect_explicit("request", "response")
    context = reading.context_types(3, required=False)  # must be a context, even if the types were passed
    if is_explicit:
        context = reading.explicit_context_types()
        request, response = reading.explicit_type("request"), reading.explicit_type("response")
    else:
        request, response = reading.message_type(1), reading.message_type(2)
    return _signature(response, context)._replace(request_type=request, response_type=response)


def _function(reading: Reading) -> HandlerSignature:
    explicit, takes_context = reading.explicit, len(reading.callee.parameters) == 2
    message_type = reading.explicit_type("input") if explicit.input is not None else reading.message_type(0)
    annotated = reading.context_types(1, required=not explicit.has_any()) if takes_context else ContextTypes()
    context = reading.explicit_context_types().or_else(annotated)
    return _signature(message_type, context, takes_context=takes_context)


def _signature(message_type: TypeLike, context: ContextTypes, *, takes_context: bool = True) -> HandlerSignature:
    send_types, yield_types = context.members()
    return HandlerSignature(
        message_type=message_type,
        send_types=send_types,
        yield_types=yield_types,
        can_send=bool(send_types),
        can_yield=bool(yield_types),
        takes_context=takes_context,
        sends_never=context.send is not None and not send_types,
    )
