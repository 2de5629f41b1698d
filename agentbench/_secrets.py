"""Which names and values are secret, and the masking of everything that people or logs read."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

MASK: Final = "•••"
"""The replacement for a secret."""

# Whole words of a name, so that `token` is secret but `max_tokens` is not.
_WORDS = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "headers",
        "jwt",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "secrets",
        "token",
    }
)
_SHORT_WORDS = frozenset({"dsn", "otp"})
_PARTS = (
    *("api_key", "apikey", "access_key", "private_key", "client_secret", "headers"),
    *("connection_string", "connectionstring", "conn_str", "webhook_url"),
    *("encryption_key", "signing_key", "ssh_key"),
)
# Only at the end of a name: `card_pin` and `pin_code` are secret, `pin_memory` and `pat_id` are not.
_LAST_WORDS = re.compile(r"(?:^|_)(?:cookies|creds|passwords|pat|pin)(?:_(?:code|number|value))?_*$")
_SIGNATURES = frozenset({"sig", "signature"})  # of signed addresses

_HARMLESS = frozenset({str, int, float, bool, bytes, type(None)})
_SEPARATORS = re.compile(r"[\W_\d]+")
_SEPARATORS_AND_HUMPS = re.compile(r"[\W_\d]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_secret_name(name: object) -> bool:
    """Return whether the name of a key, field, option or header denotes a value that must not be displayed.

    Case, `-`, `_` and digits are ignored, and camel case is understood: `X-API-Key`, `accessToken`.
    """
    if isinstance(name, bytes):
        name = name.decode("latin-1")
    return isinstance(name, str) and _is_secret_text(name)


@lru_cache(maxsize=4096)
def _is_secret_text(name: str) -> bool:
    # `passWord` is one word, `clientSecret` is two, so names are read both ways.
    spellings = [separators.sub("_", name).lower() for separators in (_SEPARATORS, _SEPARATORS_AND_HUMPS)]
    # A count of secrets is not secret: `input_token_count`.
    return not spellings[1].endswith("_count") and any(
        any(part in spelling for part in _PARTS)
        or not (_WORDS | _SHORT_WORDS).isdisjoint(spelling.split("_"))
        or _LAST_WORDS.search(spelling) is not None
        for spelling in spellings
    )


def is_secret_parameter(name: str) -> bool:
    """Return whether a URL parameter is secret; such names run words together (`sslpassword`)."""
    lowered = name.lower()
    return is_secret_name(name) or "key" in lowered or lowered in _SIGNATURES or any(word in lowered for word in _WORDS)


def is_secret(value: object) -> bool:
    """Return whether a value is secret because of its class, such as `SecretString` and pydantic's `SecretStr`."""
    return is_secret_class(type(value))


def is_secret_class(cls: object) -> bool:
    """Return whether a class hides its values, so that only `get_secret_value()` reveals them."""
    return isinstance(cls, type) and callable(getattr(cls, "get_secret_value", None))


def find_secret(value: Any, path: Any = (), seen: set[int] | None = None) -> Any:
    """Return the first secret object in a value and its place as `((), key), key`; `None` if there is none."""
    seen = set() if seen is None else seen
    if is_secret(value):
        return path, value
    if type(value) in _HARMLESS or isinstance(value, type) or id(value) in seen:
        return None
    seen.add(id(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        value = dict(enumerate(value))
    elif dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    parts = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    return next(filter(None, (find_secret(part, (path, key), seen) for key, part in list(parts.items()))), None)


def without_secrets(value: Any) -> Any:
    """Return a copy of a plain value without the entries under secret names; secret values become their `repr`."""
    if is_secret(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): without_secrets(item) for key, item in value.items() if not is_secret_name(key)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [without_secrets(item) for item in value]
    return value


# ---- masking -----------------------------------------------------------------------------------------------------

_CONTAINERS: Final = (Mapping, list, tuple, deque, Set)
_DEPTH: Final = 50
_CUT: Final = "…"
_LEAST_SECRET: Final = 5  # characters: shorter text occurs in many words

_ADDRESS: Final = re.compile(r"(?<![\w+.-])[A-Za-z][\w+.-]{0,30}://[^\s'\"<>\\]+")
_USER: Final = re.compile(r"^([^/]+//)[^/?#]*@")
_PARAMETER: Final = re.compile(r"([?&#;])([\w.~%+-]+)=([^&#;]+)")
_JSON_NAME: Final = re.compile(r"([\w-]{2,60})\\*\"\s*:")
# A name and then its value: `name=value`, `name: "a value"`, or the cells of a row in HTML.
_NAME: Final = re.compile(r"(?<![\w-])([\w-]{2,40})(?:\\?['\"]?\s*[:=]\s*|</th>\s*<td[^>]*>\s*)")
_VALUE: Final = re.compile(
    r"""(?P<quote>\\?['"])(?P<quoted>(?:(?!(?P=quote))[^\n])+)
        | \\?['"]?(?P<bare>(?:Bearer\s+|Basic\s+)?[^\s'"<>,;&(){}\[\]\\]+)""",
    re.VERBOSE,
)


def mask_secrets(value: object, *, key: object = None) -> object:
    """Return `value` with every secret in it replaced by `•••`.

    Secret values are: values under a key or field with a secret name, also within JSON text; objects that hide
    themselves behind `get_secret_value`; and the user and secret parameters of a URL. A value without secrets is
    returned itself, not a copy. Containers with secrets are copied, and other objects with secrets become their text.
    Values that contain themselves, or are 50 levels deep, become `…`. `key` is the name under which the value is
    stored, if it has one.
    """
    if value is not None and is_secret_name(key):
        return MASK
    if key == "arguments" and isinstance(value, str):
        return _Masker().arguments(value, _DEPTH)
    if type(value) in _HARMLESS and not (isinstance(value, str) and ('"' in value or "://" in value)):
        return value
    return _Masker().mask(value, _DEPTH)


def masked_repr(value: object) -> str:
    """Return the `repr` of a value with its secrets masked."""
    text = repr(mask_secrets(value))
    # For classes of other libraries, only the text of the `repr` tells which fields it includes.
    is_known = isinstance(value, (str, *_CONTAINERS)) or type(value).__module__.startswith("agentbench.")
    return text if is_known else mask_text(text)


def masked_fields(record: Any) -> str:
    """Return the `repr` of a record with secret fields masked; use as `__repr__ = masked_fields` in its class."""
    names = field_names(record) or ()
    fields = mask_secrets({name: getattr(record, name) for name in names if hasattr(record, name)})
    shown = ", ".join(f"{name}={item!r}" for name, item in fields.items())  # type: ignore[attr-defined]  # a mapping
    return f"{type(record).__name__}({shown})"


def mask_text(text: str) -> str:
    """Return a text, such as that of an error, with URLs and the values after secret names masked."""
    text, parts, last, place = _mask_addresses(text), [], 0, 0
    while name := _NAME.search(text, place):
        place = name.end(1)  # the text after another name may itself be the name of a secret
        if is_secret_name(name[1]) and (value := _VALUE.match(text, name.end())):
            start, place = value.span("quoted" if value["quoted"] else "bare")
            parts += [text[last:start], MASK]
            last = place
    return "".join([*parts, text[last:]])


def secrets_in(values: Iterable[object]) -> list[str]:
    """Return the texts in some values that `mask_secrets` would mask, longest first."""
    masker = _Masker()
    for value in values:
        masker.mask(value, _DEPTH)
    return sorted((text for text in masker.found if len(text) >= _LEAST_SECRET), key=len, reverse=True)


def field_names(value: object) -> Sequence[str] | None:
    """Return the names of the fields in the `repr` of a record; `None` if the value is not a record."""
    if isinstance(value, type):
        return None
    if isinstance(value, tuple):
        return getattr(value, "_fields", None)
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.repr]
    declared = getattr(type(value), "model_fields", None)
    return list(declared) if isinstance(declared, Mapping) else None


def _mask_addresses(text: str) -> str:
    return _ADDRESS.sub(_mask_address, text) if "://" in text else text


def _mask_address(match: re.Match[str]) -> str:
    text = _USER.sub(rf"\1{MASK}@", match[0])
    return _PARAMETER.sub(lambda m: f"{m[1]}{m[2]}={MASK}" if is_secret_parameter(m[2]) else m[0], text)


class Masked(str):
    """Text that replaces a value; its `repr` has no quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class _Masker:
    """One walk over a value. An object that occurs several times is masked once, so shared parts cost nothing."""

    def __init__(self) -> None:
        self._results: dict[int, object] = {}
        self.found: set[str] = set()  # secret texts

    def mask(self, value: object, depth: int) -> object:
        if type(value) in _HARMLESS and type(value) is not str:
            return value
        if is_secret(value):
            self._note(value)
            return Masked(MASK)
        if isinstance(value, str):
            return self._text(value, depth)
        if depth == 0:
            return _CUT
        if id(value) not in self._results:
            self._results[id(value)] = _CUT  # meeting it again on the way down means that it contains itself
            self._results[id(value)] = self._inside(value, depth - 1)
        return self._results[id(value)]

    def _text(self, text: str, depth: int) -> str:
        if text.lstrip()[:1] in ("{", "[") and any(map(is_secret_name, _JSON_NAME.findall(text))):
            text = self._json(text, depth)
        masked = _mask_addresses(text)
        return text if masked == text else masked

    def _json(self, text: str, depth: int) -> str:
        import json  # noqa: PLC0415 - not needed by a first run

        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            return mask_text(text)
        inside = _Masker()  # the parsed value is freed soon, and its id is reused
        masked = inside.mask(read, depth)
        self.found |= inside.found
        return text if masked is read else json.dumps(masked, ensure_ascii=False)

    def _inside(self, value: Any, depth: int) -> object:
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, BaseException):
            text = repr(value)
            return value if (masked := mask_text(text)) == text else Masked(masked)
        if type(value).__module__.partition(".")[0] == "pandas":
            return self._table(value)
        fields = getattr(type(value), "set_fields", None)  # of messages and contents
        names = tuple(fields(value)) if fields is not None else field_names(value)
        if names is None:
            return self._items(value, depth) if isinstance(value, (list, tuple, deque, Set)) else self._object(value)
        before = {name: getattr(value, name, None) for name in names}
        after = self._mapping(before, depth)
        if after is before:
            return value
        if fields is not None:
            return Masked(repr(value))  # its repr is short and masks its secrets
        return Masked(f"{type(value).__name__}({', '.join(f'{name}={item!r}' for name, item in after.items())})")

    def _object(self, value: Any) -> object:
        """Mask the attributes with secret names in the `repr` of an object from another library."""
        attributes = {} if isinstance(value, type) else getattr(value, "__dict__", {})
        text = ""
        if any(map(is_secret_name, attributes)):
            with suppress(Exception):  # foreign code; its error is reported when the value is displayed
                text = repr(value)
        if (masked := mask_text(text)) == text:
            return value
        self._note([item for name, item in attributes.items() if is_secret_name(name)])
        return Masked(masked)

    def _mapping(self, value: Mapping[Any, object], depth: int) -> Mapping[Any, object]:
        changed = dict(value)
        for name, item in value.items():
            if item is not None and is_secret_name(name):
                self._note(item)
                changed[name] = Masked(MASK)
            elif name == "arguments" and isinstance(item, str):
                changed[name] = self.arguments(item, depth)
            else:
                changed[name] = self.mask(item, depth)
        return changed if any(changed[name] is not item for name, item in value.items()) else value

    def _table(self, table: Any) -> object:
        """Mask the columns of a pandas table that have secret names."""
        columns = getattr(table, "columns", ())
        secret = [name for name in columns if is_secret_name(name)]
        if len(columns) == 0 and is_secret_name(getattr(table, "name", None)):
            self._note(table.tolist())
            return table.map(lambda _: MASK)
        if not secret:
            return table
        self._note([table[name].tolist() for name in secret])
        return table.assign(**dict.fromkeys(secret, MASK))

    def _note(self, secret: Any) -> None:
        """Add the texts in a masked value to the secrets found."""
        if is_secret(secret):
            secret = secret.get_secret_value()
        if isinstance(secret, str):
            import html  # noqa: PLC0415 - as above
            import json  # noqa: PLC0415

            self.found |= {secret, html.escape(secret), html.escape(secret, quote=False)}
            self.found |= {json.dumps(secret)[1:-1], repr(secret)[1:-1]}
        elif isinstance(secret, (list, tuple, Mapping)):
            for item in secret.values() if isinstance(secret, Mapping) else secret:
                self._note(item)

    def arguments(self, text: str, depth: int) -> str:
        """Mask the arguments of a call, which models write as JSON text."""
        import json  # noqa: PLC0415 - as above

        try:
            json.loads(text or "{}")
        except (ValueError, RecursionError):
            return _CUT  # a piece of a stream: the secret's name may be in another piece
        return self._text(text, depth)

    def _items(self, value: list[object] | tuple[object, ...] | deque[object] | Set[object], depth: int) -> object:
        pairs = [(item, self.mask(item, depth)) for item in value]
        if all(old is new for old, new in pairs):
            return value
        if isinstance(value, Set):  # masked parts may be unhashable
            return {new if new is old else Masked(repr(new)) for old, new in pairs}
        return next(kind(new for _, new in pairs) for kind in (list, tuple, deque) if isinstance(value, kind))


class _MaskedRecords(logging.Filter):
    """Masks secrets in the lines and tracebacks that the library logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        with suppress(Exception):  # foreign objects; the handlers report those that fail
            text = record.getMessage()
            if (masked := mask_text(text)) != text:
                record.msg, record.args = masked, ()
            if isinstance(record.exc_info, tuple) and not record.exc_text:
                import traceback  # noqa: PLC0415 - as above

                record.exc_text = mask_text("".join(traceback.format_exception(*record.exc_info))).rstrip()
        return True


for _name in ("agentbench", "agentbench.openai"):
    logging.getLogger(_name).addFilter(_MaskedRecords())
