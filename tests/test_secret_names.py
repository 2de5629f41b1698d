"""One list of secret names: spans, cassettes, views and storages mask by it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from agentbench import Content, SecretString
from agentbench._secrets import (
    is_secret,
    is_secret_class,
    is_secret_name,
    is_secret_parameter,
    mask_secrets,
    masked_repr,
    without_secrets,
)

SECRET = (
    *("headers", "Headers", "extra_headers", "authorization", "Authorization", "Proxy-Authorization", b"password"),
    *("api_key", "api-key", "API-KEY", "apiKey", "APIKey", "apikey", "X-Api-Key", "access_key", "private_key"),
    *("token", "access_token", "accessToken", "OAuthToken", "authToken", "client_secret", "clientSecret", "secrets"),
    *("Password", "passWord", "PASSWORD1", "db-password", "passwd", "pwd", "passphrase", "passcode"),
    *("credential", "credentials", "cookie", "set-cookie", "bearer", "jwt", "auth"),
    *("passwords", "session_cookies", "db_creds", "conn_str", "SSH_KEY", "signing_key", "encryptionKey"),
)
PLAIN = (
    *("max_tokens", "tokensIn", "input_token_count", "header", "author", "tokenizer", "key", "secretary"),
    *("passwords_changed", "", 3),
)


def test_names_are_secret_by_their_words() -> None:
    assert [name for name in SECRET if not is_secret_name(name)] == []
    assert [name for name in PLAIN if is_secret_name(name)] == []


def test_parameters_of_addresses_run_words_together() -> None:
    assert all(map(is_secret_parameter, ["sslpassword", "sslkey", "accesstoken", "password"]))
    assert not any(map(is_secret_parameter, ["application_name", "connect_timeout", "sslmode"]))


@pytest.mark.parametrize("value", [SecretString("x"), SecretStr("x")])
def test_values_are_secret_by_their_class(value: object) -> None:
    assert is_secret(value)
    assert is_secret_class(type(value))
    assert not is_secret_class(value)
    assert "x" not in str(without_secrets([{"a": value}]))


def test_objects_that_show_their_secrets_are_masked_where_they_are_inside_of_others() -> None:
    shown = masked_repr({"settings": [SimpleNamespace(api_key="planted", size=3)]})
    assert "planted" not in shown
    assert "size=3" in shown
    harmless = [SimpleNamespace(size=3)]
    assert mask_secrets(harmless) is harmless


def test_secret_entries_go_however_deep_they_are() -> None:
    value = {"a": [{"token": 1, "b": ({"headers": {}, "c": 2},)}]}
    assert without_secrets(value) == {"a": [{"b": [{"c": 2}]}]}
    assert without_secrets({"a": (1, {"b": None}), "max_tokens": 5}) == {"a": [1, {"b": None}], "max_tokens": 5}


def test_spans_cassettes_and_views_hide_the_same_names() -> None:
    from agentbench._text.redact import preview
    from agentbench.agents.clients.cassette.request import plain_options, plain_tools
    from agentbench.agents.telemetry.attributes import tool_definitions

    values = {name: "hunter2" for name in SECRET if isinstance(name, str)}
    everything = {**values, "max_tokens": 3}
    assert tool_definitions([everything]) == '[{"max_tokens": 3}]'
    assert plain_tools([everything]) == [{"max_tokens": 3}]
    assert plain_options(everything, model=None) == {"max_tokens": 3}
    assert mask_secrets(everything) == {**dict.fromkeys(values, "•••"), "max_tokens": 3}
    assert "hunter2" not in preview(everything)


def test_pieces_of_streamed_arguments_are_cut_because_the_name_of_a_secret_is_in_another_piece() -> None:
    whole = '{"city": "Oslo", "api_key": "hunter2"}'
    for end in range(1, len(whole)):
        pieces = [Content.from_function_call("c", "fog", arguments=part) for part in (whole[:end], whole[end:])]
        assert "ter2" not in repr(pieces)
    assert "Oslo" in repr(Content.from_function_call("c", "fog", arguments=whole))
