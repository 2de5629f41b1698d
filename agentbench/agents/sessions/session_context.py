"""The context of one run of an agent, to which its context providers add."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from agentbench.agents.middleware.sorting import flat_middleware, sort_middleware
from agentbench.agents.sessions.attribution import attributed, source_id_of
from agentbench.exceptions import MiddlewareException
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.messages.response import AgentResponse, ChatResponse


class SessionContext:
    """The input of one run of an agent, and what its context providers add to it. Each run makes its own.

    The arguments are stored as they are, not copied. Extend them by the methods.

    Args:
        session_id: The id of the session.
        service_session_id: The id of a conversation that the model's service stores.
        input_messages: The messages of this run.
        context_messages: Messages in front of these, by source.
        instructions: Instructions besides those of the agent.
        tools: Tools besides those of the agent.
        middleware: Middleware around calls of the model and of tools, by source.
        options: The options of the run, to be read only.
        metadata: Notes from one provider to another.

    Attributes:
        context_messages: The argument, then extended. The messages of a history are those that it stores: to change one
            for this run, put a copy in its place.
        instruction_sources: The source of each of the instructions; `None` for those of the constructor.

    Raises:
        MiddlewareException: Agent middleware is among it, or an object that is no middleware.

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
        doc="The input that histories store: the input messages, with results in the place of answers to approvals.",
    )

    def extend_messages(self, source: Any, messages: Iterable[Message]) -> None:
        """Put copies of messages in front of the input, behind earlier ones of the same source.

        Each copy carries an `_attribution` to the source in its additional properties, unless it carries one already.
        A source without messages has its place in the order all the same.

        Raises:
            TypeError: The source is neither text nor an object with a `source_id`, or one is no message.
        """
        added = attributed(messages, source)
        self.context_messages.setdefault(source_id_of(source), []).extend(added)

    def extend_instructions(self, source_id: Any, instructions: str | Sequence[str]) -> None:
        """Add instructions of a provider (or its id) behind the present ones."""
        name = source_id_of(source_id)
        added = [instructions] if isinstance(instructions, str) else list(instructions)
        self.instructions.extend(added)
        self.instruction_sources.extend([name] * len(added))

    def extend_tools(self, source_id: Any, tools: Iterable[Any]) -> None:
        """Add tools of a provider (or its id) behind the present ones.

        A tool with additional properties is copied, and `context_source` is noted on the copy.
        """
        name = source_id_of(source_id)
        for tool in tools:
            properties = getattr(tool, "additional_properties", None)
            if isinstance(properties, dict) and properties.get("context_source") != name:
                tool = copy(tool)
                tool.additional_properties = {**properties, "context_source": name}
            self.tools.append(tool)

    def extend_middleware(self, source_id: Any, middleware: Any) -> None:
        """Add middleware of a provider (or its id) around the calls of the model and of tools in this run."""
        name = source_id_of(source_id)
        if sort_middleware(middleware).agent:
            message = (
                f"{name!r} adds agent middleware to a run that has begun. Expected chat or function middleware; pass "
                "agent middleware to the agent."
            )
            raise MiddlewareException(message)
        self.middleware.setdefault(name, []).extend(flat_middleware(middleware))

    def get_middleware(self) -> list[Any]:
        """Return all middleware that was added, source by source."""
        return [each for added in self.middleware.values() for each in added]

    def get_messages(
        self,
        *,
        sources: Collection[str] | None = None,
        exclude_sources: Collection[str] | None = None,
        include_input: bool = False,
        include_response: bool = False,
    ) -> list[Message]:
        """Return the messages of each source, in the order in which sources came, then input, then response.

        Args:
            sources: Only these; by default all of them.
            exclude_sources: Not these, even if they are among `sources`.
            include_input: Whether the input messages follow.
            include_response: Whether the messages of the response follow, if there is one.
        """
        chosen = {sources} if isinstance(sources, str) else sources
        left_out = {exclude_sources} if isinstance(exclude_sources, str) else exclude_sources or ()
        found: list[Message] = []
        for source_id, messages in self.context_messages.items():
            if (chosen is None or source_id in chosen) and source_id not in left_out:
                found += messages
        if include_input:
            found += self.input_messages
        if include_response and self._response is not None:
            found += self._response.messages
        return found

    def __repr__(self) -> str:
        sources = ", ".join(f"{name}: {len(messages)}" for name, messages in self.context_messages.items())
        outcome = "no response yet" if self._response is None else "with a response"
        return (
            f"{type(self).__name__}(session_id={self.session_id!r}, input_messages={len(self.input_messages)}, "
            f"context_messages={{{sources}}}, {outcome})"
        )
