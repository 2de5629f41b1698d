"""Errors of the SDK as errors of ours, told apart by the names of their classes."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench._clock import TickingClock, set_runtime_defaults
from agentbench.agents.clients.openai.errors import ReportedFailureError, secret_pattern, translate_error
from agentbench.exceptions import (
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
    OpenAIContentFilterException,
)

URL = "http://host.example/v1"


class OpenAIError(Exception):
    """Stands for the root of the SDK's errors; the classes below for those with the same names."""


def sdk_error(
    name: str, *, status: int | None = None, body: Any = None, headers: dict[str, str] | None = None, text: str = "boom"
) -> OpenAIError:
    parents: dict[str, str] = {"APITimeoutError": "APIConnectionError", "OAuthError": "AuthenticationError"}
    base: type = type(parents[name], (OpenAIError,), {}) if name in parents else OpenAIError
    error: Any = type(name, (base,), {})(text)
    error.body = body
    if status is not None:
        error.status_code = status
        error.response = type("Response", (), {"headers": headers or {}})()
    assert isinstance(error, OpenAIError)
    return error


AUTH, REQUEST, RESPONSE = (
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
)


@pytest.mark.parametrize(
    ("name", "status", "expected", "retryable"),
    [
        ("AuthenticationError", 401, AUTH, False),
        ("BadRequestError", 400, REQUEST, False),
        ("APIResponseValidationError", 200, RESPONSE, False),
        ("LengthFinishReasonError", None, RESPONSE, False),
        ("ContentFilterFinishReasonError", None, OpenAIContentFilterException, False),
        ("RateLimitError", 429, ChatClientException, True),
        ("InternalServerError", 500, ChatClientException, True),
        ("APITimeoutError", None, ChatClientException, True),
        ("APIConnectionError", None, ChatClientException, True),
        ("APIStatusError", 408, ChatClientException, True),
        ("APIStatusError", 418, ChatClientException, False),
        ("SomethingNewError", None, ChatClientException, False),
    ],
)
def test_each_error_has_its_class(
    name: str, status: int | None, expected: type[ChatClientException], retryable: bool
) -> None:
    inner = sdk_error(name, status=status)
    found = translate_error(inner, url=URL)
    assert type(found) is expected
    assert (found.status_code, found.is_retryable) == (status, retryable)
    assert found.inner_exception is inner
    assert found.args == (str(found), inner)
    assert "http://host.example/v1" in str(found)
    assert "boom" in str(found)


def test_data_that_cannot_be_unpacked_are_an_invalid_response() -> None:
    error = sdk_error("APIConnectionError")
    error.__cause__ = type("DecodingError", (Exception,), {})()
    assert type(translate_error(error, url=URL)) is RESPONSE


def test_the_message_is_the_services_own_words() -> None:
    error = sdk_error("NotFoundError", status=404, body={"message": "The model `x` does not exist."}, text="Error code")
    assert str(translate_error(error, url=URL)) == (
        "The service at http://host.example/v1 refused the request (HTTP 404): The model `x` does not exist. "
        "Check model, messages and options."
    )


def test_a_page_instead_of_a_message_is_cut() -> None:
    error = sdk_error("InternalServerError", status=502, body="<html>" + "x\n" * 9000)
    assert len(str(translate_error(error, url=URL))) < 700
    assert "\n" not in str(translate_error(error, url=URL))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 31 Dec 2023 23:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_how_long_to_wait_is_in_seconds(headers: dict[str, str], expected: float | None) -> None:
    set_runtime_defaults(clock=TickingClock("2024-01-01T00:00:00Z"))
    assert translate_error(sdk_error("RateLimitError", status=429, headers=headers), url=URL).retry_after == expected


def test_failures_within_an_answer_have_their_class_by_their_code() -> None:
    cases: list[Any] = [
        ("server_error", ChatClientException, True),
        ("invalid_prompt", REQUEST, False),
        ("invalid_api_key", AUTH, False),
        ("content_filter", OpenAIContentFilterException, False),
        ("never_heard_of", ChatClientException, False),
    ]
    for code, expected, retryable in cases:
        body = {"code": code, "message": "It broke"}
        for error in (ReportedFailureError(body), sdk_error("APIError", body=body)):
            found = translate_error(error, url=URL)
            assert type(found) is expected
            assert found.is_retryable is retryable
            assert "It broke" in str(found)


def test_the_type_of_a_failure_is_used_where_there_is_no_code() -> None:
    body = {"code": None, "type": "invalid_request_error", "message": "m"}
    assert type(translate_error(sdk_error("APIError", body=body), url=URL)) is REQUEST


def test_a_secret_that_the_service_repeats_is_blotted_out_everywhere() -> None:
    secret = "sk-very-secret-1234"
    body = {"message": f"Incorrect API key: {secret}", "details": [{"key": secret}]}
    error = sdk_error("AuthenticationError", status=401, body=body, text=f"401 {secret}")
    error.__cause__ = ValueError(f"header {secret}")
    error.__context__ = RuntimeError({"key": [secret]})
    found = translate_error(error, url=URL, secrets=secret_pattern([secret], []))
    shown = [str(found), repr(found), repr(error), repr(error.__cause__), repr(error.__context__), repr(vars(error))]
    assert [text for text in shown if secret in text] == []
    assert "Incorrect API key: [secret]" in str(found)
    assert secret not in str(translate_error(ReportedFailureError(body), url=URL, secrets=secret_pattern([secret], [])))


def test_errors_that_are_behind_each_other_in_a_circle_are_read_once() -> None:
    error, other = sdk_error("APIConnectionError"), ValueError("sk-1")
    error.__context__ = other
    other.__context__ = error
    translate_error(error, url=URL, secrets=secret_pattern(["sk-1"], []))
    assert other.args == ("[secret]",)
