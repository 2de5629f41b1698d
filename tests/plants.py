"""Values in which a key is planted in all the ways in which users hold one, and the search for it."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import BaseModel, SecretStr

from agentbench import AgentResponse, AgentResponseUpdate, Content, Message, SecretString

KEY = "sk-planted-4f1c9e27b8"


@dataclass
class Login:
    user: str
    password: str = KEY


@dataclass(frozen=True)
class Frozen:
    user: str
    pin: str = KEY


@dataclass
class Holder:
    """Holds a secret under a name that does not say so."""

    about: str
    value: Any = field(default_factory=lambda: SecretString(KEY))


class Account(NamedTuple):
    user: str
    otp: str = KEY


class Settings(BaseModel):
    user: str = "ann"
    api_key: str = KEY
    note: SecretString = SecretString(KEY)


class Anything(BaseModel):
    value: Any


def _json(**values: Any) -> str:
    return json.dumps({"user": "ann", **values})


#: Plain values, which checkpoints can store.
STORABLE: Mapping[str, Callable[[], Any]] = {
    "a mapping": lambda: {"user": "ann", "password": KEY},
    "a mapping of another class": lambda: OrderedDict(user="ann", accessToken=KEY),
    "a list of mappings": lambda: [{"a": ({"user": "ann", "X-Api-Key": KEY},)}],
    "names of one word": lambda: {"dsn": KEY, "pat": KEY, "pin": KEY, "otp": KEY, "user": "ann"},
    "names of two words": lambda: {"connection_string": KEY, "webhookUrl": KEY, "user": "ann"},
    "headers": lambda: {"user": "ann", "headers": {"X-Tenant": KEY}},
    "a deque": lambda: deque([{"user": "ann", "token": KEY}]),
    "a dataclass": lambda: Login("ann"),
    "a set of dataclasses": lambda: {Frozen("ann")},
    "a named tuple": lambda: Account("ann"),
    "a text of JSON": lambda: _json(client_secret=KEY),
    "JSON within JSON": lambda: {"body": _json(inner=_json(token=KEY))},
    "an address with a password": lambda: f"https://ann:{KEY}@example.org/v1",
    "an address with a key": lambda: {"base_url": f"https://example.org/v1?user=ann&api_key={KEY}&page=2"},
    "a call": lambda: Content.from_function_call("c1", "send", arguments=_json(api_key=KEY)),
    "a call with a mapping": lambda: Content.from_function_call("c1", "send", arguments={"user": "ann", "pin": KEY}),
    "a result": lambda: Content.from_function_result("c1", result={"user": "ann", "token": KEY}),
    "a message": lambda: Message("tool", [Content.from_function_result("c1", result=_json(token=KEY))]),
    "properties of a message": lambda: Message("user", ["ann"], additional_properties={"api_key": KEY}),
    "a response": lambda: AgentResponse(
        messages=[Message("assistant", [Content.from_function_call("c1", "send", arguments=_json(api_key=KEY))])]
    ),
    "a piece of a stream": lambda: AgentResponseUpdate(
        contents=[Content.from_function_call("c1", "ann", arguments=f'{{"api_key": "{KEY}')]
    ),
}
#: Values with objects that no checkpoint stores.
UNSTORABLE: Mapping[str, Callable[[], Any]] = {
    "a SecretString": lambda: {"user": "ann", "value": SecretString(KEY)},
    "a SecretStr": lambda: ["ann", SecretStr(KEY)],
    "a SecretString in a dataclass": lambda: Holder("ann"),
    "a model": Settings,
    "a SecretString in any field of a model": lambda: Anything(value=["ann", SecretString(KEY)]),
    "a read-only mapping": lambda: MappingProxyType({"user": "ann", "password": KEY}),
    "an error": lambda: PermissionError(f"ann was refused: token={KEY}"),
}
PLANTS: Mapping[str, Callable[[], Any]] = {**STORABLE, **UNSTORABLE}


def assert_nowhere(shown: Iterable[object], *, key: str = KEY) -> None:
    """Fail if the key, or a form in which it may travel, is in one of the texts."""
    forms = {key, key.upper(), key[::-1], quote(key, safe=""), base64.b64encode(key.encode()).decode().rstrip("=")}
    found = [
        (form, str(text)[max(0, str(text).find(form) - 300) :][:600])
        for text in shown
        for form in forms
        if form in str(text)
    ]
    assert not found, found
