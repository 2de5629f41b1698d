"""What a piece of content refers to: data in a URI, their media type, and the sources that a text cites."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Any, Final, Literal, TypedDict

from agentbench.exceptions import ContentError

_log = logging.getLogger("agentbench")

#: First bytes -> media type.
_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"<svg", "image/svg+xml"),
    (b"<?xml", "image/svg+xml"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF_KINDS: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


class TextSpanRegion(TypedDict, total=False):
    """A part of a text.

    Units: indices count characters; the end is not included.
    """

    type: Literal["text_span"]
    start_index: int
    end_index: int


class Annotation(TypedDict, total=False):
    """A source that a text cites, and the places where it does."""

    type: Literal["citation"]
    title: str
    url: str
    file_id: str
    tool_name: str
    snippet: str
    annotated_regions: Sequence[TextSpanRegion]
    additional_properties: dict[str, Any]
    raw_representation: Any


def detect_media_type_from_base64(
    *, data_bytes: bytes | None = None, data_str: str | None = None, data_uri: str | None = None
) -> str | None:
    """Return the media type of data by its first bytes, or `None` if they are of no known kind.

    Args:
        data_bytes: The data.
        data_str: The data as base64.
        data_uri: The data as a `data:` URI with base64.

    Raises:
        ValueError: Not exactly one of the three is passed, or the data are no base64.
    """
    if sum(source is not None for source in (data_bytes, data_str, data_uri)) != 1:
        message = "Expected exactly one of data_bytes, data_str and data_uri."
        raise ValueError(message)
    if data_uri is not None:
        data_str = data_uri.partition(",")[2]
    if data_str is not None:
        try:
            data_bytes = base64.b64decode("".join(data_str.split()), validate=True)
        except ValueError as error:
            message = f"The data are no base64: {error}. Expected letters, digits, + and /, filled up to fours with =."
            raise ValueError(message) from error
    start = data_bytes or b""
    if start.startswith(b"RIFF"):
        return _RIFF_KINDS.get(start[8:12])
    return next((media_type for signature, media_type in _SIGNATURES if start.startswith(signature)), None)


def read_uri(uri: str, media_type: str | None) -> tuple[str, str | None]:
    """Return the kind of a URI, `"data"` or `"uri"`, and its media type; a `ContentError` if it cannot be read."""
    scheme, colon, rest = uri.partition(":")
    if not colon:
        message = f"{uri!r} is no URI: it has no scheme. Expected something like https://... or data:...;base64,..."
        raise ContentError(message)
    if scheme.lower() == "data":
        header, comma, _ = rest.partition(",")
        own, *parameters = header.split(";")
        if not comma:
            message = f"A data URI has no comma between its header and its data. It begins with data:{header[:40]!r}."
            raise ContentError(message)
        # Parameters are `name=value`; a last part without a value names the encoding.
        encoding = parameters[-1] if parameters and "=" not in parameters[-1] else ""
        if encoding.lower() not in ("", "base64"):
            message = f"A data URI is encoded as {encoding!r}. Expected base64, or no encoding."
            raise ContentError(message)
        return "data", media_type or own or None
    if not media_type:
        _log.warning("A URI has no media type, and many services need one. Pass it: from_uri(..., media_type=...).")
    return "uri", media_type


def data_uri(data: bytes | bytearray | memoryview, media_type: str) -> str:
    """Return data as a `data:` URI."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def size_of_data_uri(uri: str) -> int:
    """Return the number of bytes in a `data:` URI, without decoding it."""
    header, _, data = uri.partition(",")
    if not header.lower().endswith(";base64"):
        return len(data)
    return len(data) * 3 // 4 - data[-2:].count("=")
