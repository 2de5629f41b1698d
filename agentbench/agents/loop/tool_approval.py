"""`ToolApprovalMiddleware`: runs of an agent observe the standing approvals of their session, and add to them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Collection
from contextvars import ContextVar
from typing import Any, TypeVar

from agentbench.agents.middleware.contexts import AgentContext, AgentMiddleware, CallNext
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.sessions.tool_approvals import identity_of
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.content.content import ALWAYS_APPROVE, Content
from agentbench.messages.inputs import normalize_messages

logger = logging.getLogger("agentbench")

_ResultT = TypeVar("_ResultT")

_calling: ContextVar[frozenset[str]] = ContextVar("agentbench_sessions_calling_tools", default=frozenset())
"""The ids of the sessions with standing approvals whose runs are calling the current tool."""
_calling_threads: dict[str, list[int]] = {}
"""By the id of a session, the threads whose runs are calling tools. A thread that a tool starts has no context."""
_changing = threading.Lock()


class ToolApprovalMiddleware(AgentMiddleware):
    """Lets a person approve a tool once for the rest of a session, with any arguments or with the same.

    An answer made by `create_always_approve_tool_response` or `create_always_approve_tool_with_arguments_response` to a
    request of the session approves the call, and is kept in the state of the session. Later calls that the approval
    covers are made without a request. It covers no call of a tool whose name, description, schema or MCP server
    differs, and no call of an agent that a tool of the session runs, or that runs in another thread during such a call.
    Beside a call that needs approval, the `approval_scope` of the configuration decides whether a covered call waits
    too. If the tool changes between the request and the answer, the answer is not kept, and the call asks again. Forms
    have a button for each of the two answers. `session.approvals` lists and revokes the approvals.

    The approvals are signed with a key in the configuration folder of the user, which `AGENTBENCH_CONFIG_DIR` changes.
    A session that was edited, or that comes from another user, asks again until `session.approvals.confirm()`.

    Without a session, and for answers to requests in the input of the run, an approval is valid only once.

    Example:
        agent = Agent(client, tools=[delete_file], middleware=[ToolApprovalMiddleware()])
        session = agent.create_session()
        response = await agent.run("Tidy up.", session=session)
        answers = [create_always_approve_tool_response(request) for request in response.user_input_requests]
        await agent.run(Message("user", answers), session=session)
        print(session.approvals)
        session.approvals.revoke()
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def process(self, context: AgentContext, call_next: CallNext) -> None:
        """Pass the standing approvals of the session to the run."""
        session = context.session
        if isinstance(session, AgentSession) and not _is_called_by_a_tool(session.session_id):
            contents = (content for message in normalize_messages(context.messages) for content in message.contents)
            in_input = {content.id for content in contents if content.type == "function_approval_request"}
            context.client_kwargs["standing_approvals"] = StandingApprovals(session, in_input)
        await call_next()


class StandingApprovals:
    """The standing approvals of a run's session; answers to the requests `in_input` are not kept."""

    def __init__(self, session: AgentSession, in_input: Collection[str | None]) -> None:
        self._session, self._in_input = session, in_input

    def approves(self, tool: Any, call: Content) -> bool:
        """Return whether a call needs no request."""
        return isinstance(tool, FunctionTool) and self._session.approvals.approves(tool, call.parse_arguments() or {})

    def add(self, tool: Any, call: Content, answer: Content, asked: Any) -> None:
        """Keep the approval of a person who answered so; if that is impossible, the answer approves only this call.

        `asked` is the identity of the tool in the request: a person approves the tool that the request showed.
        """
        scope = answer.additional_properties.get(ALWAYS_APPROVE)
        if scope not in ("tool", "arguments") or answer.id in self._in_input or not isinstance(tool, FunctionTool):
            return
        if asked != identity_of(tool):
            logger.warning("The approval of the tool %r is valid only once, because its request is for another tool "
                           "or does not contain the identity of the tool.", tool.name)  # fmt: skip
            return
        arguments = None if scope == "tool" else call.parse_arguments() or {}
        try:
            self._session.approvals._add(tool, arguments)  # noqa: SLF001 - only the answer of a person adds one
        except OSError as error:
            logger.warning("The approval of the tool %r is valid only once, because it cannot be signed: %s",
                           tool.name, error)  # fmt: skip

    async def around(self, calls: Awaitable[_ResultT]) -> _ResultT:
        """Make calls; agents inside them neither use nor add approvals of this session."""
        session_id, thread = self._session.session_id, threading.get_ident()
        token = _calling.set(_calling.get() | {session_id})
        with _changing:
            _calling_threads.setdefault(session_id, []).append(thread)
        try:
            return await calls
        finally:
            _calling.reset(token)
            with _changing:
                _calling_threads[session_id].remove(thread)
                if not _calling_threads[session_id]:
                    del _calling_threads[session_id]


def _is_called_by_a_tool(session_id: str) -> bool:
    """Return whether a tool of a run in the session has, or may have, begun the current run."""
    here = threading.get_ident()
    return session_id in _calling.get() or any(thread != here for thread in _calling_threads.get(session_id, ()))
