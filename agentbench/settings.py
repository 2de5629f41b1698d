"""Settings from arguments, a `.env` file and the environment, with secrets that stay hidden when printed."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ForwardRef, NamedTuple, TypeVar, cast, get_args

from agentbench._copying import isolate_or_same
from agentbench._extras import require
from agentbench._secrets import is_secret
from agentbench._signatures.annotations import Scope, UnknownNameError
from agentbench._signatures.forms import is_any, is_typed_dict, is_union, origin_of, special_name
from agentbench._user_code import caller_of_library
from agentbench.exceptions import SettingNotFoundError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

logger = logging.getLogger("agentbench")

SettingsT = TypeVar("SettingsT")

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})

_MASKED = "**********"
_QUALIFIERS = frozenset({"Annotated", "ClassVar", "Final", "NotRequired", "ReadOnly", "Required"})


class SecretString(str):
    """A string whose `repr`, also within containers, reveals neither its characters nor its length.

    In every other respect it is ordinary text. `str()`, formatting, slicing, joining and JSON give plain strings with
    the full text, so a secret can be used wherever a string is expected.

    Example:
        >>> key = SecretString("sk-1234")
        >>> key
        SecretString('**********')
        >>> f"Bearer {key}"
        'Bearer sk-1234'
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{_MASKED}')"

    # Without these three, Python returns the secret itself instead of a plain string if nothing changes.

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def partition(self, separator: str, /) -> tuple[str, str, str]:  # noqa: D102 - as of str
        return str(self).partition(separator)

    def rpartition(self, separator: str, /) -> tuple[str, str, str]:  # noqa: D102 - as of str
        return str(self).rpartition(separator)

    def get_secret_value(self) -> str:
        """Return the secret as a plain string."""
        return str(self)

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>"

    def __rich_repr__(self) -> Iterator[str]:
        yield _MASKED

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a field that accepts text and secrets, hides its `repr` and dumps plain text."""
        from pydantic_core import core_schema  # noqa: PLC0415 - loaded only where a model is built

        text = core_schema.no_info_before_validator_function(_reveal, core_schema.str_schema())
        return core_schema.no_info_after_validator_function(
            cls,
            text,
            serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema()),
            metadata={"pydantic_js_updates": {"format": "password", "writeOnly": True}},
        )


def _reveal(value: Any) -> Any:
    """Return the text of a secret object such as pydantic's `SecretStr`; other values as they are."""
    return value.get_secret_value() if is_secret(value) and not isinstance(value, str) else value


def load_settings(
    settings_type: type[SettingsT],
    *,
    env_prefix: str = "",
    env_file_path: str | os.PathLike[str] | None = None,
    env_file_encoding: str | None = None,
    required_fields: Sequence[str | tuple[str, ...]] | None = None,
    require_non_empty: bool = False,
    **overrides: Any,
) -> SettingsT:
    """Fill the fields of a `TypedDict` from arguments, a `.env` file, the environment or defaults, in this order.

    The variable of a field is the prefix followed by the field's name in capitals. Text from the file and the
    environment is converted to `int`, `float`, `bool` or `SecretString` as the field's type requires; text that cannot
    be converted stays text, and a warning is logged that does not show it. Defaults are assigned in the class body:
    `port: int | None = 8080`. Defaults of base classes count too (before Python 3.12 only with `TypedDict` from
    typing_extensions, because `typing` drops the bases).

    Args:
        settings_type: A `TypedDict` class.
        env_prefix: Prefix of each variable, such as `OPENAI_`.
        env_file_path: A file of `NAME=value` lines. It does not change the environment of the process.
        env_file_encoding: Encoding of the file; UTF-8 by default.
        required_fields: Fields that need a value. A tuple means that exactly one of its fields needs one.
        require_non_empty: Whether a required field rejects an empty string.
        **overrides: Values by field. `None` counts as not set; any field accepts functions (they may fetch tokens);
            unknown names are ignored, with a logged warning.

    Returns:
        A dict with all fields; a field without a value is `None`.

    Raises:
        TypeError: `settings_type` is not a `TypedDict`.
        ValueError: An override has the wrong type, or the file has another encoding.
        FileNotFoundError: The file does not exist.
        MissingExtraError: `env_file_path` is passed, and python-dotenv is not installed.
        SettingNotFoundError: A required field has no value, several fields of a group have one, or a required field is
            not a field of the class.

    Example:
        >>> from typing import TypedDict
        >>> class DatabaseSettings(TypedDict, total=False):
        ...     host: str | None
        ...     port: int | None
        >>> load_settings(DatabaseSettings, env_prefix="NO_SUCH_DB_", host="localhost")
        {'host': 'localhost', 'port': None}
    """
    if not is_typed_dict(settings_type):
        problem = (
            f"load_settings() needs a TypedDict class, but got {settings_type!r}. "
            "Write `class MySettings(TypedDict, total=False): ...`."
        )
        raise TypeError(problem)
    # The frame of the caller, to resolve annotations of a class that was defined in a function.
    nearby = caller_of_library().f_locals
    fields = _fields_of(settings_type, env_prefix, nearby)
    texts: list[Mapping[str, str | None]] = [os.environ]
    if env_file_path is not None:
        texts.insert(0, _read_env_file(env_file_path, env_file_encoding))
    for name in overrides.keys() - fields.keys():
        text = "load_settings: %s has no field %r, so the argument is ignored. Its fields: %s."
        logger.warning(text, settings_type.__name__, name, ", ".join(fields))
    settings = {name: _value_of(field, overrides.get(name), texts) for name, field in fields.items()}
    _check_required(settings_type, fields, settings, required_fields, require_non_empty=require_non_empty)
    return cast("SettingsT", settings)


def read_flag(text: str) -> bool | None:
    """Parse a switch: true, 1, yes, on; false, 0, no, off or empty; `None` for other words."""
    word = text.strip().lower()
    return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None


class _Field(NamedTuple):
    """One setting: its types in order (`None` if one of them cannot be checked) and the classes among them."""

    name: str
    variable: str
    arms: tuple[type, ...] | None
    known: tuple[type, ...]
    default: Any

    def hide(self, value: Any) -> Any:
        """Return text as a secret if the field holds one; return other values unchanged."""
        secret = next((arm for arm in self.known if issubclass(arm, SecretString)), None)
        return secret(value) if secret and isinstance(value, str) else value


def _fields_of(settings_type: type, env_prefix: str, nearby: Mapping[str, Any]) -> dict[str, _Field]:
    defaults = _defaults_of(settings_type, {}).__mro__
    fields = {}
    for name, annotation in settings_type.__annotations__.items():
        arms = list(_arms(_resolve(annotation, settings_type, nearby)))
        known = tuple(arm for arm in arms if isinstance(arm, type) and origin_of(arm) is None and not is_any(arm))
        checked = known if len(known) == len(arms) else None
        default = next((vars(cls)[name] for cls in defaults if name in vars(cls)), None)
        fields[name] = _Field(name, f"{env_prefix}{name.upper()}", checked, known, default)
    return fields


def _defaults_of(settings_type: type, made: dict[type, type]) -> type:
    """Return a class with the defaults of a `TypedDict` and its bases; a `TypedDict` does not remember its bases."""
    if settings_type not in made:
        parents = [origin_of(base) or base for base in getattr(settings_type, "__orig_bases__", ())]
        bases = tuple(_defaults_of(parent, made) for parent in parents if is_typed_dict(parent))
        own = {name: vars(settings_type)[name] for name in settings_type.__annotations__ if name in vars(settings_type)}
        made[settings_type] = type(settings_type.__name__, bases, own)
    return made[settings_type]


def _resolve(annotation: Any, settings_type: type, nearby: Mapping[str, Any]) -> Any:
    module = getattr(annotation, "__forward_module__", None) or settings_type.__module__
    names = dict(vars(sys.modules[module])) if module in sys.modules else {}
    try:
        return Scope(names, {"SecretString": SecretString, **nearby, **names}).resolve(annotation)
    except (UnknownNameError, ValueError):
        text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else str(annotation)
        logger.debug("load_settings: cannot resolve the annotation %r of %s.", text, settings_type.__name__)
        # An annotation that cannot be resolved must not turn a secret into plain text.
        return SecretString if "SecretString" in text else Any


def _arms(annotation: Any) -> Iterator[Any]:
    """Yield the alternatives of a union type without `None`."""
    if special_name(origin_of(annotation)) in _QUALIFIERS or hasattr(annotation, "__metadata__"):
        yield from _arms(get_args(annotation)[0])
    elif is_union(annotation):
        for arm in get_args(annotation):
            yield from _arms(arm)
    elif hasattr(annotation, "__supertype__"):
        yield from _arms(annotation.__supertype__)
    elif annotation is not None and annotation is not type(None):
        yield annotation


def _value_of(field: _Field, override: Any, texts: Sequence[Mapping[str, str | None]]) -> Any:
    if override is not None:
        return _check(field, override)
    for source in texts:
        text = source.get(field.variable)
        if text is not None:
            return _convert(field, text)
    return field.hide(isolate_or_same(field.default))


def _check(field: _Field, value: Any) -> Any:
    hidden = field.hide(value if isinstance(value, field.known) else _reveal(value))
    if hidden is not value and isinstance(hidden, SecretString):
        return hidden
    if field.arms is None or callable(value) or isinstance(value, field.arms):
        return value
    if float in field.arms and isinstance(value, int):
        return value
    expected = " or ".join(arm.__name__ for arm in field.arms)
    problem = (
        f"The setting {field.name!r} must be {expected}, but the argument has type {type(value).__name__}. "
        f"Pass a value of that type, or leave the argument out to read {field.variable}."
    )
    raise ValueError(problem)


def _convert(field: _Field, text: str) -> Any:
    """Convert text from a file or the environment to the first type of the field that accepts it."""
    for arm in field.known:
        if arm is str or issubclass(arm, SecretString):
            return field.hide(text)
        if arm is bool and (flag := read_flag(text)) is not None:
            return flag
        if arm in (int, float):
            with suppress(ValueError):
                return arm(text)
    if bool in field.known:
        logger.warning(
            "load_settings: %s is neither true, 1, yes, on nor false, 0, no, off; taken as false.", field.variable
        )
        return False
    numbers = [arm.__name__ for arm in field.known if arm in (int, float)]
    if numbers:
        logger.warning("load_settings: %s cannot be read as %s; it stays text.", field.variable, " or ".join(numbers))
    return text


def _read_env_file(path: str | os.PathLike[str], encoding: str | None) -> Mapping[str, str | None]:
    from pathlib import Path  # noqa: PLC0415 - loads ten modules, and most programs read no such file

    file = Path(path)
    if not file.exists() or file.is_dir():
        problem = f"Settings file {os.fspath(path)!r} not found. Pass an existing path, or leave out env_file_path."
        raise FileNotFoundError(problem)
    dotenv = require("dotenv", extra="settings", purpose="read settings from a file")
    try:
        values: dict[str, str | None] = dotenv.dotenv_values(file, encoding=encoding or "utf-8-sig")
    except UnicodeDecodeError:
        problem = f"The settings file {os.fspath(path)!r} is not {encoding or 'UTF-8'} text. Pass env_file_encoding."
        # Not chained, because that error contains the whole file.
        raise ValueError(problem) from None
    return values


def _check_required(
    settings_type: type,
    fields: Mapping[str, _Field],
    settings: Mapping[str, Any],
    required: Sequence[str | tuple[str, ...]] | None,
    *,
    require_non_empty: bool,
) -> None:
    for entry in (required,) if isinstance(required, str) else required or ():
        names = (entry,) if isinstance(entry, str) else tuple(entry)
        unknown = next((name for name in names if name not in fields), None)
        if unknown is not None:
            problem = f"Unknown required field {unknown!r}. Fields of {settings_type.__name__}: {', '.join(fields)}."
            raise SettingNotFoundError(problem)
        values = {name: settings[name] for name in names if settings[name] is not None}
        present = [name for name, value in values.items() if not require_non_empty or str(value).strip()]
        if len(present) != 1 and isinstance(entry, str):
            state = "no value or an empty one" if require_non_empty else "no value"
            problem = (
                f"The required setting {entry!r} has {state}. "
                f"Pass the argument {entry}=..., or set the environment variable {fields[entry].variable}."
            )
            raise SettingNotFoundError(problem)
        if len(present) != 1:
            group = ", ".join(f"{name!r} ({fields[name].variable})" for name in names)
            found = f"these are set: {', '.join(map(repr, present))}" if present else "none is set"
            problem = f"Set exactly one of the settings {group}; {found}."
            raise SettingNotFoundError(problem)
        if values[present[0]] == "":
            logger.warning("load_settings: the required setting %r is an empty string.", present[0])
