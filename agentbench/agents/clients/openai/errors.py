"""Errors of the SDK as errors of ours.

The names of their classes decide, so that neither the SDK nor its HTTP library has to be loaded, and it does not
matter in which module a version of them has these classes.
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
_CLASS_BY_NAME: dict[str, type[ChatClientException]] = {
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
_CLASS_BY_CODE: dict[str, type[ChatClientException]] = {
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

_WORDS = {
    _AUTH: ("refused the credentials", "Check api_key=... or OPENAI_API_KEY, and what the key may do."),
    _REQUEST: ("refused the request", "Check model, messages and options."),
    _RESPONSE: ("answered with something that is no answer", "Check that base_url=... is the address of its API."),
    OpenAIContentFilterException: ("stopped this with its content filter", "Change the request."),
    ChatClientException: ("failed", "Try again later."),
}
_BUSY = ("takes no more requests for now", "Wait a while, then try again.")
_SLOW = ("did not answer in time", "Try again later, or wait longer: timeout=...")
_AWAY = ("could not be reached, or the connection broke", "Try again later.")

_REQUEST_STATUS = frozenset({400, 404, 409, 413, 415, 422})
_RETRYABLE_STATUS = frozenset({408, 425, 429})

# What is wrong with an answer that can be decoded.
NO_ANSWER = "it holds no answer of a model"
NO_UPDATES = "its stream ended before it had begun"
NO_VECTORS = "it holds {found} vectors for {texts} texts"


def sdk_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a call of the SDK that come from the service or the way to it."""
    # Older versions of the SDK let errors of its HTTP library through where a stream breaks.
    libraries = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    transport = tuple(library.HTTPError for library in libraries if library is not None)
    sdk = sys.modules.get("openai")
    own = (sdk.OpenAIError,) if sdk is not None else ()
    return *own, *transport, json.JSONDecodeError, UnicodeError


def translate_error(error: Exception, *, url: str, secrets: Iterable[str] = ()) -> ChatClientException:
    """Return our error for an error of the SDK, to be raised from it.

    Args:
        error: The error of the SDK. Secrets that the service has repeated in it are masked.
        url: The address of the service, without credentials.
        secrets: Texts that the error must not contain.
    """
    secrets = tuple(secrets)
    if secrets:
        _mask_error(error, secrets)
    body = field(error, "body")
    translated = _make_error(
        _class_for(error, body),
        detail=text(body, "message") or (body if isinstance(body, str) and body else str(error)),
        status=number(error, "status_code"),
        body=body,
        url=url,
        inner=error,
    )
    translated.retry_after = _retry_after(field(field(error, "response"), "headers"))
    return translated


def reported_error(body: Any, *, url: str, secrets: Iterable[str] = ()) -> ChatClientException:
    """Return our error for a failure that a service reports as part of an answer.

    Args:
        body: The report: `code` and `message`, or only a text.
        url: The address of the service, without credentials.
        secrets: Texts that the error must not contain.
    """
    detail = text(body, "message") or (body if isinstance(body, str) else None) or "it names no reason"
    return _make_error(
        _class_of_code(body), detail=_mask(detail, tuple(secrets)), status=None, body=body, url=url, inner=None
    )


def unusable_error(problem: str, *, url: str) -> ChatClientInvalidResponseException:
    """Return the error for an answer that can be decoded, and yet is none.

    Args:
        problem: What is wrong with it, as the end of a sentence: "it holds no choices".
        url: The address of the service, without credentials.
    """
    what, mend = _WORDS[_RESPONSE]
    return ChatClientInvalidResponseException(f"The service at {url} {what}: {problem}. {mend}")


def _class_for(error: Exception, body: Any) -> type[ChatClientException] | None:
    if text(body, "code") in ("content_filter", "content_policy_violation"):
        return OpenAIContentFilterException
    names = [cls.__name__ for cls in type(error).__mro__]
    if "APIConnectionError" in names and type(error.__cause__).__name__ == "DecodingError":
        return _RESPONSE
    found = next((_CLASS_BY_NAME[name] for name in names if name in _CLASS_BY_NAME), None)
    return _class_of_code(body) if found is None and number(error, "status_code") is None else found


def _class_of_code(body: Any) -> type[ChatClientException] | None:
    codes = (text(body, "code"), text(body, "type"))
    named = next((_CLASS_BY_CODE[code] for code in codes if code in _CLASS_BY_CODE), None)
    return named or _class_of_status(number(body, "code") or 0)


def _class_of_status(status: int) -> type[ChatClientException] | None:
    """The class for a status of HTTP, which some services report within an answer."""
    if status in (401, 403):
        return _AUTH
    if status in _REQUEST_STATUS:
        return _REQUEST
    return ChatClientException if status in _RETRYABLE_STATUS or status >= 500 else None


def _make_error(
    cls: type[ChatClientException] | None,
    *,
    detail: str,
    status: int | None,
    body: Any,
    url: str,
    inner: Exception | None,
) -> ChatClientException:
    what, mend = _words(cls, status or number(body, "code"), inner)
    short = " ".join(detail.split())[:_LONGEST_DETAIL].rstrip(".")
    message = f"The service at {url} {what}{f' (HTTP {status})' if status else ''}: {short}. {mend}"
    error: ChatClientException
    if cls is OpenAIContentFilterException:
        error = _content_filter_error(message, inner, body)
    else:
        error = (cls or ChatClientException)(message, inner)
    error.status_code = status
    error.is_retryable = cls is ChatClientException or status == 408
    return error


def _words(cls: type[ChatClientException] | None, status: int | None, inner: Exception | None) -> tuple[str, str]:
    """What the service did, and how to mend it."""
    if cls is None:
        return "reported an error", "Check the request."
    if cls is ChatClientException and status == 429:
        return _BUSY
    if cls is ChatClientException and status is None and inner is not None:
        return _SLOW if "Timeout" in type(inner).__name__ else _AWAY
    return _WORDS[cls]


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
    """The seconds to wait before the next request, which services report in three ways."""
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


def _mask_error(error: BaseException, secrets: tuple[str, ...]) -> None:
    """Mask secrets in an error and its causes: some services repeat the key that they refuse."""
    for each in _chain(error):
        each.args = tuple(_mask(arg, secrets) for arg in each.args)
        for name, value in list(vars(each).items()):
            if isinstance(value, (str, dict, list)):
                setattr(each, name, _mask(value, secrets))


def _chain(error: BaseException) -> Iterator[BaseException]:
    visited: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in visited:
            visited.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__]


def _mask(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, dict):
        return {key: _mask(item, secrets) for key, item in value.items()}
    return [_mask(item, secrets) for item in value] if isinstance(value, list) else value
