"""An agent as a tool of another one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal

from agentbench.agents.agent.inner_conversation import continued, conversation, with_conversation
from agentbench.agents.middleware.contexts import INNER_APPROVALS, FunctionInvocationContext
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse

if TYPE_CHECKING:
    from agentbench.messages.update import AgentResponseUpdate


ARGUMENT = "task"
"""Name of the argument that an agent gets as a tool."""


def agent_as_tool(  # noqa: PLR0913 - the given signature
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
    """Any agent as a tool; the arguments are those of `BaseAgent.as_tool`.

    Raises:
        TypeError: If `agent` is no agent.
        ValueError: If neither it nor the call says what the tool is called.
    """
    check_is_agent(agent)
    tool_name = name or tool_name_of(agent)

    async def run_agent(context: FunctionInvocationContext, **arguments: Any) -> str:
        extra: dict[str, Any] = {}
        # The session among them is the one of the calling run; whether it goes along is asked for separately.
        for_tools = {key: value for key, value in context.kwargs.items() if key != "session"}
        if for_tools:
            extra["function_invocation_kwargs"] = for_tools
        if propagate_session and context.session is not None:
            extra["session"] = context.session
        answered = context.metadata.get(INNER_APPROVALS)
        told = [Message("user", arguments[arg_name])] if answered is None else continued(answered)
        response = await run_streamed(agent, told if answered else arguments[arg_name], stream_callback, **extra)
        if response.user_input_requests:
            kept = () if "session" in extra else conversation(told, response)
            raise UserInputRequiredException(with_conversation(response.user_input_requests, kept))
        return response.text

    explained = arg_description or f"Task for {tool_name}"
    return FunctionTool(
        run_agent,
        name=tool_name,
        description=description or agent.description or "",
        approval_mode=approval_mode,
        input_model={
            "type": "object",
            "properties": {arg_name: {"type": "string", "description": explained}},
            "required": [arg_name],
            "additionalProperties": False,
        },
    )


async def run_streamed(
    agent: Any, messages: Any, on_update: Callable[[Any], Awaitable[None] | None] | None = None, **extra: Any
) -> AgentResponse[Any]:
    """Run an agent, ours or another library's, handing out its updates on the way.

    A stream that is not ours may be any async iterable, or an awaitable of one; its updates are folded.
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
    """Refuse what cannot be run as an agent.

    Raises:
        TypeError: If a member of `SupportsAgentRun` is missing.
    """
    if isinstance(agent, SupportsAgentRun):
        return
    wanted = ("id", "name", "description", "run", "create_session", "get_session")
    missing = ", ".join(name for name in wanted if not hasattr(agent, name))
    message = f"{agent!r} is no agent: it lacks {missing}. Expected an object with the members of SupportsAgentRun."
    raise TypeError(message)


def tool_name_of(agent: Any) -> str:
    """The name of an agent in letters, digits and underscores, as models want it for tools.

    Raises:
        ValueError: If the agent has no name.
    """
    if not agent.name:
        message = f"{agent!r} has no name for its tool. Give the agent a name, or as_tool() one: as_tool(name='...')."
        raise ValueError(message)
    name = re.sub(r"[^0-9A-Za-z]+", "_", agent.name).strip("_") or "agent"
    return f"_{name}" if name[0].isdigit() else name
