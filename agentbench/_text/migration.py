"""A migration as lines of text; secrets masked, everything escaped."""

from collections.abc import Iterator
from typing import Any

from agentbench._text.changes import change_line
from agentbench._text.escape import esc


def migration_rows(migration: Any) -> Iterator[tuple[str, str]]:
    """Yield what happens to executors and fields: `unchanged`, `renamed`, `dropped` or `new`, and its names."""
    if migration.unchanged:
        yield "unchanged", ", ".join(migration.unchanged)
    for old, new in migration.renamed.items():
        yield "renamed", f"{old} -> {new}"
    for what in migration.dropped:
        yield "dropped", what
    for name in migration.new:
        yield "new", name


def migration_text(migration: Any) -> str:
    """Return the preview of a migration."""
    state = "not applied" if migration.applied is None else f"applied as {migration.applied.checkpoint_id}"
    lines = [f"Migration of {migration.before.checkpoint_id}, {state}"]
    lines += [f"  {kind:9}  {what}" for kind, what in migration_rows(migration)]
    lines = [esc(line, into="line", limit=None) for line in lines]
    return "\n".join([*lines, *(f"  {change_line(change)}" for change in migration.diff)])
