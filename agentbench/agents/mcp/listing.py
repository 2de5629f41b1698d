"""Tools and prompts that a server lists, their names here, and the functions that call them."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from agentbench._plain_text import plain_line
from agentbench._secrets import is_secret
from agentbench.agents.mcp.limits import MCPLimits, measure
from agentbench.agents.mcp.package import make, wire
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import MCP_SERVER, FunctionTool
from agentbench.exceptions import MCPLimitError

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


logger = logging.getLogger("agentbench")

Kind = Literal["tools", "prompts"]

Approval: TypeAlias = ApprovalMode | MCPSpecificApproval | None
"""Which tools and prompts need approval."""

Answer: TypeAlias = Callable[[Kind, str, dict[str, Any], FunctionInvocationContext], Awaitable[Any]]
"""Calls a tool or a prompt by its name on the server, with its arguments and the context of the call."""

NEVER_SENT = frozenset(
    {"chat_options", "tools", "tool_choice", "session", "thread", "conversation_id", "options", "response_format"}
)
"""Arguments of a run that are meant for this library and are not sent to a server."""

_ORIGINAL, _NORMALIZED = "_mcp_remote_name", "_mcp_normalized_name"
_NAME_CHARS = 100


async def read_pages(
    server: str, kind: Kind | Literal["resources"], limits: MCPLimits, get_page: Callable[[Any], Awaitable[Any]]
) -> list[dict[str, Any]]:
    """Return the entries of all pages of a list; raise `MCPLimitError` if it exceeds the limits.

    `get_page` requests one page; its argument is None for the first page.
    """
    entries: list[dict[str, Any]] = []
    cursors: set[str | None] = set()
    cursor: str | None = None
    most = getattr(limits, f"max_{kind}")
    while cursor not in cursors:  # a server that repeats a cursor would never end
        cursors.add(cursor)
        if len(cursors) > limits.max_pages:
            raise MCPLimitError(server, f"a list of {kind} with too many pages", "max_pages", limits.max_pages)
        page = wire(await get_page(make("PaginatedRequestParams", {"cursor": cursor}) if cursor else None))
        entries += page.get(kind) or ()
        if len(entries) > most:
            raise MCPLimitError(server, f"a list of more than {most:,} {kind}", f"max_{kind}", most)
        cursor = page.get("nextCursor")
        if cursor is None:
            return entries
    logger.warning("The pages of the %s of the server %s repeat; the rest is ignored.", kind, server)
    return entries


class Listed(NamedTuple):
    """A tool or prompt: its names, its entry in the server's list, and the function that calls it."""

    name: ToolName
    listing: dict[str, Any]
    function: FunctionTool


class Listings:
    """The tools and prompts of one server as functions. Each function calls `answer`.

    Attributes:
        address: The location of the server, set once it is known.
    """

    def __init__(
        self, server: str, prefix: str, runtime_arguments: Collection[str], limits: MCPLimits, answer: Answer
    ) -> None:
        self._server, self._prefix = server, prefix
        self._runtime_arguments, self._limits, self._answer = runtime_arguments, limits, answer
        self.address = server
        self._listed: dict[Kind, dict[str, Listed]] = {"tools": {}, "prompts": {}}

    def functions(self, allowed: Collection[str] | None) -> list[FunctionTool]:
        """Return the functions of the allowed tools and prompts; `None` allows all."""
        listed = [one for kind in self._listed.values() for one in kind.values()]
        return [one.function for one in listed if allowed is None or one.name.is_in(allowed)]

    def listing_of(self, kind: Kind, name: str) -> Mapping[str, Any]:
        """Return the entry of a tool or prompt in the server's list; empty if there is none."""
        listed = self._listed[kind].get(name)
        return {} if listed is None else listed.listing

    def update(self, kind: Kind, listings: Iterable[dict[str, Any]], approval: Approval) -> None:
        """Replace a list. Unchanged entries keep their function object; a warning is logged for each unusable entry."""
        tools = {one.name.exposed for one in self._listed["tools"].values()} if kind == "prompts" else set[str]()
        taken, found = set(tools), dict[str, Listed]()
        for listing in listings:
            name = tool_name_of(str(listing["name"]), self._prefix)
            if name.exposed in tools:  # a model sees tools and prompts in one list of names
                name = name._replace(exposed=f"{name.exposed}_prompt")
            if name.exposed in taken:
                logger.warning("The server %s has two %s named %r; only the first is used.",
                               self._server, kind, name.exposed)  # fmt: skip
                continue
            taken.add(name.exposed)
            previous = self._listed[kind].get(name.original)
            try:
                is_known = previous is not None and (previous.name, previous.listing) == (name, listing)
                found[name.original] = previous if previous and is_known else self._list(kind, name, listing, approval)
            except (TypeError, ValueError, MCPLimitError) as error:
                shown = plain_line(name.original, _NAME_CHARS)
                reason = f"The {kind.removesuffix('s')} {shown!r} of the server {self._server} is ignored: {error}"
                logger.warning("%s", reason)
        self._listed[kind] = found
        if kind == "tools":  # the names of prompts depend on the names of tools
            self.update("prompts", [one.listing for one in self._listed["prompts"].values()], approval)

    def _list(self, kind: Kind, name: ToolName, listing: dict[str, Any], approval: Approval) -> Listed:
        if not name.exposed:
            message = "Its name is empty."
            raise ValueError(message)
        schema = _prompt_schema(listing) if kind == "prompts" else dict(listing.get("inputSchema") or {})
        most = self._limits.max_schema_bytes
        if measure(schema, most, self._limits.max_depth)[0] > most:
            raise MCPLimitError(self._server, "a schema that is too large", "max_schema_bytes", most)
        description, longest = str(listing.get("description") or ""), self._limits.max_description_chars
        if len(description) > longest:
            logger.warning("The description of %r of the server %s is shortened to max_description_chars=%s.",
                           name.original, self._server, longest)  # fmt: skip
            description = f"{description[: int(longest)]}…"
        function = FunctionTool(
            self._caller(kind, name, schema),
            name=name.exposed,
            description=description,
            approval_mode=approval_of(name, approval),
            input_model=_without(schema, self._runtime_arguments),
            additional_properties={
                _ORIGINAL: name.original,
                _NORMALIZED: name.normalized,
                MCP_SERVER: f"{self._server} at {self.address}",
            },
        )
        return Listed(name, listing, function)

    def _caller(self, kind: Kind, name: ToolName, schema: Mapping[str, Any]) -> Callable[..., Awaitable[Any]]:
        declared = schema.get("properties") or ()
        sent = [key for key in self._runtime_arguments if key in declared]

        async def call(_invocation: FunctionInvocationContext, **arguments: Any) -> Any:
            runtime = _invocation.kwargs
            supplied = {key: runtime[key] for key in sent if key in runtime}
            supplied = {key: value.get_secret_value() if is_secret(value) else value for key, value in supplied.items()}
            return await self._answer(kind, name.original, {**arguments, **supplied}, _invocation)

        return call


def _without(schema: dict[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    """Return the schema for the model, without the arguments that the run supplies."""
    if schema.get("type") == "object":
        schema = {**schema, "properties": dict(schema.get("properties") or {})}
    if hidden and isinstance(schema.get("properties"), dict):
        schema["properties"] = {key: value for key, value in schema["properties"].items() if key not in hidden}
        if isinstance(schema.get("required"), list):
            schema["required"] = [key for key in schema["required"] if key not in hidden]
    return schema


def _prompt_schema(listing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a prompt's arguments, which are all strings."""
    arguments = listing.get("arguments") or ()
    properties = {
        argument["name"]: {
            "type": "string",
            **({"description": argument["description"]} if argument.get("description") else {}),
        }
        for argument in arguments
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [argument["name"] for argument in arguments if argument.get("required")],
    }
