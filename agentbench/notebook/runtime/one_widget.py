"""A panel of boxes and parts as one anywidget, for hosts that show no boxes of ipywidgets."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from agentbench.notebook.runtime.widgets import Message, MessageWidget

__all__ = ["as_anywidget"]

_SCRIPT = Path(__file__).parent / "static" / "one_widget.js"
_OF_BOXES = ("layout", "tabbable", "tooltip")
_made: weakref.WeakKeyDictionary[Any, _OneWidget] = weakref.WeakKeyDictionary()


def as_anywidget(panel: Any) -> Any:
    """Return a panel as one anywidget, for hosts that show no boxes of ipywidgets. The same one at each call.

    marimo displays steppers, forms, inboxes and chats by it without being asked; this is for layouts of one's own.

    Args:
        panel: What `stepper`, `chat`, `inbox`, `form` and the like return, or an ipywidget made of boxes.

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
    """Shows a tree of widgets; what its parts say and hear travels as messages of this one.

    From the page: `ready`; `tell` (part, content) and `set` (part, state), what a part would send by itself. To the
    page: `tree` for one view, `children` of a box, `told` and `state` of a part.
    """

    _esm = _SCRIPT.read_text(encoding="utf-8")

    def __init__(self, root: Any, *, name: str) -> None:
        self._root = root
        self._parts: dict[str, Any] = {}
        super().__init__(self._on_message, name=name)
        root.observe(lambda _: self.close(), "comm")  # which it has until it is closed

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
            except traitlets.TraitError:  # no page of ours sent that
                return

    def _tree(self, widget: Any) -> Message:
        """Describe a widget and what is in it; from then on the page hears of its changes."""
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
        return found | {"module": module, "script": widget._esm, "sheet": widget._css, "state": state}  # noqa: SLF001

    def _follow(self, part: Any) -> None:
        """Pass on all that a part sends."""
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
    """What names a widget here; its model has no id any more once it is closed."""
    return f"w{id(widget)}"
