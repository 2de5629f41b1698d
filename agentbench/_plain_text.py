"""Untrusted text (names, values, what models and people wrote), made harmless in a terminal, log or page."""

from __future__ import annotations

import re

from agentbench._secrets import MASK, is_secret

__all__ = ["MASK", "plain_line", "plain_text"]

# Control characters (except newline and tab), bidirectional overrides, invisible format characters, lone surrogates and
# the code points that XML forbids. ZWNJ and ZWJ stay, because scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def plain_text(value: object, limit: int | None) -> str:
    r"""Return a value as text. Line ends are kept; control, bidirectional and invisible characters become `\u202e`.

    Args:
        value: A string, or any object, which is converted by `str()`. Secrets are masked.
        limit: Maximum number of characters, `None` for all; cut text is marked.
    """
    if is_secret(value):
        return MASK
    text = value if isinstance(value, str) else str(value)
    size = len(text)
    if limit is not None and size > limit:
        text = text[: limit - 1] + "…" if limit < 200 else f"{text[:limit]}… ({size - limit:,} more characters)"
    return _UNSAFE.sub(_code_of, text.replace("\r\n", "\n"))


def plain_line(value: object, limit: int | None) -> str:
    """Return a value as one line of text; see `plain_text`."""
    return plain_text(value, limit).replace("\n", " ").replace("\t", " ")


def _code_of(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
