"""A conversation: its id, and the state that providers store in it between the runs of an agent."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench._clock import runtime_defaults
from agentbench._display import Displayable, drawn_by
from agentbench.agents.arguments import describe
from agentbench.agents.sessions.session_json import read_state, refuse_secrets, write_state
from agentbench.agents.sessions.turn_lock import LOCKS
from agentbench.serialization.registry import register_type

if TYPE_CHECKING:
    from typing_extensions import Self

#: Attribute of a session: by id of the provider, the list of messages in the state that is known to carry attributions.
STAMPED: Final = "_stamped_lists"
#: Attribute of a session: the beginning of its conversation that requests need not read again.
SETTLED: Final = "_settled"
#: Attribute of a session: by id of the provider, what compaction has left of the conversation so far.
COMPACTED: Final = "_compacted"
#: Attribute of a session: by id of an approval request, the run that makes its call now.
ANSWERING: Final = "_answering"


@drawn_by("agentbench.notebook.cards.session:session")
class AgentSession(Displayable):
    """The state of a conversation between the runs of agents; pass it to each run of the conversation.

    Two sessions are equal when their ids and their states are. They are hashed by `session_id`, which does not change.

    Args:
        session_id: Its id; by default a new one.
        service_session_id: The id of a conversation that the model's service stores. Then no history is stored here.

    Attributes:
        service_session_id: The argument, or the id that the service returned.
        state: A dictionary for context providers, each under its `source_id`, and for users, under any other name.

    Raises:
        TypeError: The id is no text.

    Example:
        session = AgentSession()
        await agent.run("My name is Ada.", session=session)
        await agent.run("What is my name?", session=session)
        stored = json.dumps(session.to_dict())
        session = AgentSession.from_dict(json.loads(stored))
    """

    def __init__(self, *, session_id: str | None = None, service_session_id: str | None = None) -> None:
        if not isinstance(cast("object", session_id), str | None):
            message = f"session_id is {session_id!r}. Expected text: pass str(...) of it."
            raise TypeError(message)
        self._session_id = session_id or runtime_defaults().ids.new_id("session")
        self.service_session_id = service_session_id
        self.state: dict[str, Any] = {}

    session_id: str = cast("str", property(attrgetter("_session_id"), doc="The id of the session."))

    def to_dict(self) -> dict[str, Any]:
        """Return the session as plain JSON values.

        Raises:
            TypeError: A value in the state cannot be written; the error names where it is.
        """
        return {
            "type": "session",
            "session_id": self._session_id,
            "service_session_id": self.service_session_id,
            "state": write_state(self.state),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the session that `to_dict` wrote.

        Objects are restored if their classes are known in this process: pass your own classes to `register_state_type`
        where they are defined. Values of unknown types stay dictionaries.

        Args:
            data: The mapping that `to_dict` returned.

        Raises:
            KeyError: There is no `session_id`.
            TypeError: `data` is no mapping.
            ValueError: `data` is another stored object, or a value in the state cannot be read.
        """
        if not isinstance(cast("object", data), Mapping):
            message = (
                f"A stored session is {describe(data)}. Expected the mapping of to_dict(); read text by json.loads()."
            )
            raise TypeError(message)
        if data.get("type", "session") != "session":
            message = f"A stored session has the type {data['type']!r}. Expected 'session', as to_dict() writes it."
            raise ValueError(message)
        session = cls(session_id=data["session_id"], service_session_id=data.get("service_session_id"))
        session.state = read_state(data.get("state") or {})
        return session

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AgentSession):
            return NotImplemented
        return (
            self._session_id == other._session_id
            and self.service_session_id == other.service_session_id
            and self.state == other.state
        )

    def __hash__(self) -> int:
        return hash(self._session_id)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in (LOCKS, STAMPED, SETTLED, COMPACTED, ANSWERING)
        }

    def __copy__(self) -> Self:
        duplicate = object.__new__(type(self))
        duplicate.__dict__.update(self.__getstate__())
        return duplicate

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        duplicate = memo[id(self)] = object.__new__(type(self))
        duplicate.__dict__.update(copy.deepcopy(self.__getstate__(), memo))
        return duplicate

    def __reduce_ex__(self, protocol: Any) -> Any:
        refuse_secrets(self.state)  # a pickle is stored, as JSON is
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        service = "" if self.service_session_id is None else f", service_session_id={self.service_session_id!r}"
        held = f", state of {', '.join(map(repr, self.state))}" if self.state else ", no state"
        return f"{type(self).__name__}(session_id={self._session_id!r}{service}{held})"


def _from_checkpoint(found: dict[str, Any]) -> AgentSession:
    session = AgentSession(session_id=found["session_id"], service_session_id=found["service_session_id"])
    session.state = found["state"]
    return session


# Checkpoints have a form of their own for what is in the state, so that a history that only grew is not written anew.
register_type(
    AgentSession,
    "agent_session",
    lambda session: {name: getattr(session, name) for name in ("session_id", "service_session_id", "state")},
    _from_checkpoint,
)
