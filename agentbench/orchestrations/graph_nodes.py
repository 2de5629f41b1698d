"""`AgentTask`: an agent as a node of a state graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from functools import partial
from typing import Any

from agentbench.agents.agent.as_tool import resolved_inputs
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.messages.content.content import HANDOFF, Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_node import call_agent, message_of_answers, run_kwargs
from agentbench.stategraph.command import Command
from agentbench.stategraph.interrupts import ask_all, current_questions
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.prebuilt.tools.handoff import targets_of
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import WorkflowContext


class AgentTask:
    """Runs an agent on the conversation of a state graph, and adds its messages to it.

    If the agent calls a tool of `create_handoff_tool`, the graph goes on at the node of that tool.

    Its requests to a person, for example to approve a tool call, are interrupts; their answers are `True`, `False`, or
    the content that answers the request.
    """

    may_ask = True

    def __init__(self, agent: SupportsAgentRun) -> None:
        self.agent = agent
        self.__doc__ = agent.description

    @property
    def handoffs(self) -> list[str]:
        """The nodes to which the agent's tools of `create_handoff_tool` lead."""
        options = getattr(self.agent, "default_options", None)
        return targets_of(options.get("tools") or ()) if isinstance(options, Mapping) else []

    async def __call__(self, state: Any, fields: StateFields, ctx: WorkflowContext[Any, Any]) -> list[Any]:
        """Return the messages of the agent's answer, and commands for its handoffs.

        A task that continues after a question calls no model twice.
        """
        done = current_questions().done
        said: list[Message] = done.get("said", [])
        requests: dict[str, Content] = done.get("requests", {})
        on_update = partial(_show, ctx=ctx) if ctx.is_streaming() else None
        while True:
            answers = _message_of_answers(requests) if requests else None
            if answers is not None:
                said = [*said, answers]
            context = [*fields.messages_in(state), *said]
            reply = await call_agent(self.agent, context, ctx, run_kwargs(self, ctx), on_update, answers=answers)
            _note_usage(reply.response)
            said = [*resolved_inputs(said, reply.response), *reply.response.messages]
            done["said"], done["requests"] = said, reply.requests
            requests = reply.requests
            if not requests:
                said = _with_own_ids(said, fields.messages_in(state))
                return [said, *handoffs] if (handoffs := _handoffs_in(said)) else said


def _with_own_ids(messages: Iterable[Message], before: Iterable[Message]) -> list[Message]:
    """Return messages without ids that other messages have, because a conversation drops messages of a known id.

    Clients number their messages, so those of another client, or of another process, have the same ids. A message that
    is repeated, as by a workflow whose output is its conversation, keeps its id.
    """
    known, found = {one.message_id: one for one in before}, list[Message]()
    for message in messages:
        other = known.setdefault(message.message_id, message)
        if message.message_id is None or _facts(other) == _facts(message):
            found.append(message)
        else:
            found.append(renamed := copy(message))  # the agent may keep the original
            renamed.message_id = None
    return found


def _facts(message: Message) -> tuple[Any, ...]:
    return message.role, message.author_name, message.contents


def _handoffs_in(messages: Iterable[Message]) -> list[Command]:
    results = (one for message in messages for one in message.contents if one.type == "function_result")
    targets = dict.fromkeys(result.additional_properties.get(HANDOFF) for result in results)
    return [Command(goto=target) for target in targets if target is not None]


def _message_of_answers(requests: dict[str, Content]) -> Message:
    """Ask a person, and return the answers in a message."""
    answers = ask_all({key: {"value": request, "reason": request.type} for key, request in requests.items()})
    contents = [
        requests[key].to_function_approval_response(answer) if isinstance(answer, bool) else answer
        for key, answer in answers.items()
    ]
    for key, content in zip(requests, contents, strict=True):
        if not (isinstance(content, Content) and requests[key].is_answered_by(content)):
            msg = f"The answer to {requests[key].type} {key!r} is {content!r}. {requests[key].answer_hint}"
            raise ValueError(msg)
    return message_of_answers(contents)


async def _show(update: AgentResponseUpdate, *, ctx: WorkflowContext[Any, Any]) -> None:
    """Emit a piece of the answer to observers of the run."""
    piece = Message(update.role or "assistant", update.contents, message_id=update.message_id, delta=True)
    await ctx.add_event(WorkflowEvent("custom", piece, executor_id=ctx.executor_id))


def _note_usage(response: AgentResponse) -> None:
    """Store the token usage of a response in its last message, where results of graphs count it."""
    used = response.usage_details
    if used and response.messages:
        response.messages[-1].usages = {
            "prompt_tokens": used.get("input_token_count") or 0,
            "completion_tokens": used.get("output_token_count") or 0,
            "total_tokens": used.get("total_token_count") or 0,
        }
