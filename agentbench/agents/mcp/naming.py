"""Names of a server's tools, as a model gets them, and which of them are allowed or need approval."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple, TypedDict

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")
_ENDS = "_.-"


class MCPSpecificApproval(TypedDict, total=False):
    """Which tools of a server need approval, by name. A name in both collections needs it.

    Example:
        >>> MCPSpecificApproval(always_require_approval=["delete_file"])
        {'always_require_approval': ['delete_file']}
    """

    always_require_approval: Collection[str]
    never_require_approval: Collection[str]


class ToolName(NamedTuple):
    """The names of one tool.

    Attributes:
        original: On the server.
        normalized: With characters that models take.
        exposed: With the prefix, as the model knows it.
    """

    original: str
    normalized: str
    exposed: str

    def is_in(self, names: Collection[str]) -> bool:
        """Whether a collection has any of the names."""
        return not {self.original, self.normalized, self.exposed}.isdisjoint(names)


def normalize_name(name: str) -> str:
    """Return a name with `-` for each character that models do not take."""
    return _FOREIGN.sub("-", name)


def normalize_prefix(prefix: str | None) -> str:
    """Return a prefix of names without the separators at its end."""
    return normalize_name(prefix or "").rstrip(_ENDS)


def tool_name_of(original: str, prefix: str) -> ToolName:
    """Return the names of a tool of the server, with a normalized prefix or an empty one."""
    normalized = normalize_name(original)
    return ToolName(original, normalized, f"{prefix}_{normalized.lstrip(_ENDS)}" if prefix else normalized)


ApprovalMode = Literal["always_require", "never_require"]


def approval_of(name: ToolName, mode: ApprovalMode | MCPSpecificApproval | None) -> ApprovalMode | None:
    """Return whether a tool needs approval; None if nothing says so."""
    if mode is None or isinstance(mode, str):
        return mode
    if name.is_in(mode.get("always_require_approval", ())):
        return "always_require"
    return "never_require" if name.is_in(mode.get("never_require_approval", ())) else None
