"""Stores of memories, separate for each owner: records of topics, their index, and transcripts."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote

from agentbench._files.private_file import refuse_links
from agentbench._files.stored_text import read_json, read_text, replace_text, stem_of
from agentbench._limits import require_limit
from agentbench._secrets import masked_repr

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession

_OTHERS = re.compile(r"[^a-z0-9]+")
_SEPARATORS = re.compile(r"[\s_-]+")
_LONGEST_SLUG = 80

logger = logging.getLogger("agentbench")


def slug_of(topic: str) -> str:
    """Return the file name of a topic. Topics that differ only in case or separators share one.

    If the name loses characters, part of a digest is added. It distinguishes `C` from `C++`, and topics in other
    scripts from each other.
    """
    plain = " ".join(topic.split()).lower()
    slug = _OTHERS.sub("-", plain).strip("-")
    if slug == _SEPARATORS.sub("-", plain).strip("-") and 0 < len(slug) <= _LONGEST_SLUG:
        return slug
    digest = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[:_LONGEST_SLUG]}-{digest}".lstrip("-")


@dataclass
class MemoryIndexEntry:
    """One line of the index of a memory.

    Args:
        topic: The name of the topic.
        slug: The name of its file, without the suffix.
        summary: A summary of the topic.
        updated_at: The time of the last change, in ISO 8601.

    Example:
        from agentbench import MemoryIndexEntry

        entry = MemoryIndexEntry("Owls", "owls", "what they eat", "2026-01-01T00:00:00Z")
        print(entry.to_pointer_line())
    """

    topic: str
    slug: str
    summary: str
    updated_at: str

    @classmethod
    def from_topic_record(cls, record: MemoryTopicRecord) -> Self:
        """Create the entry of a record."""
        return cls(record.topic, record.slug, record.summary, record.updated_at)

    def to_pointer_line(self, topics_directory: str = "topics") -> str:
        """Return the line of the index: a link to the file, and the summary."""
        return f"- [{self.topic}]({topics_directory}/{self.slug}.md): {' '.join(self.summary.split())}"

    def to_dict(self) -> dict[str, Any]:
        """Convert the entry to plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create an entry from the result of `to_dict`."""
        return cls(**{name: str(data[name]) for name in ("topic", "slug", "summary", "updated_at")})


class MemoryTopicRecord:
    """What an agent remembers about one topic.

    Args:
        topic: The name of the topic; it must not be blank.
        slug: The name of its file, without the suffix; by default derived from the topic.
        summary: A summary of the topic.
        memories: The facts. Blank and repeated ones are dropped; case is ignored.
        updated_at: The time of the last change, in ISO 8601.
        session_ids: The ids of the sessions in which the facts were mentioned.

    Raises:
        ValueError: The topic is blank.

    Example:
        >>> record = MemoryTopicRecord(topic="Ada", summary="A user.", memories=["Likes tea."], updated_at="2026-01-01")
        >>> MemoryTopicRecord.from_markdown(record.to_markdown()) == record
        True
    """

    def __init__(
        self,
        *,
        topic: str,
        slug: str | None = None,
        summary: str,
        memories: Sequence[str],
        updated_at: str,
        session_ids: Sequence[str] | None = None,
    ) -> None:
        self.topic = " ".join(topic.split())
        if not self.topic:
            message = f"The topic of a memory is {topic!r}. Expected a non-blank name."
            raise ValueError(message)
        self.slug = slug or slug_of(self.topic)
        self.summary, self.updated_at = summary.strip(), updated_at
        self.memories = without_repetitions(memories)
        self.session_ids = list(dict.fromkeys(session_ids or ()))

    def to_dict(self) -> dict[str, Any]:
        """Convert the record to plain JSON values."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a record from the result of `to_dict`."""
        return cls(**data)

    def to_markdown(self) -> str:
        """Convert the record to the text of a Markdown file."""
        sessions = ", ".join(quote(session_id, safe="") for session_id in self.session_ids)
        head = [f"# {self.topic}", "", f"Updated: {self.updated_at}", *([f"Sessions: {sessions}"] if sessions else [])]
        summary = [_escape(line) for line in self.summary.split("\n")]
        memories = ["- " + "\n  ".join(memory.split("\n")) for memory in self.memories]
        return "\n".join([*head, "", "## Summary", *summary, "", "## Memories", *memories, ""])

    @classmethod
    def from_markdown(cls, markdown: str, *, fallback_topic: str | None = None) -> Self:
        """Create a record from the text of a Markdown file.

        Args:
            markdown: The result of `to_markdown`, possibly edited since.
            fallback_topic: The topic to use if the file has no heading.

        Raises:
            ValueError: There is neither a heading nor a fallback topic.
        """
        head, summary, memories = _sections(markdown)
        topic = next((line[2:] for line in head if line.startswith("# ")), fallback_topic or "")
        head_fields = dict(line.split(": ", 1) for line in head if ": " in line and not line.startswith("# "))
        items: list[str] = []
        for line in memories:
            if line.startswith("- "):
                items.append(line[2:])
            elif line.startswith("  ") and items:
                items[-1] += f"\n{line[2:]}"
        return cls(
            topic=topic,
            summary="\n".join(_unescape(line) for line in summary),
            memories=items,
            updated_at=head_fields.get("Updated", ""),
            session_ids=[unquote(name) for name in head_fields.get("Sessions", "").split(", ") if name],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryTopicRecord) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MemoryTopicRecord({self.topic!r}, {len(self.memories)} memories, updated {self.updated_at})"


def without_repetitions(memories: Sequence[str]) -> list[str]:
    """Return facts without blank and repeated ones; case is ignored."""
    lines = (_one_block(memory) for memory in memories)
    return list({line.casefold(): line for line in reversed([*lines]) if line}.values())[::-1]


def _one_block(memory: str) -> str:
    """Normalize the line endings of a fact and remove blank lines."""
    return "\n".join(line.rstrip() for line in memory.strip().splitlines() if line.strip())


def _sections(markdown: str) -> tuple[list[str], list[str], list[str]]:
    """Split a file into the lines of the head, the summary and the memories."""
    sections: dict[str, list[str]] = {"head": [], "## Summary": [], "## Memories": []}
    current = "head"
    for line in markdown.split("\n"):
        if line.rstrip() in sections:
            current = line.rstrip()
        else:
            sections[current].append(line)
    return sections["head"], sections["## Summary"], sections["## Memories"]


def _escape(line: str) -> str:
    return f"\\{line}" if line.startswith(("#", "\\")) else line


def _unescape(line: str) -> str:
    return line[1:] if line.startswith(("\\#", "\\\\")) else line


# ---- stores


JsonDumps = Callable[[Any], "str | bytes"]
JsonLoads = Callable[["str | bytes"], Any]


class MemoryStore(ABC):
    """Base class of the stores of a `MemoryContextProvider`. Methods may block; the provider calls them in threads.

    In all methods, `session` determines the owner of the memory, and `source_id` the provider.

    Example:
        from agentbench import MemoryContextProvider, MemoryFileStore

        provider = MemoryContextProvider(store=MemoryFileStore("memory", owner_state_key="user"))
    """

    @abstractmethod
    def list_topics(self, session: AgentSession, *, source_id: str) -> list[MemoryTopicRecord]:
        """Return all topics, ordered by name."""

    @abstractmethod
    def get_topic(self, session: AgentSession, *, source_id: str, topic: str) -> MemoryTopicRecord:
        """Return a topic by its name or slug; raise FileNotFoundError if there is none."""

    @abstractmethod
    def write_topic(self, session: AgentSession, record: MemoryTopicRecord, *, source_id: str) -> None:
        """Store a topic, replacing one with the same name."""

    @abstractmethod
    def delete_topic(self, session: AgentSession, *, source_id: str, topic: str) -> None:
        """Remove a topic by its name or slug; raise FileNotFoundError if there is none."""

    @abstractmethod
    def rebuild_index(
        self, session: AgentSession, *, source_id: str, line_limit: int, line_length: int
    ) -> list[MemoryIndexEntry]:
        """Write the index of the topics and return its entries, latest first."""

    @abstractmethod
    def get_index_text(
        self,
        session: AgentSession,
        *,
        source_id: str,
        line_limit: int,
        line_length: int,
        index_entries: Sequence[MemoryIndexEntry] | None = None,
    ) -> str:
        """Return the index as text; of `index_entries` if they are passed."""

    @abstractmethod
    def read_state(self, session: AgentSession, *, source_id: str) -> dict[str, Any]:
        """Return the time of the last consolidation and the sessions since then."""

    @abstractmethod
    def write_state(self, session: AgentSession, state: Mapping[str, Any], *, source_id: str) -> None:
        """Store the state that `read_state` returns."""

    @abstractmethod
    def get_transcripts_directory(self, session: AgentSession, *, source_id: str) -> Path:
        """Return the folder of the transcripts. It may not exist yet."""

    @abstractmethod
    def search_transcripts(
        self, session: AgentSession, *, source_id: str, query: str, session_id: str | None = None, limit: int = 20
    ) -> list[dict[str, Any]]:
        """Return the messages that contain a text, ignoring case: `session_id`, `line_number`, `role`, `text`."""

    def get_owner_id(self, session: AgentSession) -> str | None:
        """Return the owner of the memory of a session; None if all sessions share one memory."""
        return None

    def export_provider_state(self, session: AgentSession) -> dict[str, Any]:
        """Return the state that another session needs to use the same memory."""
        return {}

    def import_provider_state(self, session: AgentSession, *, state: Mapping[str, Any]) -> None:
        """Let a session use the memory of the session from which the state was exported."""
        session.state.update(state)


class MemoryFileStore(MemoryStore):
    """Stores memories in a folder as Markdown files that people can read and edit.

    Below `base_path`, each provider and owner has a folder with `MEMORY.md`, `topics/`, `transcripts/` and
    `state.json`. Only the current user can access the files. They are replaced atomically, and reading creates none.

    Args:
        base_path: The folder. It is created with the first memory.
        kind: The name of the folder for the memory, next to other files of an owner.
        owner_prefix: A prefix for the owner's name.
        owner_state_key: The key of `session.state` that contains the owner of a session.
        index_file_name: The name of the index file.
        topics_directory_name: The name of the folder for topics.
        transcripts_directory_name: The name of the folder for transcripts.
        state_file_name: The name of the file with the state.
        dumps: Serializes JSON values to text or bytes.
        loads: Parses them.

    Example:
        store = MemoryFileStore("memories", owner_state_key="user")
        agent = Agent(EchoChatClient(), context_providers=[MemoryContextProvider(store=store)])
        session = agent.create_session()
        session.state["user"] = "ada"
    """

    def __init__(  # noqa: PLR0913 - the public signature
        self,
        base_path: str | os.PathLike[str],
        *,
        kind: str = "memory",
        owner_prefix: str = "",
        owner_state_key: str,
        index_file_name: str = "MEMORY.md",
        topics_directory_name: str = "topics",
        transcripts_directory_name: str = "transcripts",
        state_file_name: str = "state.json",
        dumps: JsonDumps | None = None,
        loads: JsonLoads | None = None,
    ) -> None:
        self.base_path = Path(base_path)
        self.kind, self.owner_prefix, self.owner_state_key = kind, owner_prefix, owner_state_key
        self.index_file_name, self.state_file_name = index_file_name, state_file_name
        self.topics_directory_name, self.transcripts_directory_name = topics_directory_name, transcripts_directory_name
        self.dumps: JsonDumps = json.dumps if dumps is None else dumps
        self.loads: JsonLoads = json.loads if loads is None else loads

    def list_topics(self, session: AgentSession, *, source_id: str) -> list[MemoryTopicRecord]:
        """Return all topics, ordered by name."""
        texts = self._ab_texts(self._ab_topics(session, source_id).glob("*.md"))
        records = [MemoryTopicRecord.from_markdown(text, fallback_topic=path.stem) for path, text in texts]
        return sorted(records, key=lambda record: record.topic.casefold())

    def get_topic(self, session: AgentSession, *, source_id: str, topic: str) -> MemoryTopicRecord:
        """Return a topic by its name or slug; raise FileNotFoundError if there is none."""
        path = self._ab_path_of_topic(session, source_id, topic)
        return MemoryTopicRecord.from_markdown(read_text(self.base_path, path), fallback_topic=topic)

    def write_topic(self, session: AgentSession, record: MemoryTopicRecord, *, source_id: str) -> None:
        """Store a topic, replacing one with the same name."""
        replace_text(
            self.base_path, self._ab_topics(session, source_id) / f"{slug_of(record.topic)}.md", record.to_markdown()
        )

    def delete_topic(self, session: AgentSession, *, source_id: str, topic: str) -> None:
        """Remove a topic by its name or slug; raise FileNotFoundError if there is none."""
        path = self._ab_path_of_topic(session, source_id, topic)
        refuse_links(self.base_path, path.parent)
        path.unlink()

    def rebuild_index(
        self, session: AgentSession, *, source_id: str, line_limit: int, line_length: int
    ) -> list[MemoryIndexEntry]:
        """Write the index of the topics if it has changed, and return its entries, latest first."""
        records = self.list_topics(session, source_id=source_id)
        latest = sorted(records, key=lambda record: record.updated_at, reverse=True)
        entries = [MemoryIndexEntry.from_topic_record(record) for record in latest]
        text = self._ab_index_text(entries, line_limit, line_length)
        path = self._ab_folder(session, source_id) / self.index_file_name
        stored = read_text(self.base_path, path) if path.exists() else None
        if text != stored and (entries or stored):
            replace_text(self.base_path, path, text)
        return entries

    def get_index_text(
        self,
        session: AgentSession,
        *,
        source_id: str,
        line_limit: int,
        line_length: int,
        index_entries: Sequence[MemoryIndexEntry] | None = None,
    ) -> str:
        """Return the index as text; of `index_entries` if they are passed. The file is not written."""
        if index_entries is None:
            records = self.list_topics(session, source_id=source_id)
            index_entries = [MemoryIndexEntry.from_topic_record(record) for record in records]
        return self._ab_index_text(index_entries, line_limit, line_length)

    def _ab_index_text(self, entries: Sequence[MemoryIndexEntry], line_limit: int, line_length: int) -> str:
        lines = [entry.to_pointer_line(self.topics_directory_name) for entry in entries[:line_limit]]
        cut = [line if len(line) <= line_length else f"{line[: line_length - 1]}…" for line in lines]
        more = [f"- {len(entries) - line_limit:,} more topics"] if len(entries) > line_limit else []
        return "\n".join(["# Memory", "", *cut, *more, ""])

    def read_state(self, session: AgentSession, *, source_id: str) -> dict[str, Any]:
        """Return the time of the last consolidation and the sessions since then.

        Raises:
            ValueError: The file does not contain such a state.
        """
        path = self._ab_folder(session, source_id) / self.state_file_name
        state = read_json(self.base_path, path, self.loads)
        if state is None:
            return {"last_consolidated_at": None, "sessions_since_consolidation": []}
        _require_state(state, path)
        return dict(state)

    def write_state(self, session: AgentSession, state: Mapping[str, Any], *, source_id: str) -> None:
        """Store the state that `read_state` returns.

        Raises:
            ValueError: It is not such a state.
        """
        path = self._ab_folder(session, source_id) / self.state_file_name
        _require_state(state, path)
        replace_text(self.base_path, path, self.dumps(dict(state)))

    def get_transcripts_directory(self, session: AgentSession, *, source_id: str) -> Path:
        """Return the folder of the transcripts. It may not exist yet."""
        return self._ab_folder(session, source_id) / self.transcripts_directory_name

    def search_transcripts(
        self, session: AgentSession, *, source_id: str, query: str, session_id: str | None = None, limit: int = 20
    ) -> list[dict[str, Any]]:
        """Return the messages that contain a text, ignoring case: `session_id`, `line_number`, `role`, `text`."""
        require_limit("limit", limit, least=1)
        folder, found = self.get_transcripts_directory(session, source_id=source_id), list[dict[str, Any]]()
        paths = folder.glob("*.jsonl")
        if session_id is not None:  # accept the id itself, or the spelling in earlier search results
            stems = {session_id, stem_of(session_id), stem_of(session_id, ignores_case=True)}
            paths = (path for path in paths if path.stem in stems)
        for path, lines in self._ab_texts(paths):
            for number, line in enumerate(lines.split("\n"), start=1):
                message = self._ab_message_in(line)
                text = _message_text(message)
                if query.casefold() in text.casefold():
                    role = message.get("role", "")
                    found.append({"session_id": path.stem, "line_number": number, "role": role, "text": text})
                    if len(found) >= limit:
                        return found
        return found

    def _ab_message_in(self, line: str) -> Mapping[str, Any]:
        try:
            message = self.loads(line)
        except ValueError:  # the line may still be in the middle of a write
            return {}
        return message if isinstance(message, Mapping) else {}

    def get_owner_id(self, session: AgentSession) -> str | None:
        """Return the owner of a session.

        Raises:
            RuntimeError: The session has no owner.
            ValueError: The owner looks like a path.
        """
        owner = session.state.get(self.owner_state_key)
        if not owner:
            message = f"{session!r} has no state {self.owner_state_key!r}. Expected the owner of its memory there."
            raise RuntimeError(message)
        if os.path.isabs(str(owner)) or ".." in str(owner):
            message = f"The owner {owner!r} is a path. Expected the name or the id of an owner."
            raise ValueError(message)
        return str(owner)

    def export_provider_state(self, session: AgentSession) -> dict[str, Any]:
        """Return the state that another session needs to use the same memory: the owner."""
        return {self.owner_state_key: self.get_owner_id(session)}

    def _ab_texts(self, paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """Yield the readable files and their texts in the order of their names."""
        for path in sorted(paths):
            try:
                yield path, read_text(self.base_path, path)
            except (OSError, ValueError) as error:
                logger.warning("A file of the memory cannot be read and is ignored. %s: %s", path, error)

    def _ab_folder(self, session: AgentSession, source_id: str) -> Path:
        owner = f"{self.owner_prefix}{self.get_owner_id(session)}"
        return self.base_path / _encode(source_id) / _encode(owner) / self.kind

    def _ab_topics(self, session: AgentSession, source_id: str) -> Path:
        return self._ab_folder(session, source_id) / self.topics_directory_name

    def _ab_path_of_topic(self, session: AgentSession, source_id: str, topic: str) -> Path:
        folder = self._ab_topics(session, source_id)
        path = folder / f"{slug_of(topic)}.md"
        slugs = {file.stem for file in folder.glob("*.md")}
        if path.stem not in slugs and topic in slugs:  # slug_of() changes a slug that has a digest
            path = folder / f"{topic}.md"
        if path.stem not in slugs:
            records = self.list_topics(session, source_id=source_id)
            names = ", ".join(repr(record.topic) for record in records) or "none"
            message = f"The memory has no topic {topic!r}. Topics: {names}."
            raise FileNotFoundError(message)
        return path


def _require_state(state: object, path: Path) -> None:
    if not isinstance(state, Mapping):
        message = f"The state in {path} is {masked_repr(state)}. Expected a mapping; fix or remove the file."
        raise ValueError(message)


def _encode(name: str) -> str:
    return urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _message_text(message: Mapping[str, Any]) -> str:
    contents = message.get("contents") or ()
    return " ".join(str(content.get("text") or "") for content in contents if isinstance(content, Mapping)).strip()
