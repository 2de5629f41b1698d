"""Classes that sessions hold in tests, registered when this module is imported, and sessions made of them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, date, timedelta, timezone
from enum import Enum
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agentbench import AgentSession, Content, Message, register_state_type


@register_state_type
class UserPreferences(BaseModel):
    language: str = "en"
    spice: int = 0
    loud: bool = True

    @classmethod
    def _get_type_identifier(cls) -> str:
        return "prefs"


@register_state_type
class Ticket(BaseModel):
    """A model with a field of the name that sessions need themselves, an alias, and dates."""

    type: str = "bug"
    number: int = Field(0, alias="no")
    opened_on: date | None = None
    labels: set[str] = set()
    notes: list[UserPreferences] = []


@register_state_type
class SearchHistory:
    def __init__(self, queries: list[str]) -> None:
        self.queries = queries

    def to_dict(self) -> dict[str, Any]:
        return {"type": "search_history", "queries": self.queries}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SearchHistory:
        return cls(queries=data["queries"])

    def __eq__(self, other: object) -> bool:
        return type(other) is SearchHistory and other.queries == self.queries

    __hash__ = None  # type: ignore[assignment]


@register_state_type
class Untold(SearchHistory):
    """Its form does not tell its type, and holds an object."""

    def to_dict(self) -> dict[str, Any]:
        return {"queries": self.queries, "asked": Message("user", self.queries)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Untold:
        assert isinstance(data["asked"], Message)
        return cls(data["queries"])

    def __eq__(self, other: object) -> bool:
        return type(other) is Untold and other.queries == self.queries

    __hash__ = None


class Mood(Enum):
    CALM = "calm"
    CROSS = "cross"


@dataclass
class Place:
    name: str
    visits: tuple[int, ...] = ()


texts = st.text(max_size=8)
words = st.sampled_from(
    ["type", "prefs", "message", "search_history", "session", "__t__", "v", "__qualname__", "tuple"]
)
messages = st.builds(
    lambda role, said, name, more: Message(
        role, [Content.from_text(said)], author_name=name, additional_properties=more
    ),
    st.sampled_from(["user", "assistant"]),
    texts,
    st.none() | texts,
    st.dictionaries(texts, st.integers() | st.datetimes(timezones=st.just(UTC)), max_size=2),
)
preferences = st.builds(UserPreferences, language=texts, loud=st.booleans())
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=1 << 5000, max_value=1 << 5001)
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=8)
    | words
    | st.datetimes()
    | st.datetimes(timezones=st.just(timezone(timedelta(hours=2))))
    | st.dates()
    | st.builds(UUID, int=st.integers(0, (1 << 128) - 1))
    | st.binary(max_size=8)
    | st.sampled_from([*Mood, Path("a/b"), PurePosixPath("/x"), PureWindowsPath("c:/x")])
    | st.builds(Place, texts, st.lists(st.integers(), max_size=2).map(tuple))
    | messages
    | preferences
    | st.builds(
        lambda kind, number, day, labels, notes: Ticket(
            type=kind, no=number, opened_on=day, labels=labels, notes=notes
        ),
        texts | words,
        st.integers(),
        st.none() | st.dates(),
        st.sets(texts, max_size=2),
        st.lists(preferences, max_size=2),
    )
    | st.builds(SearchHistory, st.lists(texts, max_size=2))
    | st.builds(Untold, st.lists(texts, max_size=2))
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | texts, inner, max_size=3), max_leaves=8
)


def session_of(session_id: str, service_session_id: str | None, state: dict[str, Any]) -> AgentSession:
    session = AgentSession(session_id=session_id, service_session_id=service_session_id)
    session.state.update(state)
    return session


sessions = st.builds(
    session_of, st.text(min_size=1, max_size=8), st.none() | texts, st.dictionaries(texts | words, values, max_size=4)
)


def rewrite(source: Path, target: Path) -> None:
    """Read sessions, one a line, and write them again; what a process of its own does with them."""
    lines = source.read_text("utf-8").splitlines()
    again = [json.dumps(AgentSession.from_dict(json.loads(line)).to_dict()) for line in lines]
    target.write_text("\n".join(again), "utf-8")


if __name__ == "__main__":
    # Under its own name, as any program imports the module that registers its classes.
    from tests.agents.sessions import stored_types

    stored_types.rewrite(Path(sys.argv[1]), Path(sys.argv[2]))
