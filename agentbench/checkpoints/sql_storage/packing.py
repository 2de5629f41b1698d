"""Names and texts as bytes, in columns that every database compares and sorts alike."""

from __future__ import annotations

import zlib
from typing import Final

_DEFLATED, _PLAIN = b"\x01", b"\x00"
"""First byte of a deflated text, and of one that would otherwise begin with either of the two. JSON never does."""
_LONGEST: Final = 1 << 30
"""Longer texts are damaged or malicious: a few kilobytes of a file could fill the memory."""
_FITS_SMALL_WINDOW: Final = 4096
"""Texts shorter than this fit a small window, which takes a third of the time to set up."""


def encode_name(name: str) -> bytes:
    """Return a name as bytes that compare (equal, less, prefix) like the names."""
    return name.encode("utf-8", "surrogatepass")


def decode_name(data: bytes) -> str:
    """Return the name from which `encode_name` created the bytes; a damaged one becomes another name."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except (UnicodeDecodeError, AttributeError):  # or not bytes at all: damage may change the type that SQLite reads
        return repr(data)


def pack(text: str, shortest: int) -> bytes:
    """Return a text as bytes, deflated if it has at least `minimum` bytes and that makes it smaller."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) >= shortest:
        window, memory = (-12, 5) if len(data) < _FITS_SMALL_WINDOW else (-15, 8)
        deflate = zlib.compressobj(1, zlib.DEFLATED, window, memory)
        packed = _DEFLATED + deflate.compress(data) + deflate.flush()
        if len(packed) < len(data):
            return packed
    return _PLAIN + data if data.startswith((_PLAIN, _DEFLATED)) else data


def unpack(data: bytes) -> str:
    """Return the text that `pack` packed; for damaged bytes, or more than 1 GiB, one that its reader rejects."""
    try:
        if data.startswith(_DEFLATED):
            inflate = zlib.decompressobj(-15)
            data = inflate.decompress(data[1:], _LONGEST)
            return data.decode("utf-8", "surrogatepass") if inflate.eof else repr(data[:100])
        return data.removeprefix(_PLAIN).decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError, AttributeError, TypeError):
        return repr(data)
