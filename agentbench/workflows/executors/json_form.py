"""The serialized forms and copies that executors, edges, cases and groups have in common."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self


class JsonForm:
    """A dict form, a JSON form and copies. Callables are written by name only."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild an object from the result of `to_dict`; its callables are known by name only and cannot be called."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        import json  # noqa: PLC0415 - a run needs no JSON

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Rebuild an object from the result of `to_json`; `ValueError` if the text is not a JSON object."""
        import json  # noqa: PLC0415 - as above

        data = json.loads(text)
        if not isinstance(data, dict):
            msg = f"{cls.__name__}.from_json() got {type(data).__name__}; expected a JSON object, as to_json() writes."
            raise ValueError(msg)
        return cls.from_dict(data)

    def clone(self, deep: bool = True) -> Self:
        """Return a copy with the same callables; `deep` also copies contained edges and cases."""
        del deep  # flat parts contain nothing to copy; groups override this
        return copy.copy(self)
