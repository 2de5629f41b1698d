"""Standing approvals: a person's decision that calls of a tool need no further approval in a session.

They are stored in the state of the session, each with a signature. The key is in the configuration folder of the user,
so an approval that was edited, or that another user or another session brought, has no valid signature.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, overload

from agentbench._display import Displayable, drawn_by
from agentbench._files.user_key import read_user_key, user_key
from agentbench._secrets import mask_secrets
from agentbench.agents.tools.function_tool import MCP_SERVER, FunctionTool
from agentbench.messages.content.content import ALWAYS_APPROVE, Content

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession

STANDING_APPROVALS: Final = "tool_approvals"
"""Key in the state of a session: a dictionary for each standing approval."""

Scope: TypeAlias = Literal["tool", "arguments"]


@dataclass(frozen=True)
class ToolApprovalRule:
    """A standing approval of a tool, or of a tool with certain arguments; listed by `session.approvals`.

    Attributes:
        tool_name: The name of the tool.
        server: The MCP server of the tool: its name and address. `None` for a tool of this process.
        schema: A digest of what the model is told about the tool: name, description and schema of the arguments.
        arguments: The approved arguments; `None` approves all.
        is_active: Whether the signature is valid. An inactive approval approves nothing until it is confirmed.

    Example:
        for rule in session.approvals:
            print(rule)
    """

    tool_name: str
    server: str | None
    schema: str
    arguments: Mapping[str, Any] | None = None
    is_active: bool = True
    signature: str | None = field(default=None, repr=False)

    @property
    def arguments_text(self) -> str:
        """The approved arguments as JSON with secrets masked, or `any arguments`."""
        if self.arguments is None:
            return "any arguments"
        return json.dumps(mask_secrets(self.arguments), ensure_ascii=False, default=str)

    def __str__(self) -> str:
        server = "" if self.server is None else f" of the server {self.server}"
        state = "" if self.is_active else " (inactive)"
        return f"{self.tool_name}{server} with {self.arguments_text}{state}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def covers(self, tool: FunctionTool, arguments: Mapping[str, Any]) -> bool:
        """Return whether this approval, if it is active, approves a call of the tool."""
        return (
            {"name": self.tool_name, "server": self.server, "schema": self.schema} == identity_of(tool)
            and (self.arguments is None or _canonical(self.arguments) == _canonical(arguments))
        )  # fmt: skip


@drawn_by("agentbench.notebook.cards.session:approvals")
class ToolApprovalState(Displayable):
    """The standing approvals of a session, as `session.approvals`. Iterate over it to list them.

    A person creates them by answering an approval request with `create_always_approve_tool_response` or
    `create_always_approve_tool_with_arguments_response`, if the agent has a `ToolApprovalMiddleware`.

    Args:
        session: The session whose state stores the approvals.

    Example:
        >>> session = AgentSession()
        >>> session.approvals
        ToolApprovalState(no approvals)
    """

    def __init__(self, session: AgentSession) -> None:
        self._session = session

    @property
    def rules(self) -> tuple[ToolApprovalRule, ...]:
        """The standing approvals, oldest first."""
        entries = self._entries()
        if not entries:
            return ()
        try:
            key = read_user_key()
        except OSError:  # without a key, no signature is valid
            key = None
        return tuple(rule for entry in entries if (rule := self._read(entry, key)) is not None)

    def __iter__(self) -> Iterator[ToolApprovalRule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def approves(self, tool: FunctionTool, arguments: Mapping[str, Any]) -> bool:
        """Return whether an active approval covers a call of the tool with these arguments."""
        return any(rule.is_active and rule.covers(tool, arguments) for rule in self.rules)

    def revoke(self, approval: ToolApprovalRule | str | None = None) -> None:
        """Remove standing approvals, so that the next call asks again.

        Args:
            approval: One of the listed approvals, or the name of a tool; by default all are removed.

        Raises:
            ValueError: There is no such approval; the error lists the tools with approvals.
        """
        revoked = self._chosen(approval)
        self._write([rule for rule in self.rules if rule not in revoked])

    def confirm(self, approval: ToolApprovalRule | str | None = None) -> None:
        """Make inactive approvals active, after a person has looked at them.

        Args:
            approval: One of the listed approvals, or the name of a tool; by default all are confirmed.

        Raises:
            ValueError: There is no such approval; the error lists the tools with approvals.
            OSError: The configuration folder of the user cannot be written.
        """
        confirmed = self._chosen(approval)
        if confirmed:
            key = user_key()
            self._write([self._signed(rule, key) if rule in confirmed else rule for rule in self.rules])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'; '.join(map(str, self.rules)) or 'no approvals'})"

    def _chosen(self, approval: ToolApprovalRule | str | None) -> list[ToolApprovalRule]:
        rules = self.rules
        chosen = [rule for rule in rules if approval is None or approval in (rule, rule.tool_name)]
        if approval is not None and not chosen:
            listed = ", ".join(sorted({repr(rule.tool_name) for rule in rules})) or "none"
            message = f"The session has no approval {approval!r}. Tools with standing approvals: {listed}."
            raise ValueError(message)
        return chosen

    def _entries(self) -> list[Any]:
        stored = self._session.state.get(STANDING_APPROVALS)
        return stored if isinstance(stored, list) else []

    def _read(self, entry: Any, key: bytes | None) -> ToolApprovalRule | None:
        """Return the approval of an entry in the state, or None if it has another form."""
        match entry:
            case {
                "tool": str(tool_name),
                "server": str() | None as server,
                "schema": str(schema),
                "arguments": dict() | None as arguments,
                "signature": str() | None as signature,
            }:
                rule = ToolApprovalRule(tool_name, server, schema, arguments, is_active=False, signature=signature)
                expected = None if key is None else self._signature(rule, key)
                if expected is None or signature is None or not hmac.compare_digest(expected, signature.encode()):
                    return rule
                return ToolApprovalRule(tool_name, server, schema, arguments, signature=signature)
        return None

    def _signed(self, rule: ToolApprovalRule, key: bytes) -> ToolApprovalRule:
        signature = self._signature(rule, key).decode()
        return ToolApprovalRule(rule.tool_name, rule.server, rule.schema, rule.arguments, signature=signature)

    def _signature(self, rule: ToolApprovalRule, key: bytes) -> bytes:
        facts = [STANDING_APPROVALS, self._session.session_id, rule.tool_name, rule.server, rule.schema, rule.arguments]
        return hmac.new(key, _canonical(facts).encode(), hashlib.sha256).hexdigest().encode()

    def _write(self, rules: list[ToolApprovalRule]) -> None:
        # A new list, because checkpoints and copies of the state may hold the old one.
        state = self._session.state
        state[STANDING_APPROVALS] = [
            {
                "tool": rule.tool_name,
                "server": rule.server,
                "schema": rule.schema,
                "arguments": rule.arguments,
                "signature": rule.signature,
            }
            for rule in rules
        ]
        if not rules:
            del state[STANDING_APPROVALS]

    def _add(self, tool: FunctionTool, arguments: Mapping[str, Any] | None) -> None:
        """Store a person's approval of all calls of a tool, or of those with these arguments."""
        plain = None if arguments is None else json.loads(_canonical(arguments))
        identity = identity_of(tool)
        unsigned = ToolApprovalRule(identity["name"], identity["server"], identity["schema"], plain)
        rule = self._signed(unsigned, user_key())
        self._write([*(known for known in self.rules if known != rule), rule])


class ToolIdentity(TypedDict):
    """What distinguishes a tool from others, as `ToolApprovalRule` describes it."""

    name: str
    server: str | None
    schema: str


@overload
def identity_of(tool: FunctionTool) -> ToolIdentity: ...


@overload
def identity_of(tool: object) -> ToolIdentity | None: ...


def identity_of(tool: object) -> ToolIdentity | None:
    """Return what a person approves with a tool: its name, its server and a digest of what the model is told about it.

    Tools of other libraries have no identity.
    """
    if not isinstance(tool, FunctionTool):
        return None
    schema = hashlib.sha256(_canonical(tool.to_json_schema_spec()).encode()).hexdigest()
    return {"name": tool.name, "server": (tool.additional_properties or {}).get(MCP_SERVER), "schema": schema}


def _canonical(value: Any) -> str:
    """Return JSON that is equal for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)


# ---- the answers of a person


def create_always_approve_tool_response(request: Content, *, arguments: Mapping[str, Any] | None = None) -> Content:
    """Make the answer that approves a request and all later calls of its tool in the session.

    The approval is kept if the agent has a `ToolApprovalMiddleware` and runs in a session that contains the request;
    otherwise the answer approves only this call. Put it into a message of the role `user` in the input of a run.

    Args:
        request: The approval request.
        arguments: Complete arguments of this call, replacing those of the model.

    Raises:
        ContentError: The content is not a complete approval request.

    Example:
        session = agent.create_session()
        response = await agent.run("Tidy up.", session=session)
        answers = [create_always_approve_tool_response(request) for request in response.user_input_requests]
        await agent.run(Message("user", answers), session=session)
    """
    return always_response(request, "tool", arguments)


def create_always_approve_tool_with_arguments_response(
    request: Content, *, arguments: Mapping[str, Any] | None = None
) -> Content:
    """Make the answer that approves a request and all later calls of its tool with the same arguments in the session.

    Otherwise like `create_always_approve_tool_response`.

    Args:
        request: The approval request.
        arguments: Complete arguments, replacing those of the model; the approval is for these.

    Raises:
        ContentError: The content is not a complete approval request.

    Example:
        session = agent.create_session()
        response = await agent.run("Tidy up.", session=session)
        answers = [
            create_always_approve_tool_with_arguments_response(request) for request in response.user_input_requests
        ]
        await agent.run(Message("user", answers), session=session)
    """
    return always_response(request, "arguments", arguments)


def always_response(request: Content, scope: Scope, arguments: Mapping[str, Any] | None = None) -> Content:
    """Make the answer that approves a request, and all later calls of its tool in a scope."""
    answer = request.to_function_approval_response(True, arguments=arguments)
    answer.additional_properties[ALWAYS_APPROVE] = scope
    return answer
