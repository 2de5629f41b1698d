"""Converts values to tagged JSON text.

JSON values are written unchanged. Every other value becomes an object `{"__t__": <tag>, "v": <value>}`. A user
dictionary that has such a key is written as a list of pairs, so that data never looks like a tag.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from agentbench._secrets import Masked
from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.callable_text import CallableText
from agentbench.serialization.class_names import UnknownInstance, UnknownType
from agentbench.serialization.registry import type_of_class
from agentbench.serialization.standard_types import standard_type

TAG: Final = "__t__"

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""Types that the C encoder writes correctly. Subclasses are excluded, because an enum of texts is not a text."""
_LARGEST_BITS: Final = 4096
"""Longer numbers take quadratic time as decimals, and Python rejects them from 4300 digits on."""

_TEXT: Final = frozenset({str})
_FEW: Final = 3
"""Up to this many entries are written one by one in the time needed to prepare the C encoder."""
_MOST_KEYS: Final = 4096

quote_ascii: Callable[[str], str] = json.encoder.encode_basestring_ascii
"""Writes a text as an ASCII-only JSON string: longer for most of the world's texts, but faster."""
_quote_any: Callable[[str], str] = json.encoder.encode_basestring
_MAKE_ENCODER: Final[Callable[..., Any] | None] = getattr(json.encoder, "c_make_encoder", None)


class JsonWriter:
    """Writes values as tagged JSON on one line; subclasses that store some elsewhere override its `write_` methods."""

    longest_plain: int = sys.maxsize
    """Flat lists and dictionaries with a longer text are written entry by entry."""
    longest_dict: int = sys.maxsize
    """Dictionaries with more entries are written as pairs."""

    def __init__(self) -> None:
        is_overridden = type(self).write_text is not JsonWriter.write_text
        self._methods: dict[type, Callable[[Any], str]] = {
            str: self.write_text if is_overridden else quote,  # one call less for the most frequent values
            int: write_int,
            float: write_float,
            bool: {True: "true", False: "false"}.__getitem__,
            type(None): lambda _: "null",
            list: self.write_list,
            dict: self.write_dict,
            set: self.write_set,
            frozenset: self.write_set,
            CallableText: self.write_text,
            Masked: self.write_text,
            UnknownInstance: lambda value: self.add_tag(value.tag, self.write_items(value.stored)),
            UnknownType: lambda value: self.add_tag("type", self.write(value.stored)),
        }

    def write(self, value: Any) -> str:
        """Return the JSON text of a value; UnstorableValueError or RecursionError if it has none."""
        method = self._methods.get(type(value))
        return self._write_other(value) if method is None else method(value)

    def write_text(self, value: str) -> str:
        """Write a text."""
        return quote(value)

    def write_list(self, value: list[Any]) -> str:
        """Write a list."""
        return self.write_items(value)

    def write_dict(self, value: dict[Any, Any]) -> str:
        """Write a dictionary."""
        if not value:
            return "{}"
        # An object has text keys, none of which looks like a tag.
        if len(value) > self.longest_dict or TAG in value or not _TEXT.issuperset(map(type, value)):
            return self.write_pairs(value)
        if len(value) > _FEW and _PLAIN.issuperset(map(type, value.values())):
            text = flat_text(value, self.longest_plain)
            if text is not None:
                return text
        methods, other, keys = self._methods, self._write_other, _KEYS
        return f"{{{','.join([f'{keys[k]}:{methods.get(type(v), other)(v)}' for k, v in value.items()])}}}"

    def write_pairs(self, value: dict[Any, Any]) -> str:
        """Write a dictionary as a list of pairs."""
        return self.add_tag("dict", self.write_items(list(map(list, value.items()))))

    def write_set(self, value: set[Any] | frozenset[Any]) -> str:
        """Write a set in the order of its written members: equal sets have the same text."""
        return self.add_tag(type(value).__name__, "[" + ",".join(sorted([self.write(item) for item in value])) + "]")

    def write_items(self, items: Iterable[Any]) -> str:
        """Write a JSON array, even if a subclass overrides `write_list`."""
        items = items if isinstance(items, list) else list(items)
        if len(items) > _FEW and _PLAIN.issuperset(map(type, items)):
            text = flat_text(items, self.longest_plain)
            if text is not None:
                return text
        methods, other = self._methods, self._write_other
        return f"[{','.join([methods.get(type(item), other)(item) for item in items])}]"

    def add_tag(self, tag: str, text: str) -> str:
        """Return the JSON of a tagged value, whose inner value is already JSON."""
        return f'{{"{TAG}":{quote(tag)},"v":{text}}}'

    def _write_other(self, value: Any) -> str:
        cls = type(value)
        kind = type_of_class(cls) or standard_type(cls, value)
        encode, write = kind.encode, self.write
        name = "" if kind.name is None else f"[{JsonWriter().write(kind.name)},"
        head, tail = f'{{"{TAG}":{quote(kind.tag)},"v":{name}', "]}" if name else "}"

        def write_tagged(instance: Any) -> str:
            try:
                simpler = encode(instance)
            except (UnstorableValueError, RecursionError):
                raise
            except Exception as error:
                reason = f"Its stored form could not be made: {type(error).__name__}: {str(error).rstrip('.')}."
                raise UnstorableValueError(cls, reason) from error
            return head + write(simpler) + tail

        write_fields = kind.write

        def write_directly(instance: Any) -> str:
            try:
                text = None if write_fields is None else write_fields(instance, write)
            except AttributeError:  # an incomplete instance, for which the other way has the right error
                text = None
            return write_tagged(instance) if text is None else f"{head}{text}}}"

        method = self._methods[cls] = write_tagged if write_fields is None else write_directly
        return method(value)


def quote(text: str) -> str:
    """Return a text as a JSON string; lone surrogates, which UTF-8 lacks, are escaped."""
    if text.isascii():
        return quote_ascii(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return quote_ascii(text)
    return _quote_any(text)


class _Keys(dict[str, str]):
    """A cache of keys as JSON strings: dictionaries often have the same few."""

    def __missing__(self, key: str) -> str:
        text = quote(key)
        if len(self) < _MOST_KEYS:
            self[key] = text
        return text


_KEYS: Final = _Keys()


def write_int(value: int) -> str:
    """Write a whole number of any size."""
    if value.bit_length() > _LARGEST_BITS:
        return f'{{"{TAG}":"int","v":"{value:x}"}}'
    return int.__repr__(value)


def write_float(value: float) -> str:
    """Write a number; JSON has none that are not finite."""
    text = float.__repr__(value)
    return f'{{"{TAG}":"float","v":"{text}"}}' if text in {"nan", "inf", "-inf"} else text


def _plain_encoder() -> Callable[[Any], str]:
    if _MAKE_ENCODER is None:  # not on every Python
        return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    # Created once, because `JSONEncoder.encode` creates one per value, which takes as long as a small value itself.
    encode = _MAKE_ENCODER(None, None, _quote_any, None, ":", ",", False, False, False)
    return lambda value: "".join(encode(value, 0))


_encode_plain: Final = _plain_encoder()


def flat_text(value: Any, longest: int) -> str | None:
    """Return the JSON of a value without tags, by the C encoder; None if an entry needs a tag, or for a longer text."""
    try:
        text = _encode_plain(value)
        text.isascii() or text.encode()
    except ValueError:  # not finite, too long a number, a lone surrogate (a UnicodeEncodeError)
        return None
    return text if len(text) <= longest else None
