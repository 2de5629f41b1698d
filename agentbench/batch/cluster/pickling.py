"""What can be sent to workers: pickled values, the reason why one cannot be pickled, and checks of a Dask client.

Values are pickled for the moment of sending only; nothing that is stored is a pickle.
"""

from __future__ import annotations

import copyreg
import functools
import inspect
import io
import pickle
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentbench._display import shorten
from agentbench._extras import NO_CONNECTIONS, not_in_browser, require
from agentbench._signatures import flatten_union
from agentbench.exceptions import PlacementError, UnpicklableError
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor

_REMEDY = (
    "Create that object where it is used, for example in the handler. A factory always works: pass a function that "
    "creates the object, and call it on the worker."
)
_DEEPEST = 12
_CLASS_TABLES = ("_ab_handler_table", "_ab_response_table")
"""Attributes of executor classes that refer to their class; a worker builds them again."""


def pickled(value: Any, what: str) -> bytes:
    """Return the pickle of a value that is sent to another process, with classes and functions of notebooks in it.

    Args:
        value: The value.
        what: Names the value in the error, such as `"executor 'fetch'"`.

    Returns:
        Bytes for `unpickled`.

    Raises:
        UnpicklableError: It cannot be pickled; names the part that is the reason.

    Example:
        >>> unpickled(pickled(lambda n: n + 1, "the function"))(1)
        2
    """
    try:
        return _dumps(value)
    except Exception as error:
        culprit, part, cause = _find_culprit(value, error)
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        reason = f"{f'its part {culprit}' if culprit else 'it'} is a {kind} ({type(cause).__name__}: {cause})."
        raise UnpicklableError(what, culprit, reason, _REMEDY) from error


def unpickled(payload: bytes) -> Any:
    """Return the value of `pickled`, which another process of the same user has sent."""
    return pickle.loads(payload)


def unloadable(what: str, error: Exception) -> UnpicklableError:
    """Return the error for a value that was sent, but cannot be unpickled there."""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        top = error.name.partition(".")[0]
        reason = f"it needs the module {error.name!r}, which exists only on this machine."
        remedy = (
            f"Install it on the workers, or send its code along: `import cloudpickle, {top}`, then "
            f"`cloudpickle.register_pickle_by_value({top})`."
        )
        return UnpicklableError(what, error.name, reason, remedy)
    reason = f"it cannot be unpickled there ({type(error).__name__}: {error})."
    return UnpicklableError(what, "", reason, f"Is the same code installed there? If not, update it. {_REMEDY}")


def require_importable(types: Iterable[Any], what: str) -> None:
    """Raise `UnpicklableError` for the first class of a notebook among types, which a worker sends but cannot store.

    Args:
        types: The types of values that are stored on workers, such as `executor.output_types`; unions are flattened.
        what: Names what they belong to, such as `"workflow 'review'"`.

    Raises:
        UnpicklableError: One of them is defined in `__main__`; its name is the `culprit`.
    """
    for cls in (each for declared in types for each in flatten_union(declared)):
        if getattr(cls, "__module__", None) == "__main__":
            name = cls.__qualname__
            reason = f"checkpoints there would contain its class {name}, which only this notebook or program defines."
            remedy = f"Move the class {name} to a module, install that on the workers too, and import it."
            raise UnpicklableError(what, name, reason, remedy)


def require_client(client: Any, name: str = "workers") -> None:
    """Raise unless an argument is a Dask client that a run can use: `TypeError` or `PlacementError`."""
    not_in_browser("Dask clusters", reason=NO_CONNECTIONS, instead="Leave the argument out: the runs share this page.")
    distributed = sys.modules.get("distributed")  # without it, nothing is a client
    if distributed is None or not isinstance(client, distributed.Client):
        msg = (
            f"{name} is {shorten(client)}; expected a client of a Dask cluster: "
            f"`from dask.distributed import Client`, then {name}=Client(address or cluster)."
        )
        raise TypeError(msg)
    if client.status in ("closed", "closing"):
        msg = "The Dask client is closed. Create another one, and close it only after the runs that use it."
        raise PlacementError(msg)
    if client.asynchronous:
        msg = (
            "The Dask client was created with asynchronous=True, so it belongs to one event loop, which need not be "
            "that of the run. Pass a Client(...) without that argument; runs do not block while they wait for it."
        )
        raise PlacementError(msg)


def check_workers(client: Any) -> None:
    """Raise unless a Dask client can be used and its workers run the same Python; asks each worker and waits.

    Raises:
        TypeError: It is not a Dask client.
        PlacementError: It is closed or asynchronous, or a worker runs another Python.

    Example:
        >>> check_workers(client)
    """
    require_client(client)
    here = list(sys.version_info[:2])
    for address, facts in client.get_versions()["workers"].items():
        version = str(((facts or {}).get("host") or {}).get("python", ""))
        if version and [int(part) for part in version.split(".")[:2]] != here:
            msg = (
                f"Worker {address} runs Python {version.partition('.final')[0]}, and this process "
                f"{'.'.join(map(str, sys.version_info[:3]))}: functions cannot be sent between them. Start the workers "
                "with the same Python."
            )
            raise PlacementError(msg)


# ---- pickling


def _dumps(value: Any) -> bytes:
    buffer = io.BytesIO()
    _pickler_class()(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


@functools.cache
def _pickler_class() -> Any:
    """Return the pickler of cloudpickle, with what executors of notebooks need."""
    cloudpickle = require("cloudpickle", extra="dask", purpose="send executors to workers")

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc,name-defined]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, FunctionExecutor) and _is_by_value(obj, cloudpickle):
                # The reference to its function names a module that the worker does not have.
                return copyreg.__newobj__, (type(obj),), vars(obj).copy(), None, None, _set_fields  # type: ignore[attr-defined]
            reduced = super().reducer_override(obj)
            if isinstance(obj, type) and issubclass(obj, Executor) and reduced is not NotImplemented:
                for name in _CLASS_TABLES:
                    reduced[2][0].pop(name, None)  # the attributes of a class that is sent by value
            return reduced

    return Pickler


def _is_by_value(executor: FunctionExecutor, cloudpickle: Any) -> bool:
    function = executor.__getstate__()["_ab_function"]
    if not isinstance(function, tuple):
        return False
    names = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    return any(f"{function[0]}.".startswith(f"{name}.") for name in names)


def _set_fields(executor: Executor, fields: dict[str, Any]) -> None:
    vars(executor).update(fields)


# ---- the part that cannot be pickled


def _find_culprit(value: Any, error: Exception) -> tuple[str, Any, Exception]:
    """Return the innermost part that cannot be pickled: its path, itself, and its error."""
    path, seen = "", {id(value)}
    for _ in range(_DEEPEST):
        for name, part in _parts(value):
            problem = None if id(part) in seen else _problem(part)
            if problem is not None:
                path, value, error = path + name, part, problem
                seen.add(id(part))
                break
        else:
            break
    return path, value, error


def _problem(value: Any) -> Exception | None:
    try:
        _dumps(value)
    except Exception as error:  # noqa: BLE001 - returned
        return error
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a pickle of a value contains, with paths; parts of functions are the variables that they use."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{i}]", part) for i, part in enumerate(value))
    elif isinstance(value, types.FunctionType):
        used = inspect.getclosurevars(value)
        yield from ((f".{name}", part) for name, part in {**used.globals, **used.nonlocals}.items())
        yield "", value.__defaults__
    elif isinstance(value, type):
        yield from ((f".{name}", part) for name, part in vars(value).items() if not name.startswith("__"))
    else:
        names = ("__self__", "__func__", "func", "args", "keywords")  # of methods and functools.partial
        yield from (("", getattr(value, name)) for name in names if hasattr(value, name))
        slots = [name for cls in type(value).__mro__ for name in vars(cls).get("__slots__", ())]
        fields = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        for name, part in {**fields, **getattr(value, "__dict__", {})}.items():
            yield "" if name == "_ab_function" else f".{name}", part
        yield "", type(value)
