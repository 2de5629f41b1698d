"""Values as JSON with pickles in it: a format for exchange with agent-framework, used only where it is asked for.

JSON values are kept, keys of dictionaries become text, everything else is `{"__pickled__": base64, "__type__":
"module:qualname"}`. A pickle can name any class or function, so reading takes only names from a list; the few functions
that pickles need are guarded.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping
from io import BytesIO
from typing import Any, Final

from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.serialization.pickle_names import NameFinder, type_label
from agentbench.serialization.unpicklers import OpenUnpickler, RestrictedUnpickler

PICKLED: Final = "__pickled__"
PICKLED_TYPE: Final = "__type__"

_PROTOCOL: Final = 4
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def encode_checkpoint_value(value: Any) -> Any:
    """Turn a value into what `json.dumps` can write; see `decode_checkpoint_value`.

    Keys of dictionaries become text, as the format has it. Subclasses of `dict`, `str` and numbers keep their type.

    Raises:
        UnstorableValueError: Something in it cannot be pickled.
    """
    return _encode(value, "", None)


def encode_readable(value: Any, finder: NameFinder, path: str = "") -> Any:
    """Turn a value into what `json.dumps` can write, and `decode_found` with this finder can read again.

    Args:
        value: The value.
        finder: Knows the names that are allowed.
        path: Where the value is, for the error.

    Raises:
        UnstorableValueError: Something in it cannot be pickled, or could not be read again.
    """
    return _encode(value, path, finder)


def decode_checkpoint_value(value: Any, *, allowed_types: Collection[str] | None = None) -> Any:
    """Return the value that `encode_checkpoint_value`, or its namesake in agent-framework, was given.

    Messages and events of agent-framework become those of this library.

    Args:
        value: What `json.loads` gave.
        allowed_types: More classes that may be in it, as `"module:qualname"`, besides Python's own value types and the
            data classes of this library. `{"*"}` takes everything: whoever wrote the value can then run any code here.

    Raises:
        ValueError: One of the allowed types is no such name.
        WorkflowCheckpointException: It names something that is not allowed, is not what it says, or is damaged.
    """
    return decode_found(value, NameFinder(allowed_types or ()))


def decode_found(value: Any, finder: NameFinder) -> Any:
    """Like `decode_checkpoint_value`, with what knows the names that are allowed.

    Raises:
        WorkflowCheckpointException: As there.
    """
    if isinstance(value, list):
        return [decode_found(item, finder) for item in value]
    if not isinstance(value, Mapping):
        return value
    if PICKLED in value and PICKLED_TYPE in value:
        return _unpickle(value[PICKLED], str(value[PICKLED_TYPE]), finder)
    return {key: decode_found(item, finder) for key, item in value.items()}


def _encode(value: Any, path: str, finder: NameFinder | None) -> Any:
    cls = type(value)
    if cls in _SCALARS:
        return value
    if cls is list:
        return [_encode(item, f"{path}[{place}]", finder) for place, item in enumerate(value)]
    if cls is dict and not (PICKLED in value and PICKLED_TYPE in value):  # such data would pass for a pickle
        return {str(key): _encode(item, f"{path}[{key!r}]", finder) for key, item in value.items()}
    try:
        data = pickle.dumps(value, _PROTOCOL)
    except Exception as error:
        raise UnstorableValueError(cls, f"It cannot be pickled: {str(error).rstrip('.')}.", path=path) from error
    text, label = b64encode(data).decode(), type_label(cls)
    if finder is not None:
        try:
            _unpickle(text, label, finder)
        except WorkflowCheckpointException as error:
            raise UnstorableValueError(cls, f"It could not be loaded again: {error}", path=path) from error
    return {PICKLED: text, PICKLED_TYPE: label}


def _unpickle(text: Any, label: str, finder: NameFinder) -> Any:
    try:
        file = BytesIO(b64decode(text, validate=True))
        unpickled = (OpenUnpickler if finder.takes_everything else RestrictedUnpickler)(file, finder).load()
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        message = (
            f"A pickled {label} in the checkpoint cannot be read: {type(error).__name__}: {str(error).rstrip('.')}."
        )
        raise WorkflowCheckpointException(message, error) from error
    found = type_label(type(unpickled))
    if found != finder.label_here(label):
        message = f"The checkpoint says that it holds a {label}, and holds a {found}. It was damaged or tampered with."
        raise WorkflowCheckpointException(message)
    return unpickled
