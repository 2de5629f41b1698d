"""One run of an agent as its context providers see it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from agentbench.agents.middleware.sorting import flat_middleware, sort_middleware
from agentbench.agents.sessions.attribution import attributed, source_id_of
from agentbench.exceptions import MiddlewareException
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.messages.response import AgentResponse, ChatResponse

#: Entry of a tool's additional properties: which provider brought it.
_CONTEXT_SOURCE = "context_source"


class SessionContext:
    """What a run of an agent is given, and what its context providers add to that.

    Made anew for each run. What is stored as given is the same object; change it only by the methods.

    Args:
        session_id: Id of the session.
        service_session_id: Id under which the model's service keeps the conversation.
        input_messages: What this run was asked.
        context_messages: Messages that go before these, by source.
        instructions: Instructions besides those of the agent.
        tools: Tools besides those of the agent.
        middleware: Middleware around calls of the model and of tools, by source.
        options: Options of the run. To be read only.
        metadata: Notes from one provider to another.

    Attributes:
        context_messages: As given, then extended. The messages of a history are those that it keeps: to change one for
            this run, put a copy in its place.
        instruction_sources: Which source gave each of the instructions; `None` for those that were there at first.

    Raises:
        MiddlewareException: There is middleware among it that stands around runs, or something that is none.
    """

    __slots__ = (
        "_response",
        "_stored_inputs",
        "context_messages",
        "input_messages",
        "instruction_sources",
        "instructions",
        "metadata",
        "middleware",
        "options",
        "service_session_id",
        "session_id",
        "tools",
    )

    def __init__(  # noqa: PLR0913 - one argument for each thing that a run can be given
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
            for source_id, given in middleware.items():
                self.extend_middleware(source_id, given)

    @property
    def response(self) -> Any:
        """The answer; `None` until the model has given it."""
        return self._response

    @property
    def stored_inputs(self) -> Sequence[Message]:
        """What histories keep of the input: the input messages, with answers to approvals as the model saw them."""
        return self._stored_inputs

    def extend_messages(self, source: Any, messages: Iterable[Message]) -> None:
        """Put copies of messages before the input, behind what the same source gave before.

        Each copy carries an `_attribution` to the source in its additional properties, unless it carries one already.

        Args:
            source: The provider, or a source id.
            messages: May be none; the source has its place in the order all the same.

        Raises:
            TypeError: The source is neither text nor an object with a `source_id`, or one is no message.
        """
        added = attributed(messages, source)
        self.context_messages.setdefault(source_id_of(source), []).extend(added)

    def share_messages(self, source: Any, messages: Iterable[Message]) -> None:
        """Put messages before the input that carry their attribution and are never changed: without copying them."""
        self.context_messages.setdefault(source_id_of(source), []).extend(messages)

    def extend_instructions(self, source_id: Any, instructions: str | Sequence[str]) -> None:
        """Add instructions behind those that are there.

        Args:
            source_id: Of the provider; the provider itself will do.
            instructions: One text or several.

        Raises:
            TypeError: The source is neither text nor an object with a `source_id`.
        """
        name = source_id_of(source_id)
        added = [instructions] if isinstance(instructions, str) else list(instructions)
        self.instructions.extend(added)
        self.instruction_sources.extend([name] * len(added))

    def extend_tools(self, source_id: Any, tools: Iterable[Any]) -> None:
        """Add tools behind those that are there.

        A tool with additional properties is copied, and `context_source` is noted on the copy.

        Args:
            source_id: Of the provider; the provider itself will do.
            tools: The tools, which stay as they are.

        Raises:
            TypeError: The source is neither text nor an object with a `source_id`.
        """
        name = source_id_of(source_id)
        self.tools.extend([_noted(tool, name) for tool in tools])

    def extend_middleware(self, source_id: Any, middleware: Any) -> None:
        """Add middleware around the calls of the model and of tools in this run.

        Args:
            source_id: Of the provider; the provider itself will do.
            middleware: One or several.

        Raises:
            MiddlewareException: Middleware for whole runs is among it, which has begun already, or something that is no
                middleware.
            TypeError: The source is neither text nor an object with a `source_id`.
        """
        name = source_id_of(source_id)
        sorted_ = sort_middleware(middleware)
        if sorted_.agent:
            message = (
                f"{name!r} adds agent middleware to a run that has begun. Expected chat or function middleware; give "
                "agent middleware to the agent."
            )
            raise MiddlewareException(message)
        self.middleware.setdefault(name, []).extend(flat_middleware(middleware))

    def get_middleware(self) -> list[Any]:
        """All middleware that was added, source by source."""
        return [each for given in self.middleware.values() for each in given]

    def get_messages(
        self,
        *,
        sources: Collection[str] | None = None,
        exclude_sources: Collection[str] | None = None,
        include_input: bool = False,
        include_response: bool = False,
    ) -> list[Message]:
        """Collect messages: those of each source, in the order in which sources came, then input, then response.

        Args:
            sources: Only these; by default all of them.
            exclude_sources: Not these, even if they are among `sources`.
            include_input: Add the input messages.
            include_response: Add the messages of the response, if there is one.
        """
        chosen, left_out = _names(sources), _names(exclude_sources) or ()
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


def _names(given: Collection[str] | None) -> Collection[str] | None:
    return {given} if isinstance(given, str) else given


def _noted(tool: Any, source_id: str) -> Any:
    properties = getattr(tool, "additional_properties", None)
    if not isinstance(properties, dict) or properties.get(_CONTEXT_SOURCE) == source_id:
        return tool
    noted = copy(tool)
    noted.additional_properties = {**properties, _CONTEXT_SOURCE: source_id}
    return noted
