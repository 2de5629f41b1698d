"""What a handler takes, sends and yields, read from its annotations or from explicit types.

A type may be named before it exists: postponed annotations, text, classes defined further down. Where a later reading
can still help, `read_handler` and `read_response_handler` return a `PendingSignature`. Both kinds of signature have
`resolve(owner)`, to be called when the first executor of a class is constructed: by then every name is known, or the
error is raised.
"""

from __future__ import annotations

from collections.abc import Callable

from agentbench._signatures.annotations import take_apart
from agentbench._signatures.forms import TypeLike
from agentbench._signatures.reading import ContextTypes, ExplicitTypes, HandlerSignature, Reading

_Read = Callable[[Reading], HandlerSignature]


class PendingSignature:
    """A signature that names types which did not exist when the handler was decorated."""

    __slots__ = ("_read", "_reading")

    def __init__(self, read: _Read, reading: Reading) -> None:
        self._read = read
        self._reading = reading

    def resolve(self, owner: type) -> HandlerSignature:
        """Look the names up again and return the signature.

        Args:
            owner: The class that the handler belongs to; its name and the names in its body are known, too.

        Raises:
            NameError: A name passed to the decorator does not exist.
            ValueError: A name in an annotation does not exist, or what it names breaks a rule of the decorator.
        """
        return _complete(self._reading.with_names({**vars(owner), owner.__name__: owner}), self._read)


def read_handler(
    func: Callable[..., object], *, context_type: type, explicit: ExplicitTypes | None = None
) -> HandlerSignature | PendingSignature:
    """Read a `@handler` method `(self, message, ctx)`.

    Args:
        func: The undecorated method.
        context_type: The class that annotates `ctx`.
        explicit: Types passed to the decorator; with any of them, `input` is needed and annotations give no types.

    Raises:
        ValueError: Wrong parameters, missing or wrong annotations, or explicit types next to contradicting ones.
    """
    reading = Reading("@handler", take_apart(func), context_type, explicit or ExplicitTypes())
    reading.expect_parameters("(self, message, ctx)")
    return _start(reading, _explicit_handler if reading.explicit.has_any() else _annotated_handler)


def read_response_handler(
    func: Callable[..., object], *, context_type: type, explicit: ExplicitTypes | None = None
) -> HandlerSignature | PendingSignature:
    """Read a `@response_handler` method `(self, original_request, response, ctx)`; `ctx` needs no annotation.

    Raises:
        ValueError: Wrong parameters, missing or wrong annotations, or only one of `request` and `response` passed.
    """
    reading = Reading("@response_handler", take_apart(func), context_type, explicit or ExplicitTypes())
    reading.expect_parameters("(self, original_request, response, ctx)")
    return _start(reading, _explicit_response_handler if reading.explicit.has_any() else _annotated_response_handler)


def read_function(
    func: Callable[..., object], *, context_type: type, explicit: ExplicitTypes | None = None
) -> HandlerSignature:
    """Read an `@executor` function `(message)` or `(message, ctx)`; an explicit type beats its annotation.

    Functions, bound methods, `functools.partial` and callable objects are understood.

    Raises:
        NameError: A name passed to the decorator does not exist.
        TypeError: The object cannot be called, or is a class.
        ValueError: A `staticmethod` or `classmethod` object, wrong parameters, missing or wrong annotations.
    """
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


def _annotated_handler(reading: Reading) -> HandlerSignature:
    return _signature(reading.message_type(1), reading.context_types(2, required=True))


def _explicit_handler(reading: Reading) -> HandlerSignature:
    reading.expect_explicit("input")
    reading.expect_unannotated(1, "input")
    context = reading.explicit_context_types()
    reading.expect_agreement(reading.context_types(2, required=False), context)
    return _signature(reading.explicit_type("input"), context)


def _annotated_response_handler(reading: Reading) -> HandlerSignature:
    context = reading.context_types(3, required=False)
    return _response_signature(reading.message_type(1), reading.message_type(2), context)


def _explicit_response_handler(reading: Reading) -> HandlerSignature:
    reading.expect_explicit("request", "response")
    reading.context_types(3, required=False)  # gives no types here, but has to be a context
    context = reading.explicit_context_types()
    return _response_signature(reading.explicit_type("request"), reading.explicit_type("response"), context)


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
    )


def _response_signature(request_type: TypeLike, response_type: TypeLike, context: ContextTypes) -> HandlerSignature:
    signature = _signature(response_type, context)
    return signature._replace(request_type=request_type, response_type=response_type)
