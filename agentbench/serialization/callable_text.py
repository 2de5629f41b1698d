"""Text that programs may call like the method that other libraries have in its place."""

from __future__ import annotations

from typing import Any


class CallableText(str):
    """Text that returns itself when called; copied, pickled and stored as plain text."""

    __slots__ = ()

    def __call__(self) -> CallableText:
        """Return the text."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the plain text for `copy` and `pickle`."""
        return str, (str.__str__(self),)


def plain_if_callable(value: Any) -> Any:
    """Return a callable text as plain text, and any other value as it is."""
    return str.__str__(value) if type(value) is CallableText else value
