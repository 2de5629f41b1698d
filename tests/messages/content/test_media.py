"""What the first bytes of data tell."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.messages.content.media import detect_media_type_from_base64, size_of_data_uri
from tests.parts.errors import raises

SIGNATURES = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF\x24\x00\x00\x00WEBP", "image/webp"),
    (b"RIFF\x24\x00\x00\x00WAVE", "audio/wav"),
    (b"RIFF\x24\x00\x00\x00AVI ", None),
    (b"BM\x00\x00", "image/bmp"),
    (b"<svg xmlns", "image/svg+xml"),
    (b"<?xml version", "image/svg+xml"),
    (b"%PDF-1.7", "application/pdf"),
    (b"ID3\x03", "audio/mpeg"),
    (b"\xff\xfb\x90", "audio/mpeg"),
    (b"\xff\xf3\x90", "audio/mpeg"),
    (b"OggS\x00", "audio/ogg"),
    (b"fLaC\x00", "audio/flac"),
    (b"hello", None),
    (b"", None),
]


@pytest.mark.parametrize(("start", "media_type"), SIGNATURES)
def test_the_first_bytes_decide_the_media_type_in_every_form(start: bytes, media_type: str | None) -> None:
    for data in (start, start + b"\x00" * 999):
        text = base64.b64encode(data).decode()
        assert detect_media_type_from_base64(data_bytes=data) == media_type
        assert detect_media_type_from_base64(data_str=text) == media_type
        assert detect_media_type_from_base64(data_uri=f"data:any/thing;base64,{text}") == media_type


@pytest.mark.parametrize("text", ["!!", "A", "é", "====", "not base64 at all, really", "iVBORw0KGgo=" * 9 + "!"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    for form in ({"data_str": text}, {"data_uri": f"data:image/png;base64,{text}"}):
        with raises(ValueError, "64") as caught:
            detect_media_type_from_base64(**form)  # type: ignore[arg-type]
        assert isinstance(caught.value.__cause__, ValueError)


def test_base64_may_have_lines() -> None:
    lines = base64.encodebytes(SIGNATURES[0][0] * 40).decode()
    assert detect_media_type_from_base64(data_str=lines) == "image/png"


@pytest.mark.parametrize(
    "given_forms", [{}, {"data_bytes": b"", "data_str": ""}, {"data_bytes": b"", "data_str": "", "data_uri": ""}]
)
def test_exactly_one_form_is_expected(given_forms: dict[str, bytes | str]) -> None:
    with raises(ValueError):
        detect_media_type_from_base64(**given_forms)  # type: ignore[arg-type]


@given(st.binary(max_size=60))
def test_the_size_of_a_data_uri_is_that_of_its_bytes(data: bytes) -> None:
    assert size_of_data_uri(f"data:a/b;base64,{base64.b64encode(data).decode()}") == len(data)
    assert size_of_data_uri("data:,hello") == 5
