"""Media of content: data in URIs, media types, and the sources that a text cites."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Any, Final, Literal, TypedDict

from agentbench.exceptions import ContentError

_log = logging.getLogger("agentbench")

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
"""First bytes -> media type."""
_RIFF_KINDS: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


class TextSpanRegion(TypedDict, total=False):
    """A part of a text.

    Indices count characters; the end is exclusive.

    Example:
        from agentbench import TextSpanRegion

        region: TextSpanRegion = {"type": "text_span", "start_index": 0, "end_index": 5}
    """

    type: Literal["text_span"]
    start_index: int
    end_index: int


class Annotation(TypedDict, total=False):
    """A source that a text cites, and the places that cite it.

    Example:
        from agentbench import Annotation

        annotation: Annotation = {"type": "citation", "title": "Owls", "url": "https://example.org/owls"}
    """

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
    """Detect the media type of data from its first bytes; return `None` if it is unknown.

    Args:
        data_bytes: The data.
        data_str: The data as base64.
        data_uri: The data as a `data:` URI with base64.

    Raises:
        ValueError: Not exactly one of the three is passed, or the data is not valid base64.

    Example:
        from agentbench import detect_media_type_from_base64

        assert detect_media_type_from_base64(data_bytes=b"%PDF-1.7") == "application/pdf"
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
            message = f"The data is not valid base64: {error}. Expected letters, digits, + and /, padded with =."
            raise ValueError(message) from error
    start = data_bytes or b""
    if start.startswith(b"RIFF"):
        return _RIFF_KINDS.get(start[8:12])
    return next((media_type for signature, media_type in _SIGNATURES if start.startswith(signature)), None)


def read_uri(uri: str, media_type: str | None) -> tuple[str, str | None]:
    """Return `"data"` or `"uri"` and the media type of a URI; raise `ContentError` if it is invalid."""
    scheme, colon, rest = uri.partition(":")
    if not colon:
        message = (
            f"{uri!r} is not a URI: the scheme is missing. Expected, for example, https://... or data:...;base64,..."
        )
        raise ContentError(message)
    if scheme.lower() == "data":
        header, comma, _ = rest.partition(",")
        own, *parameters = header.split(";")
        if not comma:
            message = f"The data URI has no comma between header and data. It begins with data:{header[:40]!r}."
            raise ContentError(message)
        # Parameters are `name=value`; a last part without a value names the encoding.
        encoding = parameters[-1] if parameters and "=" not in parameters[-1] else ""
        if encoding.lower() not in ("", "base64"):
            message = f"The data URI has the encoding {encoding!r}. Expected base64 or no encoding."
            raise ContentError(message)
        return "data", media_type or own or None
    if not media_type:
        _log.warning("The URI has no media type, which many services need. Pass one: from_uri(..., media_type=...).")
    return "uri", media_type


def data_uri(data: bytes | bytearray | memoryview, media_type: str) -> str:
    """Encode data as a `data:` URI."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def size_of_data_uri(uri: str) -> int:
    """Return the number of bytes in a `data:` URI, without decoding it."""
    header, _, data = uri.partition(",")
    if not header.lower().endswith(";base64"):
        return len(data)
    return len(data) * 3 // 4 - data[-2:].count("=")
