"""The display of a migration: what happens to executors and fields, and the differences in values."""

from typing import Any

from agentbench._text.escape import esc
from agentbench._text.migration import migration_rows, migration_text
from agentbench.notebook.history.changes import changes_html
from agentbench.notebook.look.html import Table, element


def migration_bundle(migration: Any) -> dict[str, Any]:
    """Return the views of a migration by media type."""
    state = "not applied" if migration.applied is None else "applied"
    facts = f" {state} · {migration.before.checkpoint_id} · chain {migration.before.workflow_name}"
    head = element("p", element("b", "Migration"), esc(facts, into="line"), class_="ab_head")
    parts = Table("Executors and fields", ("", "name"), [*migration_rows(migration)]).html()
    return {
        "text/plain": migration_text(migration),
        "text/html": changes_html(migration.diff.changes, "Differences", head, parts),
    }
