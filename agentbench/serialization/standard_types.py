"""The stored forms of Python's own types that JSON lacks, and the choice of a form for other classes."""

from __future__ import annotations

import re
import sys
from base64 import b64decode, b64encode
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from importlib import import_module
from types import EllipsisType, MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from agentbench._signatures.forms import is_type_form
from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.class_names import find_type, stored_type
from agentbench.serialization.class_types import CLASS_DECODERS, class_type
from agentbench.serialization.registry import StateType, of_kind
from agentbench.serialization.state_types import read_registered

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

K = TypeVar("K")

_FACTORIES: Final[Mapping[str, type]] = {
    cls.__name__: cls for cls in (bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
}
_MOST_OF_ONE_HASH: Final = 1000
_ZONE_KEY: Final = re.compile(r"[\w+-]+(/[\w+-]+)*", re.ASCII)


def standard_type(cls: type, value: Any) -> StateType:
    """Return how instances of exactly this value's class are stored, or raise UnstorableValueError."""
    found = _TYPES.get(cls) or class_type(cls) or _path_type(cls) or _type_by_name(cls)
    if found is not None:
        return found
    if is_type_form(value):
        return StateType(cls, "type", stored_type, find_type)
    raise UnstorableValueError(cls, _reason(cls))


def _reason(cls: type) -> str:
    base = next((base for base in (str, int, float, list, dict, tuple, set, bytes) if issubclass(cls, base)), None)
    if base is not None:
        return f"It would come back as a plain {base.__name__}: convert it, or pass its class to register_state_type()."
    if issubclass(cls, BaseException):
        return "Store WorkflowErrorDetails.from_exception(error) instead of the error."
    if cls.__module__ == "builtins" or cls.__module__.startswith("_"):  # functions, generators, locks, files, tasks
        return "Hold such objects on the executor instead, and create them again in on_checkpoint_restore."
    return "Make it a dataclass or a pydantic model, or pass it to register_state_type() with encode and decode."


def _read_bytes(text: str) -> bytes:
    return b64decode(text, validate=True)


def _with_zone(value: Any) -> Any:
    if not value.fold and (value.tzinfo is None or (value.tzinfo is UTC and isinstance(value, datetime))):
        return value.isoformat()
    return [value.replace(tzinfo=None).isoformat(), value.tzinfo, value.fold]


def _reader_with_zone(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def read(found: Any) -> Any:
        if isinstance(found, str):
            return parse(found)
        text, zone, fold = found
        return parse(text).replace(tzinfo=zone, fold=fold)

    return read


def _write_zone(value: ZoneInfo) -> str:
    if value.key is None:
        raise UnstorableValueError(type(value), "It was read from a file and has no key. Use ZoneInfo(key).")
    return value.key


def zone_name(key: str) -> str:
    """Return the name of a time zone, or raise ValueError if it leads out of the time zone folder."""
    if not _ZONE_KEY.fullmatch(key):
        message = f"{key!r} is not the name of a time zone"
        raise ValueError(message)
    return key


def _pairs(value: Mapping[Any, Any]) -> list[Any]:
    return list(map(list, value.items()))


def _write_defaultdict(value: defaultdict[Any, Any]) -> list[Any]:
    factory: Any = value.default_factory
    if factory is None:
        return [None, _pairs(value)]
    name = getattr(factory, "__name__", None)
    if name is None or _FACTORIES.get(name) is not factory:
        reason = f"Its default_factory is {factory!r}; only built-in types such as list and int can be stored."
        raise UnstorableValueError(defaultdict, reason)
    return [name, _pairs(value)]


def _read_defaultdict(found: Any) -> defaultdict[Any, Any]:
    name, pairs = found
    return defaultdict(None if name is None else _FACTORIES[name], _read_dict(pairs))


def _read_deque(found: Any) -> deque[Any]:
    items, maxlen = found
    return deque(of_kind(list, items), maxlen)


def _read_counter(pairs: Any) -> Counter[Any]:
    counter: Counter[Any] = Counter()
    dict.update(counter, _read_dict(pairs))
    return counter


def _read_pattern(found: Any) -> re.Pattern[Any]:
    pattern, flags = found
    if not isinstance(pattern, (str, bytes)):
        message = "a regular expression is text or bytes"
        raise TypeError(message)
    return re.compile(pattern, of_kind(int, flags) & ~re.DEBUG)  # DEBUG would print


def _star(make: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda found: make(*of_kind(list, found))


def _of(cls: type[K], make: Callable[[K], Any]) -> Callable[[Any], Any]:
    return lambda found: make(of_kind(cls, found))


def require_spread(keys: list[Any]) -> list[Any]:
    """Return keys for a hash table, or raise ValueError if too many have the same hash, which would be very slow."""
    if len(keys) > _MOST_OF_ONE_HASH and max(Counter(map(hash, keys)).values()) > _MOST_OF_ONE_HASH:
        message = f"more than {_MOST_OF_ONE_HASH} keys have the same hash"
        raise ValueError(message)
    return keys


def _read_dict(pairs: Any) -> dict[Any, Any]:
    require_spread([key for key, _ in of_kind(list, pairs)])
    return dict(pairs)


_STANDARD: Final[tuple[StateType, ...]] = (
    StateType(tuple, "tuple", list, _of(list, tuple)),
    StateType(OrderedDict, "OrderedDict", _pairs, lambda pairs: OrderedDict(_read_dict(pairs))),
    StateType(defaultdict, "defaultdict", _write_defaultdict, _read_defaultdict),
    StateType(deque, "deque", lambda value: [list(value), value.maxlen], _read_deque),
    StateType(Counter, "Counter", _pairs, _read_counter),
    StateType(bytes, "bytes", lambda value: b64encode(value).decode(), _read_bytes),
    StateType(
        bytearray, "bytearray", lambda value: b64encode(value).decode(), lambda text: bytearray(_read_bytes(text))
    ),
    StateType(complex, "complex", lambda value: [value.real, value.imag], _star(complex)),
    StateType(range, "range", lambda value: [value.start, value.stop, value.step], _star(range)),
    StateType(slice, "slice", lambda value: [value.start, value.stop, value.step], _star(slice)),
    StateType(date, "date", date.isoformat, _of(str, date.fromisoformat)),
    StateType(time, "time", _with_zone, _reader_with_zone(time.fromisoformat)),
    StateType(datetime, "datetime", _with_zone, _reader_with_zone(datetime.fromisoformat)),
    StateType(timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds], _star(timedelta)),
    StateType(timezone, "timezone", lambda value: list(value.__getinitargs__()), _star(timezone)),
    StateType(EllipsisType, "ellipsis", lambda _: "", lambda _: ...),
    StateType(
        memoryview, "memoryview", lambda value: b64encode(value).decode(), lambda text: memoryview(_read_bytes(text))
    ),
    StateType(MappingProxyType, "mappingproxy", dict, _of(dict, MappingProxyType)),
    StateType(SimpleNamespace, "namespace", vars, lambda found: SimpleNamespace(**of_kind(dict, found))),
    StateType(
        ChainMap, "ChainMap", lambda value: value.maps, lambda maps: ChainMap(*[of_kind(dict, each) for each in maps])
    ),
    StateType(UserDict, "UserDict", lambda value: value.data, _of(dict, UserDict)),
    StateType(UserList, "UserList", lambda value: value.data, _of(list, UserList)),
    StateType(UserString, "UserString", lambda value: value.data, _of(str, UserString)),
    StateType(re.Pattern, "pattern", lambda value: [value.pattern, value.flags], _read_pattern),
)
_TYPES: Final[Mapping[type, StateType]] = {kind.cls: kind for kind in _STANDARD}

# Most programs never load the modules of the following classes.

_PATHS: Final[Mapping[str, str]] = {
    "path": "Path",
    "posix_path": "PurePosixPath",
    "windows_path": "PureWindowsPath",
}
"""Classes of pathlib, by tag."""


def _path_type(cls: type) -> StateType | None:
    pathlib = sys.modules.get("pathlib")
    if pathlib is not None:
        for tag, name in _PATHS.items():
            if cls is (type(pathlib.Path()) if tag == "path" else getattr(pathlib, name)):
                return StateType(cls, tag, lambda value: value.as_posix(), _reader_of_path(name))
    return None


def _reader_of_path(name: str) -> Callable[[Any], Any]:
    return lambda found: getattr(import_module("pathlib"), name)(of_kind(str, found))


class _StandardForm(NamedTuple):
    """The stored form of a class of another module: `decode` takes the class and the result of `encode`."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any, Any], Any]


_TEXT: Final = _StandardForm(str, lambda cls, text: cls(of_kind(str, text)))
_FORMS: Final[Mapping[str, _StandardForm]] = {
    "array.array": _StandardForm(
        lambda value: [value.typecode, value.tobytes()],
        lambda cls, found: cls(of_kind(str, found[0]), of_kind(bytes, found[1])),
    ),
    "decimal.Decimal": _TEXT,
    "fractions.Fraction": _StandardForm(
        lambda value: list(value.as_integer_ratio()),
        lambda cls, found: cls(*[of_kind(int, each) for each in of_kind(list, found)]),
    ),
    **{
        f"ipaddress.IP{version}{kind}": _TEXT
        for version in ("v4", "v6")
        for kind in ("Address", "Interface", "Network")
    },
    **{f"pydantic.networks.{kind}Url": _TEXT for kind in ("Any", "AnyHttp", "Http", "File", "Ftp", "Websocket")},
    "plistlib.UID": _StandardForm(lambda value: value.data, lambda cls, number: cls(of_kind(int, number))),
    "statistics.NormalDist": _StandardForm(
        lambda value: [value.mean, value.stdev], lambda cls, found: cls(*[of_kind(float, each) for each in found])
    ),
    "time.struct_time": _StandardForm(list, lambda cls, found: cls(of_kind(list, found))),
    "uuid.UUID": _TEXT,
    "zoneinfo.ZoneInfo": _StandardForm(_write_zone, lambda cls, key: cls(zone_name(key))),
}


def _type_by_name(cls: type) -> StateType | None:
    name = f"{cls.__module__}.{cls.__qualname__}"
    if name not in _FORMS or getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is not cls:
        return None
    return StateType(cls, "standard", _FORMS[name].encode, _read_by_name, name)


def _read_by_name(found: Any) -> Any:
    name, content = found
    module, _, own_name = name.rpartition(".")
    return _FORMS[name].decode(getattr(import_module(module), own_name), content)


STANDARD_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **{kind.tag: kind.decode for kind in _STANDARD},
    **{tag: _reader_of_path(name) for tag, name in _PATHS.items()},
    **CLASS_DECODERS,
    "dict": _read_dict,
    "float": {text: float(text) for text in ("nan", "inf", "-inf")}.__getitem__,
    "frozenset": _of(list, lambda items: frozenset(require_spread(items))),
    "int": _of(str, lambda text: int(text, 16)),
    "registered": read_registered,
    "standard": _read_by_name,
    "set": _of(list, lambda items: set(require_spread(items))),
    "type": find_type,
}
"""Decoders for the tags of this module, and for those that the writer itself writes."""
