"""The bundles that `_repr_mimebundle_` returns: views by media type."""

from collections.abc import Collection
from typing import Any

__all__ = ["is_wanted", "with_plain_text"]


def is_wanted(kind: str, include: Collection[str] | None, exclude: Collection[str] | None) -> bool:
    """Whether a front end wants a media type, as the protocol of `_repr_mimebundle_` has it."""
    return (not include or kind in include) and kind not in (exclude or ())


def with_plain_text(bundle: Any, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the bundle of a widget with this plain text, and its metadata, which anywidget adds where it needs some.

    The plain text of a widget is part of a saved notebook, and by default it holds values.
    """
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {**(data or {}), "text/plain": text}, metadata
