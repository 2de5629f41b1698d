"""`FunctionalWorkflowAgent`: a workflow function as an agent."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentbench.messages.content.content import Content
from agentbench.messages.content.fields import FIELDS, KINDS
from agentbench.messages.message import Message
from agentbench.orchestrations.workflow_turn import BaseWorkflowAgent
from agentbench.workflows.functional.functional_workflow import FunctionalWorkflow

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage

_MESSAGE_KEYS = frozenset({"type", *inspect.signature(Message).parameters})
_CONTENT_KEYS = frozenset({"type", "annotations", "additional_properties", *FIELDS})


class FunctionalWorkflowAgent(BaseWorkflowAgent[FunctionalWorkflow]):
    """A workflow function as an agent; usually created by `as_agent()` on a `@workflow` function.

    The function gets the text of the messages, or the messages themselves if its parameter is annotated with `Message`.
    Other values are converted to text, dictionaries too unless they have the form of `Message.to_dict()` or
    `Content.to_dict()`.
    Its result becomes an assistant message; its requests become requests to approve, as for `WorkflowAgent`.

    Args:
        workflow: The function.
        id: The id of the agent; by default `FunctionalWorkflowAgent_<name>`.
        name: The name of the agent; by default the workflow's.
        description: A description; by default the workflow's.
        context_providers: Called around each run.
        settings: Arguments of `BaseAgent`.

    Example:
        >>> @workflow
        ... async def publish(draft: str, ctx: RunContext) -> str:
        ...     return draft if await ctx.request_info(draft, bool) else "rejected"
        >>> agent = publish.as_agent()
        >>> response = await agent.run("Hello")
        >>> response = await agent.run(responses={request_id: True for request_id in agent.pending_requests})
    """

    def __init__(
        self,
        workflow: FunctionalWorkflow,
        *,
        id: str | None = None,  # noqa: A002 - the public name
        name: str | None = None,
        description: str | None = None,
        context_providers: Any = None,
        **settings: Any,
    ) -> None:
        name = name or workflow.name
        super().__init__(
            workflow,
            id=id or f"FunctionalWorkflowAgent_{name}",
            name=name,
            description=description or workflow.description,
            context_providers=context_providers,
            **settings,
        )

    def input_of(self, messages: list[Message]) -> Any:
        """Return the function's input for messages: the messages, their text, or nothing if it takes no input."""
        parameter = self.workflow.parameter
        if parameter is None:
            return None
        takes_messages = re.search(r"\bMessage\b", str(parameter.annotation)) is not None
        return messages if takes_messages else "\n".join(message.text for message in messages)

    def run(  # noqa: PLR0913 - the published signature
        self,
        messages: Any = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        tools: Any = None,
    ) -> Any:
        """Respond to pending requests, continue from a checkpoint, or call the function with new messages.

        Args:
            messages: The input; while requests are pending, their responses, unless `responses` has them.
            stream: Return a stream of updates instead of an awaitable response.
            session: The conversation to which this turn belongs.
            responses: Responses by request id; may be combined with a checkpoint.
            checkpoint_id: Continue from this checkpoint.
            checkpoint_storage: The storage to load checkpoints from and save them to in this run.
            function_invocation_kwargs: Ignored by functions, with a warning.
            client_kwargs: Ignored by functions, with a warning.
            tools: Tools for agents that the function calls, in this run; as in `FunctionalWorkflow.run`.

        Raises:
            ValueError: When awaited: no response belongs to a pending request.
            AgentInvalidResponseException: When awaited: as for `WorkflowAgent.run()`.
        """
        return self.run_turn(
            _as_texts(messages),
            stream=stream,
            session=session,
            responses=responses,
            checkpoint_id=checkpoint_id,
            checkpoint_storage=checkpoint_storage,
            function_invocation_kwargs=function_invocation_kwargs,
            client_kwargs=client_kwargs,
            tools=tools,
        )


def _as_texts(messages: Any) -> Any:
    """Return the input of an agent, in which values that are no messages are texts."""
    if messages is None or isinstance(messages, (str, Message, Content)):
        return messages
    if isinstance(messages, Mapping):
        return messages if _is_serialized(messages) else str(messages)
    if isinstance(messages, Iterable) and not isinstance(messages, bytes):
        return [_as_texts(each) for each in messages]
    return str(messages)


def _is_serialized(value: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary has the form of a message or a content; one key of the same name is not enough."""
    keys, kind = value.keys(), value.get("type")
    if "role" in keys and not keys.isdisjoint(("contents", "content", "text")):
        return keys <= _MESSAGE_KEYS
    return isinstance(kind, str) and kind in KINDS and keys <= _CONTENT_KEYS
