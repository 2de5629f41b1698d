"""The page's side of a chat: a widget without any text in its traits, and its messages.

From the page: `ready`, `send` (text), `stop`, `fork` (turn), `close`. To the page: `chat`, the surroundings of the
conversation, and `rows`, the changed rows from index `start` on; a new page gets all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentbench._text.escape import esc
from agentbench.messages.message import Message as Said
from agentbench.notebook.cards.conversation.model import Part, turns_of
from agentbench.notebook.look.style import read_script, read_static
from agentbench.notebook.runtime.widgets import Message, MessageWidget

_STATIC = Path(__file__).parent / "static"
_ROWS = 200
_TEXT_LIMIT = 20_000


class ChatPanel(MessageWidget):
    """The widget of a chat, which sends and receives messages."""

    _esm = read_script("dom.js") + (_STATIC / "chat.js").read_text(encoding="utf-8")
    _css = (
        read_script("theme.css") + read_static("conversation.css") + (_STATIC / "chat.css").read_text(encoding="utf-8")
    )


class ChatPage:
    """Sends the changes of a chat to its pages; `calls` are handlers by the kind of message.

    Messages from the page are not trusted: unknown kinds and wrong values are ignored.
    """

    def __init__(self, name: str, calls: Mapping[str, Callable[[Any], object]]) -> None:
        self._calls = calls
        self._sent: list[dict[str, Any]] = []
        self._around: dict[str, Any] = {}
        self.panel = ChatPanel(self._on_message, name=name)

    def draw(self, rows: list[dict[str, Any]], around: dict[str, Any]) -> None:
        """Send all changes."""
        same = next((at for at, (old, new) in enumerate(zip(self._sent, rows, strict=False)) if old != new), None)
        start = min(len(self._sent), len(rows)) if same is None else same
        if start < len(rows) or len(rows) < len(self._sent) or around != self._around:
            self.panel.send({"kind": "chat", "start": start, "rows": rows[start:], **around})
        self._sent, self._around = rows, around

    def _on_message(self, message: Message) -> None:
        if message["kind"] == "ready":
            self.panel.send(
                {"kind": "chat", "view": message.get("view"), "start": 0, "rows": self._sent, **self._around}
            )
            return
        call = self._calls.get(message["kind"])
        if call is not None:
            call(message.get("value"))


def rows_of(messages: Sequence[Said], forks: Mapping[int, int]) -> list[dict[str, Any]]:
    """Return the latest turns in the page's format; `forks`: turn of the chat by its number of messages."""
    turns = turns_of(messages)[-_ROWS:]
    last_of = {
        next((at for at, turn in reversed([*enumerate(turns)]) if turn.at < end), -1): n for end, n in forks.items()
    }
    return [
        {
            "role": turn.role,
            "who": _line(turn.name or turn.role),
            "parts": [_part(each) for each in turn.parts],
            "fork": last_of.get(at),
        }
        for at, turn in enumerate(turns)
    ]


def _part(part: Part) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "text": esc(part.text, into="text", limit=_TEXT_LIMIT),
        "sign": part.sign,
        "outcome": _line(part.outcome),
        "folded": [(_line(label), esc(text, into="text", limit=_TEXT_LIMIT)) for label, text in part.folded],
        "failed": part.failed,
        "picture": part.picture,
    }


def _line(text: str) -> str:
    return esc(text, into="line", limit=200)
