"""Where memories are stored, each owner's apart: topics, an index of them, transcripts."""

from __future__ import annotations

import json
import logging
import os
import sys
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbench._files.private_file import read_private, refuse_links, write_private
from agentbench._limits import require_limit
from agentbench.agents.harness.memory_records import MemoryIndexEntry, MemoryTopicRecord, slug_of
from agentbench.agents.history.file_history import stem_of

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession

logger = logging.getLogger("agentbench")

JsonDumps = Callable[[Any], "str | bytes"]
JsonLoads = Callable[["str | bytes"], Any]


class MemoryStore(ABC):
    """Where a `MemoryContextProvider` stores what agents remember. Methods block; the provider calls them in threads.

    In all of them `session` says whose memory it is, and `source_id` which provider's.

    Example:
        from agentbench import MemoryContextProvider, MemoryFileStore

        provider = MemoryContextProvider(store=MemoryFileStore("memory", owner_state_key="user"))
    """

    @abstractmethod
    def list_topics(self, session: AgentSession, *, source_id: str) -> list[MemoryTopicRecord]:
        """Return all topics, ordered by name."""

    @abstractmethod
    def get_topic(self, session: AgentSession, *, source_id: str, topic: str) -> MemoryTopicRecord:
        """Return a topic by its name or slug; FileNotFoundError if there is none."""

    @abstractmethod
    def write_topic(self, session: AgentSession, record: MemoryTopicRecord, *, source_id: str) -> None:
        """Store a topic instead of the one of its name."""

    @abstractmethod
    def delete_topic(self, session: AgentSession, *, source_id: str, topic: str) -> None:
        """Remove a topic by its name or slug; FileNotFoundError if there is none."""

    @abstractmethod
    def rebuild_index(
        self, session: AgentSession, *, source_id: str, line_limit: int, line_length: int
    ) -> list[MemoryIndexEntry]:
        """Write the index of the topics, and return its entries, the latest first."""

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
        """Return the index as text, of these entries if they are given."""

    @abstractmethod
    def read_state(self, session: AgentSession, *, source_id: str) -> dict[str, Any]:
        """Return when memories were consolidated, and the sessions since."""

    @abstractmethod
    def write_state(self, session: AgentSession, state: Mapping[str, Any], *, source_id: str) -> None:
        """Store what `read_state` returns."""

    @abstractmethod
    def get_transcripts_directory(self, session: AgentSession, *, source_id: str) -> Path:
        """Return the folder of the transcripts, which may not be there yet."""

    @abstractmethod
    def search_transcripts(
        self, session: AgentSession, *, source_id: str, query: str, session_id: str | None = None, limit: int = 20
    ) -> list[dict[str, Any]]:
        """Return the messages that have a text in them, ignoring case: `session_id`, `line_number`, `role`, `text`."""

    def get_owner_id(self, session: AgentSession) -> str | None:
        """Return whose memory a session uses; None if all share one."""
        return None

    def export_provider_state(self, session: AgentSession) -> dict[str, Any]:
        """Return the data that another session needs for the same memory."""
        return {}

    def import_provider_state(self, session: AgentSession, *, state: Mapping[str, Any]) -> None:
        """Give a session the memory of the one that the state is of."""
        session.state.update(state)


class MemoryFileStore(MemoryStore):
    """Stores memories in a folder, as Markdown that people can read and edit.

    Below `base_path` each provider and owner has a folder with `MEMORY.md`, `topics/`, `transcripts/` and `state.json`.
    Files are for their owner only, and replaced in one step; reading makes none.

    Args:
        base_path: The folder; made with the first memory.
        kind: Folder of the memory among other files of an owner.
        owner_prefix: In front of the owner's name.
        owner_state_key: Key of `session.state` under which the owner of a session is.
        index_file_name: Name of the index.
        topics_directory_name: Folder of the topics.
        transcripts_directory_name: Folder of the transcripts.
        state_file_name: Name of the file with the state.
        dumps: Writes JSON values, as text or bytes.
        loads: Reads them.

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
        texts = self._texts(self._topics(session, source_id).glob("*.md"))
        records = [MemoryTopicRecord.from_markdown(text, fallback_topic=path.stem) for path, text in texts]
        return sorted(records, key=lambda record: record.topic.casefold())

    def get_topic(self, session: AgentSession, *, source_id: str, topic: str) -> MemoryTopicRecord:
        """Return a topic by its name or slug; FileNotFoundError if there is none."""
        path = self._path_of_topic(session, source_id, topic)
        return MemoryTopicRecord.from_markdown(self._text_of(path), fallback_topic=topic)

    def write_topic(self, session: AgentSession, record: MemoryTopicRecord, *, source_id: str) -> None:
        """Store a topic instead of the one of its name."""
        self._replace(self._topics(session, source_id) / f"{slug_of(record.topic)}.md", record.to_markdown())

    def delete_topic(self, session: AgentSession, *, source_id: str, topic: str) -> None:
        """Remove a topic by its name or slug; FileNotFoundError if there is none."""
        path = self._path_of_topic(session, source_id, topic)
        refuse_links(self.base_path, path.parent)
        path.unlink()

    def rebuild_index(
        self, session: AgentSession, *, source_id: str, line_limit: int, line_length: int
    ) -> list[MemoryIndexEntry]:
        """Write the index of the topics if it has changed, and return its entries, the latest first."""
        records = self.list_topics(session, source_id=source_id)
        latest = sorted(records, key=lambda record: record.updated_at, reverse=True)
        entries = [MemoryIndexEntry.from_topic_record(record) for record in latest]
        text = self._index_text(entries, line_limit, line_length)
        path = self._folder(session, source_id) / self.index_file_name
        known = self._text_of(path) if path.exists() else None
        if text != known and (entries or known):
            self._replace(path, text)
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
        """Return the index as text, of these entries if they are given; the file is not written."""
        if index_entries is None:
            records = self.list_topics(session, source_id=source_id)
            index_entries = [MemoryIndexEntry.from_topic_record(record) for record in records]
        return self._index_text(index_entries, line_limit, line_length)

    def _index_text(self, entries: Sequence[MemoryIndexEntry], line_limit: int, line_length: int) -> str:
        lines = [entry.to_pointer_line(self.topics_directory_name) for entry in entries[:line_limit]]
        cut = [line if len(line) <= line_length else f"{line[: line_length - 1]}…" for line in lines]
        more = [f"- {len(entries) - line_limit:,} more topics"] if len(entries) > line_limit else []
        return "\n".join(["# Memory", "", *cut, *more, ""])

    def read_state(self, session: AgentSession, *, source_id: str) -> dict[str, Any]:
        """Return when memories were consolidated, and the sessions since."""
        path = self._folder(session, source_id) / self.state_file_name
        try:
            found = self.loads(self._text_of(path))
        except FileNotFoundError:
            return {"last_consolidated_at": None, "sessions_since_consolidation": []}
        except ValueError as error:
            message = f"{path} is no JSON: {error}. Mend or remove the file."
            raise ValueError(message) from error
        return dict(found)

    def write_state(self, session: AgentSession, state: Mapping[str, Any], *, source_id: str) -> None:
        """Store what `read_state` returns."""
        self._replace(self._folder(session, source_id) / self.state_file_name, self.dumps(dict(state)))

    def get_transcripts_directory(self, session: AgentSession, *, source_id: str) -> Path:
        """Return the folder of the transcripts, which may not be there yet."""
        return self._folder(session, source_id) / self.transcripts_directory_name

    def search_transcripts(
        self, session: AgentSession, *, source_id: str, query: str, session_id: str | None = None, limit: int = 20
    ) -> list[dict[str, Any]]:
        """Return the messages that have a text in them, ignoring case: `session_id`, `line_number`, `role`, `text`."""
        require_limit("limit", limit, least=1)
        folder, found = self.get_transcripts_directory(session, source_id=source_id), list[dict[str, Any]]()
        paths = folder.glob("*.jsonl")
        if session_id is not None:  # as it was, or as the results of a search spell it
            stems = {session_id, stem_of(session_id), stem_of(session_id, ignores_case=True)}
            paths = (path for path in paths if path.stem in stems)
        for path, lines in self._texts(paths):
            for number, line in enumerate(lines.split("\n"), start=1):
                message = self._message_in(line)
                text = _message_text(message)
                if query.casefold() in text.casefold():
                    role = message.get("role", "")
                    found.append({"session_id": path.stem, "line_number": number, "role": role, "text": text})
                    if len(found) >= limit:
                        return found
        return found

    def _message_in(self, line: str) -> Mapping[str, Any]:
        try:
            found = self.loads(line)
        except ValueError:  # a line that was being written
            return {}
        return found if isinstance(found, Mapping) else {}

    def get_owner_id(self, session: AgentSession) -> str | None:
        """Return the owner of a session.

        Raises:
            RuntimeError: The session has none.
            ValueError: It is a path.
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
        """Return the data that another session needs for the same memory: the owner."""
        return {self.owner_state_key: self.get_owner_id(session)}

    def _texts(self, paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        """Yield the files that can be read, in the order of their names, with their texts."""
        for path in sorted(paths):
            try:
                yield path, self._text_of(path)
            except (OSError, ValueError) as error:
                logger.warning("A file of the memory is left out. %s: %s", path, error)

    def _text_of(self, path: Path) -> str:
        refuse_links(self.base_path, path)
        data, _ = read_private(os.path.abspath(path), sys.maxsize)
        return data.decode("utf-8", "replace")

    def _replace(self, path: Path, content: str | bytes) -> None:
        refuse_links(self.base_path, path.parent)
        data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
        os.makedirs(path.parent, mode=0o700, exist_ok=True)
        write_private(os.path.abspath(path), data)

    def _folder(self, session: AgentSession, source_id: str) -> Path:
        owner = f"{self.owner_prefix}{self.get_owner_id(session)}"
        return self.base_path / _encoded(source_id) / _encoded(owner) / self.kind

    def _topics(self, session: AgentSession, source_id: str) -> Path:
        return self._folder(session, source_id) / self.topics_directory_name

    def _path_of_topic(self, session: AgentSession, source_id: str, topic: str) -> Path:
        folder = self._topics(session, source_id)
        path = folder / f"{slug_of(topic)}.md"
        known = {each.stem for each in folder.glob("*.md")}
        if path.stem not in known and topic in known:  # a slug with a digest is not the slug of itself
            path = folder / f"{topic}.md"
        if path.stem not in known:
            names = ", ".join(repr(each.topic) for each in self.list_topics(session, source_id=source_id)) or "none"
            message = f"The memory does not contain the topic {topic!r}. Expected one of: {names}."
            raise FileNotFoundError(message)
        return path


def _encoded(name: str) -> str:
    return urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _message_text(message: Mapping[str, Any]) -> str:
    contents = message.get("contents") or ()
    return " ".join(str(each.get("text") or "") for each in contents if isinstance(each, Mapping)).strip()
