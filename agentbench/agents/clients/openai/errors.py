"""Errors of the SDK as errors of ours.

They are told apart by the names of their classes, so that neither the SDK nor its HTTP library has to be loaded, and
versions of them that differ in where these classes live are understood alike.
"""

from __future__ import annotations

import email.utils
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentbench._clock import runtime_defaults
from agentbench.agents.clients.openai.wire import field, number, text
from agentbench.exceptions import (
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
    OpenAIContentFilterException,
)

_NS_PER_S = 1_000_000_000
_LONGEST_DETAIL = 500
_HIDDEN = "[secret]"

_AUTH, _REQUEST, _RESPONSE = (
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
)

# Class of the SDK, or of its HTTP library -> class of ours. `ChatClientException`: the call may succeed later.
_OF_CLASS: dict[str, type[ChatClientException]] = {
    "AuthenticationError": _AUTH,
    "PermissionDeniedError": _AUTH,
    "ContentFilterFinishReasonError": OpenAIContentFilterException,
    "BadRequestError": _REQUEST,
    "NotFoundError": _REQUEST,
    "ConflictError": _REQUEST,
    "UnprocessableEntityError": _REQUEST,
    "UnicodeEncodeError": _REQUEST,
    "APIResponseValidationError": _RESPONSE,
    "LengthFinishReasonError": _RESPONSE,
    "JSONDecodeError": _RESPONSE,
    "UnicodeDecodeError": _RESPONSE,
    "DecodingError": _RESPONSE,
    "RateLimitError": ChatClientException,
    "InternalServerError": ChatClientException,
    "APITimeoutError": ChatClientException,
    "APIConnectionError": ChatClientException,
    "TransportError": ChatClientException,
}

# Code or type of an error that arrived within an answer that had begun well.
_OF_CODE: dict[str, type[ChatClientException]] = {
    "authentication_error": _AUTH,
    "invalid_api_key": _AUTH,
    "permission_error": _AUTH,
    "content_filter": OpenAIContentFilterException,
    "content_policy_violation": OpenAIContentFilterException,
    "invalid_request_error": _REQUEST,
    "invalid_prompt": _REQUEST,
    "not_found_error": _REQUEST,
    "internal_error": ChatClientException,
    "internal_server_error": ChatClientException,
    "overloaded_error": ChatClientException,
    "rate_limit_error": ChatClientException,
    "rate_limit_exceeded": ChatClientException,
    "server_error": ChatClientException,
    "service_unavailable": ChatClientException,
    "timeout": ChatClientException,
}

_WHAT = {
    _AUTH: ("refused the credentials", "Check api_key=... or OPENAI_API_KEY, and what the key may do."),
    _REQUEST: ("cannot do what it was asked", "Check model, messages and options."),
    _RESPONSE: ("answered with something that is no answer", "Check that base_url=... is the address of its API."),
    OpenAIContentFilterException: ("stopped this with its content filter", "Change what is asked."),
    ChatClientException: ("failed", "Try again later."),
}
_BUSY = ("takes no more requests for now", "Wait a while, then try again.")
_SLOW = ("did not answer in time", "Try again later, or wait longer: timeout=...")
_AWAY = ("could not be reached, or the connection broke", "Try again later.")

_REQUEST_STATUS = frozenset({400, 404, 409, 413, 415, 422})
_RETRYABLE_STATUS = frozenset({408, 425, 429})

# What is wrong with an answer that can be decoded.
NO_ANSWER = "it holds nothing that a model has said"
NO_UPDATES = "its stream ended before it had begun"
NO_VECTORS = "it holds {found} vectors for {asked} texts"


def sdk_errors() -> tuple[type[Exception], ...]:
    """Every error that a call of the SDK may end with because of the service or the way to it."""
    # Older versions of the SDK let errors of its HTTP library through where a stream breaks.
    libraries = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    transport = tuple(library.HTTPError for library in libraries if library is not None)
    sdk = sys.modules.get("openai")
    own = (sdk.OpenAIError,) if sdk is not None else ()
    return *own, *transport, json.JSONDecodeError, UnicodeError


def translated(error: Exception, *, url: str, secrets: Iterable[str] = ()) -> ChatClientException:
    """The error of ours for an error of the SDK; to be raised from it.

    Args:
        error: What the SDK raised. A secret that the service has repeated in it is blotted out.
        url: The address of the service, as it may be shown.
        secrets: What must not be shown.
    """
    secrets = tuple(secrets)
    if secrets:
        _blot_out(error, secrets)
    body = field(error, "body")
    found = _described(
        _class_for(error, body),
        detail=text(body, "message") or (body if isinstance(body, str) and body else str(error)),
        status=number(error, "status_code"),
        body=body,
        url=url,
        inner=error,
    )
    found.retry_after = _retry_after(field(field(error, "response"), "headers"))
    return found


def reported(body: Any, *, url: str, secrets: Iterable[str] = ()) -> ChatClientException:
    """The error of ours for a failure that a service reports as part of an answer.

    Args:
        body: What it reports: `code` and `message`, or only a text.
        url: The address of the service, as it may be shown.
        secrets: What must not be shown.
    """
    said = text(body, "message") or (body if isinstance(body, str) else None) or "no reason was given"
    detail = _blotted(said, tuple(secrets))
    return _described(_of_code(body), detail=detail, status=None, body=body, url=url, inner=None)


def unusable(problem: str, *, url: str) -> ChatClientInvalidResponseException:
    """The error for an answer that can be decoded, and yet is none.

    Args:
        problem: What is wrong with it, as the end of a sentence: "it holds no choices".
        url: The address of the service, as it may be shown.
    """
    what, mend = _WHAT[_RESPONSE]
    return ChatClientInvalidResponseException(f"The service at {url} {what}: {problem}. {mend}")


def _class_for(error: Exception, body: Any) -> type[ChatClientException] | None:
    if text(body, "code") in ("content_filter", "content_policy_violation"):
        return OpenAIContentFilterException
    names = [cls.__name__ for cls in type(error).__mro__]
    if "APIConnectionError" in names and type(error.__cause__).__name__ == "DecodingError":
        return _RESPONSE
    found = next((_OF_CLASS[name] for name in names if name in _OF_CLASS), None)
    return _of_code(body) if found is None and number(error, "status_code") is None else found


def _of_code(body: Any) -> type[ChatClientException] | None:
    codes = (text(body, "code"), text(body, "type"))
    named = next((_OF_CODE[code] for code in codes if code in _OF_CODE), None)
    return named or _of_status(number(body, "code") or 0)


def _of_status(status: int) -> type[ChatClientException] | None:
    """The class for a status of HTTP, which some services report within an answer."""
    if status in (401, 403):
        return _AUTH
    if status in _REQUEST_STATUS:
        return _REQUEST
    return ChatClientException if status in _RETRYABLE_STATUS or status >= 500 else None


def _described(
    cls: type[ChatClientException] | None,
    *,
    detail: str,
    status: int | None,
    body: Any,
    url: str,
    inner: Exception | None,
) -> ChatClientException:
    what, mend = _described_as(cls, status or number(body, "code"), inner)
    shown = " ".join(detail.split())[:_LONGEST_DETAIL].rstrip(".")
    message = f"The service at {url} {what}{f' (HTTP {status})' if status else ''}: {shown}. {mend}"
    made: ChatClientException
    if cls is OpenAIContentFilterException:
        made = _content_filter_error(message, inner, body)
    else:
        made = (cls or ChatClientException)(message, inner)
    made.status_code = status
    made.is_retryable = cls is ChatClientException or status == 408
    return made


def _described_as(
    cls: type[ChatClientException] | None, status: int | None, inner: Exception | None
) -> tuple[str, str]:
    """What the service did, and what to do about it."""
    if cls is None:
        return "reported an error", "Check the request."
    if cls is ChatClientException and status == 429:
        return _BUSY
    if cls is ChatClientException and status is None and inner is not None:
        return _SLOW if "Timeout" in type(inner).__name__ else _AWAY
    return _WHAT[cls]


def _content_filter_error(message: str, inner: Exception | None, body: Any) -> OpenAIContentFilterException:
    details = field(body, "innererror")
    result = field(details, "content_filter_result")
    return OpenAIContentFilterException(
        message,
        inner,
        param=text(body, "param"),
        content_filter_code=text(details, "code") or text(body, "code"),
        content_filter_result=result if isinstance(result, Mapping) else None,
    )


def _retry_after(headers: Any) -> float | None:
    """How long the service asks to wait, in seconds; it may say so in three ways."""
    if not isinstance(headers, Mapping):
        return None
    milliseconds = _as_number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(milliseconds / 1000, 0.0)
    wait = headers.get("retry-after")
    seconds = _as_number(wait)
    if seconds is None and isinstance(wait, str):
        seconds = _seconds_until(wait)
    return None if seconds is None else max(seconds, 0.0)


def _as_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _seconds_until(date: str) -> float | None:
    try:
        at = email.utils.parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    return at.timestamp() - runtime_defaults().clock.time_ns() / _NS_PER_S


# -------------------------------------------------------------------------------------------------------------- secrets


def _blot_out(error: BaseException, secrets: tuple[str, ...]) -> None:
    """Remove secrets from an error and those behind it: some services repeat the key that they refuse."""
    for each in _chain(error):
        each.args = tuple(_blotted(arg, secrets) for arg in each.args)
        for name, value in list(vars(each).items()):
            if isinstance(value, (str, dict, list)):
                setattr(each, name, _blotted(value, secrets))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__]


def _blotted(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, dict):
        return {key: _blotted(item, secrets) for key, item in value.items()}
    return [_blotted(item, secrets) for item in value] if isinstance(value, list) else value
