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
