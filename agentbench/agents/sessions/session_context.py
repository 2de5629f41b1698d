"""The context of one agent run, extended by context providers, with the origin of each addition."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from agentbench.agents.middleware.sorting import flat_middleware, sort_middleware
from agentbench.agents.sessions.agent_protocol import provider_id
from agentbench.exceptions import MiddlewareException
from agentbench.messages.content.addition import mend_messages
from agentbench.messages.message import Message, copy_messages

if TYPE_CHECKING:
    from agentbench.messages.response import AgentResponse, ChatResponse

UNNAMED: Final = "UnnamedAgent"
"""Author of messages of agents without a name."""

ATTRIBUTION: Final = "_attribution"
"""Key in the additional properties of a message."""

INJECTED: Final = "_injected"
"""Key in the additional properties of a message that a person or program added to a running agent."""

INJECTION_QUEUE: Final = "message_injection"
"""The key of `session.state` of the queue: `messages`, and `conversations`, which are ids of conversations stored by a
service, by the id of a message that they contain."""


def source_id_of(source: Any) -> str:
    """Return the id of a source, which is that text or a context provider."""
    return source if isinstance(source, str) else provider_id(source)


def add_source(messages: Iterable[Message], source: Any) -> list[Message]:
    """Return copies of messages with their source recorded, unless they have one; contents are shared."""
    attribution = {"source_id": source_id_of(source)}
    if not isinstance(source, str):
        attribution["source_type"] = type(source).__name__
    copies = copy_messages(messages)
    for message in copies:
        if ATTRIBUTION not in message.additional_properties:
            message.additional_properties[ATTRIBUTION] = dict(attribution)
    return copies


def add_author(messages: Iterable[Message], agent: Any) -> list[Message]:
    """Set the agent as author of its messages without one, in a form that services accept; changed ones are copied."""
    signed = []
    for message in mend_messages(list(messages)):
        if not (message.author_name or INJECTED in message.additional_properties):
            (message,) = copy_messages([message])
            message.author_name = agent.name or UNNAMED
        signed.append(message)
    return signed


class SessionContext:
    """The input of one agent run, plus the additions of its context providers. Each run has a new one.

    The arguments are stored without copying. Use the methods to extend them.

    Args:
        session_id: The id of the session.
        service_session_id: The id of a conversation that the service stores.
        input_messages: The messages of this run.
        context_messages: Messages before the input, by source.
        instructions: Instructions in addition to the agent's.
        tools: Tools in addition to the agent's.
        middleware: Middleware for model calls and tool calls, by source.
        options: The options of the run (read-only).
        metadata: Values that providers exchange.

    Attributes:
        context_messages: The argument, extended by providers. The messages of a history are the stored objects: to
            change one for this run, replace it by a copy.
        instruction_sources: The source of each instruction; `None` for those passed to the constructor.

    Raises:
        MiddlewareException: `middleware` contains agent middleware or an object that is not middleware.

    Example:
        context = SessionContext(input_messages=[Message("user", "Which city?")])
        context.extend_messages("places", [Message("system", "Ada lives in London.")])
        context.extend_instructions("places", "Name one city.")
        assert [message.role for message in context.get_messages(include_input=True)] == ["system", "user"]
    """

    def __init__(  # noqa: PLR0913 - one argument for each part of a run
        self,
        *,
        session_id: str | None = None,
        service_session_id: str | None = None,
        input_messages: list[Message],
        context_messages: dict[str, list[Message]] | None = None,
        instructions: list[str] | None = None,
        tools: list[Any] | None = None,
        middleware: Mapping[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.service_session_id = service_session_id
        self.input_messages = input_messages
        self.context_messages: dict[str, list[Message]] = {} if context_messages is None else context_messages
        self.instructions: list[str] = [] if instructions is None else instructions
        self.instruction_sources: list[str | None] = [None] * len(self.instructions)
        self.tools: list[Any] = [] if tools is None else tools
        self.middleware: dict[str, list[Any]] = {}
        self.options: dict[str, Any] = {} if options is None else options
        self.metadata: dict[str, Any] = {} if metadata is None else metadata
        self._response: AgentResponse[Any] | ChatResponse[Any] | None = None
        self._stored_inputs: list[Message] = input_messages
        if middleware:
            for source_id, added in middleware.items():
                self.extend_middleware(source_id, added)

    response: Any = property(attrgetter("_response"), doc="The response; `None` until the model has answered.")
    stored_inputs: Any = property(
        attrgetter("_stored_inputs"),
        doc="The input that histories store: the input messages, with approval answers replaced by results.",
    )

    def extend_messages(self, source: Any, messages: Iterable[Message]) -> None:
        """Add copies of messages before the input, after earlier ones of the same source.

        Each copy has an `_attribution` to the source in its additional properties, unless it already has one. A source
        without messages still takes its place in the order.

        Raises:
            TypeError: The source is neither text nor an object with a `source_id`, or an item is not a message.
        """
        added = add_source(messages, source)
        self.context_messages.setdefault(source_id_of(source), []).extend(added)

    def extend_instructions(self, source_id: Any, instructions: str | Sequence[str]) -> None:
        """Append instructions of a provider (or its id)."""
        name = source_id_of(source_id)
        added = [instructions] if isinstance(instructions, str) else list(instructions)
        self.instructions.extend(added)
        self.instruction_sources.extend([name] * len(added))

    def extend_tools(self, source_id: Any, tools: Iterable[Any]) -> None:
        """Append tools of a provider (or its id).

        A tool with additional properties is copied, and the copy records the `context_source`.
        """
        name = source_id_of(source_id)
        for tool in tools:
            properties = getattr(tool, "additional_properties", None)
            if isinstance(properties, dict) and properties.get("context_source") != name:
                tool = copy(tool)
                tool.additional_properties = {**properties, "context_source": name}
            self.tools.append(tool)

    def extend_middleware(self, source_id: Any, middleware: Any) -> None:
        """Add middleware of a provider (or its id) for the model calls and tool calls of this run."""
        name = source_id_of(source_id)
        if sort_middleware(middleware).agent:
            message = (
                f"{name!r} adds agent middleware to a running run. Expected chat or function middleware; "
                "pass agent middleware to the agent."
            )
            raise MiddlewareException(message)
        self.middleware.setdefault(name, []).extend(flat_middleware(middleware))

    def get_middleware(self) -> list[Any]:
        """Return all added middleware, grouped by source."""
        return [middleware for added in self.middleware.values() for middleware in added]

    def get_messages(
        self,
        *,
        sources: Collection[str] | None = None,
        exclude_sources: Collection[str] | None = None,
        include_input: bool = False,
        include_response: bool = False,
    ) -> list[Message]:
        """Return the messages of the sources in the order they were added, then input, then response.

        Args:
            sources: The sources to include; by default all.
            exclude_sources: Sources to leave out, even if they are in `sources`.
            include_input: Whether to append the input messages.
            include_response: Whether to append the messages of the response, if there is one.
        """
        chosen = {sources} if isinstance(sources, str) else sources
        left_out = {exclude_sources} if isinstance(exclude_sources, str) else exclude_sources or ()
        selected: list[Message] = []
        for source_id, messages in self.context_messages.items():
            if (chosen is None or source_id in chosen) and source_id not in left_out:
                selected += messages
        if include_input:
            selected += self.input_messages
        if include_response and self._response is not None:
            selected += self._response.messages
        return selected

    def __repr__(self) -> str:
        sources = ", ".join(f"{name}: {len(messages)}" for name, messages in self.context_messages.items())
        outcome = "no response yet" if self._response is None else "with a response"
        return (
            f"{type(self).__name__}(session_id={self.session_id!r}, input_messages={len(self.input_messages)}, "
            f"context_messages={{{sources}}}, {outcome})"
        )
