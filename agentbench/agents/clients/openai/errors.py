"""Convert errors of the SDK to ours by the names of their classes, without importing the SDK."""

from __future__ import annotations

import email.utils
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

from agentbench._clock import runtime_defaults
from agentbench._secrets import is_secret_name
from agentbench.agents.clients.openai.wire import field, number, text
from agentbench.exceptions import (
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
    ContentError,
    OpenAIContentFilterException,
)

_LONGEST_DETAIL = 500
_HIDDEN = "[secret]"
# A shorter header value, or part of one, may be a common word.
_SHORTEST_WORD = 4
_SHORTEST_PART = 8


class ContentFilterResultSeverity(StrEnum):
    """Severity in a content filter's result, as in the `content_filter_result` of an error.

    Example:
        from agentbench.openai import ContentFilterResultSeverity

        assert ContentFilterResultSeverity("high") is ContentFilterResultSeverity.HIGH
    """

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    SAFE = "safe"


class _Kind(NamedTuple):
    """A kind of failure: our class, what the service did, how to fix it, and the names that identify it."""

    cls: type[ChatClientException]
    what: str
    mend: str
    classes: tuple[str, ...] = ()
    """Class names of the SDK or its HTTP library."""
    codes: tuple[str, ...] = ()
    """Codes or types of an error within an answer that started successfully."""


_OTHER = _Kind(ChatClientException, "reported an error", "Check the request.")
_AUTH = _Kind(
    ChatClientInvalidAuthException,
    "refused the credentials",
    "Check api_key=... or OPENAI_API_KEY, and the permissions of the key.",
    ("AuthenticationError", "PermissionDeniedError"),
    ("authentication_error", "invalid_api_key", "permission_error"),
)
_REQUEST = _Kind(
    ChatClientInvalidRequestException,
    "refused the request",
    "Check model, messages and options.",
    ("BadRequestError", "NotFoundError", "ConflictError", "UnprocessableEntityError", "UnicodeEncodeError"),
    ("invalid_request_error", "invalid_prompt", "not_found_error"),
)
_TURNS = _REQUEST._replace(
    mend=(
        "The request has several assistant messages in a row, which some servers reject. In a sequential workflow pass "
        "reassign_other_agents_as_users=True: each agent then sees the others' answers as user messages."
    )
)
_RESPONSE = _Kind(
    ChatClientInvalidResponseException,
    "sent an invalid answer",
    "Check that base_url=... is the URL of its API.",
    (
        *("APIResponseValidationError", "LengthFinishReasonError"),
        *("ContentError", "DecodingError", "OverflowError", "RecursionError", "ValueError"),
    ),
)
_FILTER = _Kind(
    OpenAIContentFilterException,
    "stopped this with its content filter",
    "Change the request.",
    ("ContentFilterFinishReasonError",),
    ("content_filter", "content_policy_violation"),
)
_LATER = _Kind(  # a retry may succeed
    ChatClientException,
    "failed",
    "Try again later.",
    (
        *("RateLimitError", "InternalServerError", "APITimeoutError", "APIConnectionError", "TransportError"),
        *("EOFError", "TimeoutError"),
    ),
    (
        *("internal_error", "internal_server_error", "overloaded_error", "rate_limit_error", "rate_limit_exceeded"),
        *("server_error", "service_unavailable", "timeout"),
    ),
)
_KINDS = (_AUTH, _REQUEST, _RESPONSE, _FILTER, _LATER)
_BY_CLASS = {name: kind for kind in _KINDS for name in kind.classes}
_BY_CODE = {code: kind for kind in _KINDS for code in kind.codes}

_FROM_A_PAGE = (
    "A browser does not say why. Check the network and base_url=...; a page at https:// cannot call a service at "
    "http:// on another machine; and a service that does not allow calls from web pages (CORS) can only be called "
    "outside the browser."
)

# Problems of an answer that can be decoded.
NO_ANSWER = "it contains no model answer"
NO_UPDATES = "its stream ended without an update"
NO_END = "its stream ended without a finish reason, so the answer may be incomplete"
NO_VECTORS = "it contains {found} vectors for {texts} texts"


class ReportedFailureError(Exception):
    """A service reported an error, `body`, as part of an answer."""

    def __init__(self, body: Any) -> None:
        super().__init__("no reason was reported")
        self.body = body


def answer_errors() -> tuple[type[Exception], ...]:
    """Return the errors of an SDK call that come from the service, the network, or the answer."""
    # Older SDK versions raise errors of the HTTP library when a stream breaks.
    libraries = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    transport = tuple(library.HTTPError for library in libraries if library is not None)
    sdk = sys.modules.get("openai")
    own = (sdk.OpenAIError,) if sdk is not None else ()
    # An answer may be invalid JSON, nested too deeply, or contain overlong numbers and invalid URLs.
    broken = (ContentError, ValueError, RecursionError, OverflowError, EOFError, TimeoutError)
    return *own, *transport, ReportedFailureError, *broken


def translate_error(
    error: Exception, *, url: str, secrets: re.Pattern[str] | None = None, sent: Mapping[str, Any] | None = None
) -> ChatClientException:
    """Convert a failure of the request `sent` to our error; secrets that the service repeats are masked."""
    if secrets is not None:
        _mask_error(error, secrets)
    body, status = field(error, "body"), number(error, "status_code")
    detail = text(body, "message") or (body if isinstance(body, str) and body else str(error))
    names = [cls.__name__ for cls in type(error).__mro__]
    if text(body, "code") in _FILTER.codes:
        kind = _FILTER
    elif "APIConnectionError" in names and type(error.__cause__).__name__ == "DecodingError":
        kind = _RESPONSE
    else:
        unknown = _OTHER if status is not None else _kind_of_code(body)
        kind = next((_BY_CLASS[name] for name in names if name in _BY_CLASS), unknown)
    if status == 400 and kind is _REQUEST and _repeats_assistant(sent or {}):
        kind = _TURNS
    inner = None if isinstance(error, ReportedFailureError) else error
    translated = _make_error(kind, detail, body, status=status, url=url, inner=inner)
    translated.retry_after = _retry_after(field(field(error, "response"), "headers"))
    return translated


def _repeats_assistant(sent: Mapping[str, Any]) -> bool:
    roles = [field(item, "role") for item in sent.get("messages") or sent.get("input") or ()]
    return ("assistant", "assistant") in pairwise(roles)


def _kind_of_code(body: Any) -> _Kind:
    named = next((_BY_CODE[code] for name in ("code", "type") if (code := text(body, name)) in _BY_CODE), None)
    if named is not None:
        return named
    match number(body, "code") or 0:  # some services report the HTTP status
        case 401 | 403:
            return _AUTH
        case 400 | 404 | 409 | 413 | 415 | 422:
            return _REQUEST
        case status:
            return _LATER if status in (408, 425, 429) or status >= 500 else _OTHER


def _make_error(
    kind: _Kind, detail: str, body: Any, *, url: str, status: int | None = None, inner: Exception | None = None
) -> ChatClientException:
    what, mend = kind.what, kind.mend
    code = status or number(body, "code")
    if kind is _LATER and code == 429:
        what, mend = "rejected the request because of a rate limit", "Wait, then try again."
    elif kind is _LATER and code is None and inner is not None:
        what, mend = "could not be reached, or the connection broke", "Try again later."
        if "Timeout" in type(inner).__name__:
            what, mend = "did not answer in time", "Try again later, or pass a longer timeout=..."
        elif sys.platform == "emscripten":
            mend = _FROM_A_PAGE
    short = " ".join(detail.split())[:_LONGEST_DETAIL].rstrip(".")
    message = f"The service at {url} {what}{f' (HTTP {status})' if status else ''}: {short}. {mend}"
    if kind is _FILTER:
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
        error = kind.cls(message, inner)
    error.status_code = status
    error.is_retryable = kind is _LATER or status == 408
    return error


def _retry_after(headers: Any) -> float | None:
    """Return the seconds to wait before the next request; services report them in three formats."""
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


def secret_pattern(secrets: Iterable[str], headers: Iterable[tuple[str, str]]) -> re.Pattern[str] | None:
    """Return a pattern for secrets and header values: parts of values with secret names, others as whole words."""
    whole, words = set(secrets), set[str]()
    for name, value in headers:
        if is_secret_name(name):
            # A service may repeat only the secret part of `Bearer abc` or `id=abc; more`.
            whole |= {value, *(part for part in re.split(r"[\s;,=]+", value) if len(part) >= _SHORTEST_PART)}
        else:
            words.add(value)
    forms = {re.escape(form): form for value in whole if value for form in _quoted_forms(value)}
    forms |= {
        rf"(?<!\w){re.escape(form)}(?!\w)": form
        for value in words
        if len(value) >= _SHORTEST_WORD
        for form in _quoted_forms(value)
    }
    return re.compile("|".join(sorted(forms, key=lambda one: -len(forms[one])))) if forms else None


def _quoted_forms(value: str) -> tuple[str, ...]:
    """Return a text plain, as in JSON, and as in the `repr` of a dictionary."""
    return value, json.dumps(value)[1:-1], repr(value)[1:-1]


def _mask_error(error: BaseException, secrets: re.Pattern[str]) -> None:
    """Mask secrets in an error and its causes, because some services repeat the key that they reject."""
    chain = [error]
    for each in chain:
        for other in (each.__cause__, each.__context__):
            if other is not None and all(other is not earlier for earlier in chain):
                chain.append(other)
        each.args = tuple(_mask(arg, secrets) for arg in each.args)
        for name, value in list(vars(each).items()):
            if isinstance(value, (str, dict, list)):
                setattr(each, name, _mask(value, secrets))


def _mask(value: Any, secrets: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return secrets.sub(_HIDDEN, value)
    try:
        if isinstance(value, dict):
            return {_mask(key, secrets): _mask(item, secrets) for key, item in value.items()}
        return [_mask(item, secrets) for item in value] if isinstance(value, list) else value
    except RecursionError:
        return _HIDDEN
