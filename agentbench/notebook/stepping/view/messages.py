"""Pure: converts a screen to messages for the three parts of its page: `top`, `side` and `log`.

Any page that has the parts' scripts displays them, with a kernel or without one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from agentbench._text.value_tree import Level, TreeRow
from agentbench.notebook.stepping.model.model import LOG_LINES
from agentbench.notebook.stepping.view.screen_state import EditPlace, ScreenState
from agentbench.notebook.stepping.view.tabs import TABS, TabContent

Message = dict[str, Any]


def messages_of(screen: ScreenState) -> dict[str, Message]:
    """Return the complete message for each part of a new page."""
    return {"top": view_message(screen), "side": side_message(screen), "log": log_message(screen)}


def view_message(screen: ScreenState, stops_from: int = 0) -> Message:
    """Return header, controls and banner, and the checkpoints from index `stops_from`."""
    return {
        "kind": "view",
        "header": asdict(screen.header),
        "status": str(screen.status),
        "announcement": screen.announcement,
        "buttons": screen.buttons,
        "banner": asdict(screen.banner),
        "runMenu": screen.run_menu,
        "moreMenu": screen.more_menu,
        "breakpoints": screen.breakpoints,
        "stops": screen.stops[stops_from:],
        "stopsFrom": stops_from,
        "index": screen.index,
        "position": screen.position,
        "scrubbing": screen.scrubbing,
        "storage": screen.storage,
    }


def log_message(screen: ScreenState, newest: int = LOG_LINES) -> Message:
    """Return the newest lines of the log, and the last one that is not an executor's output."""
    return {
        "kind": "log",
        "lines": [(line.kind, line.text) for line in screen.log[-newest:]],
        "headline": next(((line.kind, line.text) for line in reversed(screen.log) if line.kind != "text"), None),
        "total": screen.log_total,
        "limit": LOG_LINES,
    }


def side_message(screen: ScreenState) -> Message:
    """Return the open tab, with the first level of its values."""
    content = screen.content
    return {
        "kind": "side",
        "tabs": TABS,
        "tab": screen.tab,
        "title": content.title,
        "facts": content.facts,
        "breaks": content.breaks,
        "changes": content.changes,
        "displays": content.displays,
        "stamp": content.stamp,
        "checkpoint": content.checkpoint_id,
        "level": level_rows(content.tree.level(), content, screen.drafts),
    }


def level_rows(level: Level, content: TabContent, drafts: Collection[EditPlace]) -> Message:
    """Return a level of values; each row ends with 0 if it cannot be edited, 1 if it can, and 2 if it has a draft."""

    def edits(row: TreeRow) -> int:
        return 0 if row.path is None else 2 if (content.checkpoint_id, row.path) in drafts else 1

    rows = [(row.name, row.kind, row.text, row.note, row.opens, row.cut, edits(row)) for row in level.rows]
    return {"rows": rows, "start": level.start, "more": level.more}
