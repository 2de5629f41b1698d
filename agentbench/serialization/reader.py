"""Converts tagged JSON text to values. Nothing named in the text is imported or called."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.registry import of_kind, type_of_tag
from agentbench.serialization.standard_types import STANDARD_DECODERS
from agentbench.serialization.writer import TAG

_WRITTEN: Final = frozenset({dict, list, str})
"""The types of tagged values. Anything else, such as an endless range, could hang its reader."""
_WHITESPACE: Final = " \t\n\r"


class JsonReader:
    """Reads the text of a `JsonWriter`; a subclass that stores some values elsewhere adds `decoders` for its tags."""

    def __init__(self) -> None:
        self.decoders: dict[str, Callable[[Any], Any]] = dict(STANDARD_DECODERS)
        self._decode = json.JSONDecoder(object_hook=self._revive, parse_constant=_refuse).raw_decode

    def read(self, text: str) -> Any:
        """Return the value of a text, or raise WorkflowCheckpointException."""
        try:
            text = text.strip(_WHITESPACE)
            value, end = self._decode(text)  # `decode` would look for spaces with slow expressions
            if end != len(text):
                raise json.JSONDecodeError("Extra data", text, end)  # noqa: TRY003 - the message of the standard library
            return value
        except WorkflowCheckpointException:
            raise
        except (RecursionError, ValueError) as error:
            problem = f"not JSON: {error}" if isinstance(error, ValueError) else "nested more deeply than Python reads"
            message = f"The stored text is {problem}. It is damaged, or was not written by the library."
            raise WorkflowCheckpointException(message, error) from error

    def _revive(self, found: dict[str, Any]) -> Any:
        tag = found.get(TAG)
        if tag is None:
            return found
        decode = self.decoders.get(tag) if isinstance(tag, str) else None
        if decode is None:
            kind = type_of_tag(tag) if isinstance(tag, str) else None
            if kind is None:
                message = f"The stored text has a value of the unknown kind {tag!r}. Expected a kind of this version."
                raise WorkflowCheckpointException(message)
            decode = self.decoders[tag] = kind.decode
        try:
            value = found["v"]
            if type(value) not in _WRITTEN:
                of_kind(dict, value)
            return decode(value)
        except WorkflowCheckpointException:
            raise
        except Exception as error:
            message = (
                f"A stored value of the kind {tag!r} cannot be read: {type(error).__name__}: {str(error).rstrip('.')}."
            )
            raise WorkflowCheckpointException(message, error) from error


def _refuse(constant: str) -> Any:
    message = f"{constant} is not JSON"
    raise ValueError(message)
