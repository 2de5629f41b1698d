"""Errors of the SDK as errors of ours.

The names of their classes decide, so that neither the SDK nor its HTTP library has to be loaded, and it does not
matter in which module a version of them has these classes.
"""

from __future__ import annotations

import email.utils
import json
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
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

_LONGEST_DETAIL = 500
_HIDDEN = "[secret]"

_AUTH, _REQUEST, _RESPONSE = (
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
)
_FILTER, _LATER = OpenAIContentFilterException, ChatClientException  # _LATER: the call may succeed later

# Classes of the SDK, or of its HTTP library, by our class.
_NAMES: dict[type[ChatClientException], tuple[str, ...]] = {
    _AUTH: ("AuthenticationError", "PermissionDeniedError"),
    _FILTER: ("ContentFilterFinishReasonError",),
    _REQUEST: (
        *("BadRequestError", "NotFoundError", "ConflictError", "UnprocessableEntityError"),
        "UnicodeEncodeError",
    ),
    _RESPONSE: (
        *("APIResponseValidationError", "LengthFinishReasonError"),
        *("JSONDecodeError", "UnicodeDecodeError", "DecodingError"),
    ),
    _LATER: ("RateLimitError", "InternalServerError", "APITimeoutError", "APIConnectionError", "TransportError"),
}

# Code or type of an error that arrived within an answer that had begun well.
_CODES: dict[type[ChatClientException], tuple[str, ...]] = {
    _AUTH: ("authentication_error", "invalid_api_key", "permission_error"),
    _FILTER: ("content_filter", "content_policy_violation"),
    _REQUEST: ("invalid_request_error", "invalid_prompt", "not_found_error"),
    _LATER: (
        *("internal_error", "internal_server_error", "overloaded_error", "rate_limit_error", "rate_limit_exceeded"),
        *("server_error", "service_unavailable", "timeout"),
    ),
}
_CLASS_BY_NAME = {name: cls for cls, names in _NAMES.items() for name in names}
_CLASS_BY_CODE = {code: cls for cls, codes in _CODES.items() for code in codes}

# What the service did, and how to mend it.
_WORDS: dict[type[ChatClientException] | None, tuple[str, str]] = {
    None: ("reported an error", "Check the request."),
    _AUTH: ("refused the credentials", "Check api_key=... or OPENAI_API_KEY, and what the key may do."),
    _REQUEST: ("refused the request", "Check model, messages and options."),
    _RESPONSE: ("answered with something that is no answer", "Check that base_url=... is the address of its API."),
    _FILTER: ("stopped this with its content filter", "Change the request."),
    _LATER: ("failed", "Try again later."),
}
_BUSY = ("takes no more requests for now", "Wait a while, then try again.")
_SLOW = ("did not answer in time", "Try again later, or wait longer: timeout=...")
_AWAY = ("could not be reached, or the connection broke", "Try again later.")

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


def translate_error(error: Exception, *, url: str, secrets: tuple[str, ...] = ()) -> ChatClientException:
    """Return our error for an error of the SDK, in which secrets are masked that the service has repeated."""
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


def reported_error(body: Any, *, url: str, secrets: tuple[str, ...] = ()) -> ChatClientException:
    """Return our error for a failure that a service reports as part of an answer."""
    detail = text(body, "message") or (body if isinstance(body, str) else None) or "it names no reason"
    return _make_error(_class_of_code(body), detail=_mask(detail, secrets), status=None, body=body, url=url, inner=None)


def unusable_error(problem: str, *, url: str) -> ChatClientInvalidResponseException:
    """Return the error for an answer that can be decoded, and yet is none; `problem` is the end of a sentence."""
    what, mend = _WORDS[_RESPONSE]
    return ChatClientInvalidResponseException(f"The service at {url} {what}: {problem}. {mend}")


def _class_for(error: Exception, body: Any) -> type[ChatClientException] | None:
    if text(body, "code") in _CODES[_FILTER]:
        return _FILTER
    names = [cls.__name__ for cls in type(error).__mro__]
    if "APIConnectionError" in names and type(error.__cause__).__name__ == "DecodingError":
        return _RESPONSE
    found = next((_CLASS_BY_NAME[name] for name in names if name in _CLASS_BY_NAME), None)
    return _class_of_code(body) if found is None and number(error, "status_code") is None else found


def _class_of_code(body: Any) -> type[ChatClientException] | None:
    codes = (text(body, "code"), text(body, "type"))
    named = next((_CLASS_BY_CODE[code] for code in codes if code in _CLASS_BY_CODE), None)
    status = number(body, "code") or 0  # some services report that of HTTP
    if named is not None or status in (401, 403):
        return named or _AUTH
    if status in (400, 404, 409, 413, 415, 422):
        return _REQUEST
    return _LATER if status in (408, 425, 429) or status >= 500 else None


def _make_error(
    cls: type[ChatClientException] | None,
    *,
    detail: str,
    status: int | None,
    body: Any,
    url: str,
    inner: Exception | None,
) -> ChatClientException:
    what, mend = _WORDS[cls]
    if cls is _LATER and (status or number(body, "code")) == 429:
        what, mend = _BUSY
    elif cls is _LATER and (status or number(body, "code")) is None and inner is not None:
        what, mend = _SLOW if "Timeout" in type(inner).__name__ else _AWAY
    short = " ".join(detail.split())[:_LONGEST_DETAIL].rstrip(".")
    message = f"The service at {url} {what}{f' (HTTP {status})' if status else ''}: {short}. {mend}"
    if cls is _FILTER:
        details = field(body, "innererror")
        result = field(details, "content_filter_result")
        error: ChatClientException = OpenAIContentFilterException(
            message,
            inner,
            param=text(body, "param"),
            content_filter_code=text(details, "code") or text(body, "code"),
            content_filter_result=result if isinstance(result, Mapping) else None,
        )
    else:
        error = (cls or ChatClientException)(message, inner)
    error.status_code = status
    error.is_retryable = cls is _LATER or status == 408
    return error


def _retry_after(headers: Any) -> float | None:
    """The seconds to wait before the next request, which services report in three ways."""
    if not isinstance(headers, Mapping):
        return None
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        wait: Any = headers.get(name)
        with suppress(TypeError, ValueError):
            seconds = float(wait)
            if math.isfinite(seconds):
                return max(seconds * unit_s, 0.0)
    with suppress(TypeError, ValueError):
        at = email.utils.parsedate_to_datetime(wait)
        return max(at.timestamp() - runtime_defaults().clock.time_ns() / 1e9, 0.0)
    return None


def _mask_error(error: BaseException, secrets: tuple[str, ...]) -> None:
    """Mask secrets in an error and its causes: some services repeat the key that they refuse."""
    visited: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or any(each is other for other in visited):
            continue
        visited.append(each)
        waiting += [each.__cause__, each.__context__]
        each.args = tuple(_mask(arg, secrets) for arg in each.args)
        for name, value in list(vars(each).items()):
            if isinstance(value, (str, dict, list)):
                setattr(each, name, _mask(value, secrets))


def _mask(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _HIDDEN)
        return value
    if isinstance(value, dict):
        return {key: _mask(item, secrets) for key, item in value.items()}
    return [_mask(item, secrets) for item in value] if isinstance(value, list) else value
