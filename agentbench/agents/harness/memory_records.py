"""Records of a memory: what an agent remembers about one topic, and its Markdown file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self
from urllib.parse import quote, unquote

_OTHERS = re.compile(r"[^a-z0-9]+")
_SEPARATORS = re.compile(r"[\s_-]+")
_LONGEST_SLUG = 80


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
