"""An agent as a tool of another one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Literal

from agentbench.agents.history.pending_calls import replace_messages
from agentbench.agents.loop.call import changed
from agentbench.agents.middleware.contexts import INNER_APPROVALS, FunctionInvocationContext, InnerApprovals
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse

if TYPE_CHECKING:
    from agentbench.messages.update import AgentResponseUpdate


ARGUMENT: Final = "task"
"""The default name of the argument of the tool."""

_KEY: Final = "inner_conversation"


def agent_as_tool(  # noqa: PLR0913 - the public signature
    agent: Any,
    *,
    name: str | None = None,
    description: str | None = None,
    arg_name: str = ARGUMENT,
    arg_description: str | None = None,
    approval_mode: Literal["always_require", "never_require"] = "never_require",
    stream_callback: Callable[[AgentResponseUpdate], Awaitable[None] | None] | None = None,
    propagate_session: bool = False,
) -> FunctionTool:
    """Return any agent as a tool; see `BaseAgent.as_tool`.

    An agent as a tool remembers nothing between two calls. If it asks a person, its conversation until then travels in
    the request, which is stored in the conversation of the calling agent; with the answer it continues from there.
    """
    check_is_agent(agent)
    tool_name = name or tool_name_of(agent)

    async def run_agent(context: FunctionInvocationContext, **arguments: Any) -> str:
        extra: dict[str, Any] = {}
        # The session among them is that of the calling run, which `propagate_session` decides about.
        for_tools = {key: value for key, value in context.kwargs.items() if key != "session"}
        if for_tools:
            extra["function_invocation_kwargs"] = for_tools
        if propagate_session and context.session is not None:
            extra["session"] = context.session
        approvals = context.metadata.get(INNER_APPROVALS)
        messages = [Message("user", arguments[arg_name])] if approvals is None else _resume_messages(approvals)
        response = await run_streamed(agent, messages if approvals else arguments[arg_name], stream_callback, **extra)
        if response.user_input_requests:
            requests = response.user_input_requests
            if "session" not in extra:
                requests = _with_conversation(requests, messages, response)
            raise UserInputRequiredException(requests)
        return response.text

    return FunctionTool(
        run_agent,
        name=tool_name,
        description=description or agent.description or "",
        approval_mode=approval_mode,
        input_model={
            "type": "object",
            "properties": {arg_name: {"type": "string", "description": arg_description or f"Task for {tool_name}"}},
            "required": [arg_name],
            "additionalProperties": False,
        },
    )


def _with_conversation(
    requests: Iterable[Content], messages: Sequence[Message], response: AgentResponse[Any]
) -> list[Content]:
    """Return copies of requests that hold the conversation of an agent: its input for the model, and its answer."""
    replaced = getattr(response.raw_representation, "_resolved_inputs", None)
    conversation = [*replace_messages(messages, replaced), *response.messages]
    written = [message.to_dict() for message in conversation]
    copies = []
    for request in requests:
        copied = changed(request)
        copied.additional_properties[_KEY] = written
        copies.append(copied)
    return copies


def _resume_messages(approvals: InnerApprovals) -> Sequence[Message]:
    """Return the input of an agent after a person answered: its conversation and the answers.

    Where a session remembers the conversation, only the requests go before the answers.
    """
    written = approvals.requests[0].additional_properties.get(_KEY)
    if written:
        before = [Message.from_dict(message) for message in written]
    else:
        before = [Message("assistant", [changed(request, call_id=None) for request in approvals.requests])]
    return [*before, Message("user", list(approvals.answers))]


async def run_streamed(
    agent: Any, messages: Any, on_update: Callable[[Any], Awaitable[None] | None] | None = None, **extra: Any
) -> AgentResponse[Any]:
    """Return the response of a streamed run, and call `on_update` with each update.

    The stream of an agent of another library may be any async iterable, or an awaitable of one; its updates are folded.
    """
    stream = agent.run(messages, stream=True, **extra)
    if not hasattr(stream, "__aiter__"):
        stream = await stream
    updates = []
    try:
        async for update in stream:
            updates.append(update)
            if on_update is not None and isawaitable(pending := on_update(update)):
                await pending
        if hasattr(stream, "get_final_response"):
            final: AgentResponse[Any] = await stream.get_final_response()
            return final
    finally:
        if hasattr(stream, "aclose"):
            await stream.aclose()
    return AgentResponse.from_updates(updates)


def check_is_agent(agent: Any) -> None:
    """Raise a `TypeError` if a member of `SupportsAgentRun` is missing."""
    if isinstance(agent, SupportsAgentRun):
        return
    members = ("id", "name", "description", "run", "create_session", "get_session")
    missing = ", ".join(name for name in members if not hasattr(agent, name))
    message = f"{agent!r} is no agent: it lacks {missing}. Expected an object with the members of SupportsAgentRun."
    raise TypeError(message)


def tool_name_of(agent: Any) -> str:
    """Return the name of an agent in letters, digits and underscores, as services require for tools."""
    if not agent.name:
        message = f"{agent!r} has no name for its tool. Give the agent a name, or as_tool() one: as_tool(name='...')."
        raise ValueError(message)
    name = re.sub(r"[^0-9A-Za-z]+", "_", agent.name).strip("_") or "agent"
    return f"_{name}" if name[0].isdigit() else name
