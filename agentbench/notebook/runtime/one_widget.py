"""A panel of boxes and parts as one anywidget, for hosts that do not support ipywidgets boxes."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from agentbench.notebook.runtime.widgets import Message, MessageWidget

_SCRIPT = Path(__file__).parent / "static" / "one_widget.js"
_OF_BOXES = ("layout", "tabbable", "tooltip")
_made: weakref.WeakKeyDictionary[Any, _OneWidget] = weakref.WeakKeyDictionary()


def as_anywidget(panel: Any) -> Any:
    """Return a panel as one anywidget, for hosts that do not support ipywidgets boxes. Created once.

    marimo uses it automatically for steppers, forms, inboxes and chats; call it for your own layouts.

    Args:
        panel: The result of `stepper`, `chat`, `inbox`, `form` and similar functions, or an ipywidget made of boxes.

    Raises:
        WidgetsUnavailable: ipywidgets or anywidget is not installed, or live panels are off.

    Example:
        mo.hstack([as_anywidget(panel), notes])
    """
    root = getattr(panel, "widget", panel)
    if isinstance(root, anywidget.AnyWidget):
        return root
    if root not in _made:
        _made[root] = _OneWidget(root, name="Panel")
    return _made[root]


class _OneWidget(MessageWidget):
    """Displays a tree of widgets; the messages of its parts are sent as messages of this one.

    From the page: `ready`; `message` (part, content) and `set` (part, state), as a part would send them itself. To the
    page: `tree` for one view, `children` of a box, `message` and `state` of a part.
    """

    _esm = _SCRIPT.read_text(encoding="utf-8")

    def __init__(self, root: Any, *, name: str) -> None:
        self._root = root
        self._parts: dict[str, Any] = {}
        super().__init__(self._on_message, name=name)
        root.observe(lambda _: self.close(), "comm")  # closed together with the root

    def _on_message(self, message: Message) -> None:
        if message["kind"] == "ready":
            self.send({"kind": "tree", "view": message.get("view"), "root": self._tree(self._root)})
            return
        part = self._parts.get(str(message.get("part")))
        if part is None:
            return
        if message["kind"] == "message":
            part._handle_custom_msg(message.get("content"), message["buffers"])  # noqa: SLF001 - as its own comm does
        elif message["kind"] == "set" and isinstance(state := message.get("state"), dict):
            try:
                part.set_state({name: state[name] for name in _traits_of(part) if name in state})
            except traitlets.TraitError:  # an invalid value from a page
                return

    def _tree(self, widget: Any) -> Message:
        """Describe a widget and its contents, and start sending its changes to the page."""
        style = {} if widget.layout.min_width is None else {"min-width": widget.layout.min_width}
        found: Message = {"id": _key(widget), "names": widget._dom_classes, "style": style}  # noqa: SLF001
        is_known = _key(widget) in self._parts
        self._parts[_key(widget)] = widget
        if isinstance(widget, ipywidgets.Box):
            if not is_known:
                widget.observe(self._send_children, "children")
            return found | {"children": [self._tree(each) for each in widget.children]}
        if isinstance(widget, ipywidgets.HTML):
            return found | {"html": widget.value}
        if not is_known:
            self._follow(widget)
        state = {name: getattr(widget, name) for name in _traits_of(widget)}
        module = type(widget).__name__
        return found | {"module": module, "script": widget._esm, "sheet": getattr(widget, "_css", ""), "state": state}  # noqa: SLF001

    def _follow(self, part: Any) -> None:
        """Forward everything that a part sends."""
        key, send = _key(part), part.send

        def send_here_too(content: Message, buffers: Any = None) -> None:
            send(content, buffers)
            self.send({"kind": "message", "part": key, "content": content}, buffers)

        part.send = send_here_too
        part.observe(
            lambda change: self.send({"kind": "state", "part": key, "state": {change["name"]: change["new"]}}),
            _traits_of(part),
        )

    def _send_children(self, change: Any) -> None:
        box = change["owner"]
        for each in {*change["old"]}.difference(change["new"]):
            self._parts.pop(_key(each), None)
        children = [self._tree(each) for each in box.children]
        self.send({"kind": "children", "box": _key(box), "children": children})


def _traits_of(part: Any) -> list[str]:
    return [name for name in part.traits(sync=True) if not name.startswith("_") and name not in _OF_BOXES]


def _key(widget: Any) -> str:
    """Return the key of a widget; its model id is not used because a closed widget has none."""
    return f"w{id(widget)}"
