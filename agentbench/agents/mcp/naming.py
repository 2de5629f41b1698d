"""Names of a server's tools as the model sees them, and which of the tools need approval."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple, TypedDict

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")
_ENDS = "_.-"


class MCPSpecificApproval(TypedDict, total=False):
    """The names of the tools that need approval, and of those that do not. A name in both needs approval.

    Example:
        >>> MCPSpecificApproval(always_require_approval=["delete_file"])
        {'always_require_approval': ['delete_file']}
    """

    always_require_approval: Collection[str]
    never_require_approval: Collection[str]


class ToolName(NamedTuple):
    """The names of one tool.

    Attributes:
        original: The name on the server.
        normalized: The name with only characters that models accept.
        exposed: The name that the model sees, with the prefix.
    """

    original: str
    normalized: str
    exposed: str

    def is_in(self, names: Collection[str]) -> bool:
        """Return whether a collection contains any of the names."""
        return not {self.original, self.normalized, self.exposed}.isdisjoint(names)


def normalize_name(name: str) -> str:
    """Replace each character that models do not accept by `-`."""
    return _FOREIGN.sub("-", name)


def normalize_prefix(prefix: str | None) -> str:
    """Normalize a prefix and strip the separators at its end."""
    return normalize_name(prefix or "").rstrip(_ENDS)


def tool_name_of(original: str, prefix: str) -> ToolName:
    """Return the names of a tool; `prefix` is normalized, or empty for none."""
    normalized = normalize_name(original)
    return ToolName(original, normalized, f"{prefix}_{normalized.lstrip(_ENDS)}" if prefix else normalized)


ApprovalMode = Literal["always_require", "never_require"]


def approval_of(name: ToolName, mode: ApprovalMode | MCPSpecificApproval | None) -> ApprovalMode | None:
    """Return the approval mode of a tool; None if `mode` does not mention it."""
    if mode is None or isinstance(mode, str):
        return mode
    if name.is_in(mode.get("always_require_approval", ())):
        return "always_require"
    return "never_require" if name.is_in(mode.get("never_require_approval", ())) else None
