"""What a notebook shows where a panel was, when no kernel serves the panel any more."""

import uuid
from collections.abc import Callable
from time import monotonic
from typing import Any

from agentbench._bridge import call_later, submit, threads_available
from agentbench._workers import run_in_thread
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel, show_in_cell

__all__ = ["StandIn"]

_CALM_S = 2.0  # a picture takes up to 0.1 s, which nobody who clicks should wait for
_WIDGET = ".jp-OutputArea-output.lm-Panel"
_MARKED = ".jp-OutputArea-child:has(> * > style.ab_stand_in)"
# JupyterLab shows an error for a widget without a kernel, whatever else its output holds, so the picture is an output
# of its own: this style, the picture, the panel. The picture is hidden while there is a panel, and for the moment in
# which one may still come; the error always. Where a notebook is not trusted there is neither style nor panel.
_STYLE = f"""<style class="ab_stand_in">
{_MARKED}, {_MARKED}:has(+ * + * > {_WIDGET} > *) + *, {_MARKED} + * + *:has(> {_WIDGET}.jupyter-widgets),
{_MARKED} + * + * > {_WIDGET}:not(:has(> *)) {{ display: none; }}
{_MARKED} + * {{ animation: ab_stand_in 1s step-end; }}
@keyframes ab_stand_in {{ from {{ position: absolute; visibility: hidden; }} }}
</style>"""


class StandIn:
    """The picture of a panel, stored in the notebook before the panel and visible where the panel is not.

    `read` returns its bundle; the text of the bundle begins with the `repr` of the panel, and may be all of it.
    """

    def __init__(self, panel: object, read: Callable[[], dict[str, Any]] = dict) -> None:
        self._panel = panel
        self._read = read
        self._ids: list[str] = []
        self._shown: dict[str, Any] | None = None
        self._is_due = False
        self._due_s = 0.0

    def bundle(self, widget: Any, include: object = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the bundle and the metadata of the panel's widget; a notebook displays the picture before it.

        The plain text of a widget is part of a saved notebook, and by default it holds values.
        """
        data, metadata = widget if isinstance(widget, tuple) else (widget or {}, {})
        if include or not in_kernel():
            return {**data, "text/plain": repr(self._panel)}, metadata
        show_in_cell({"text/html": _STYLE, "text/plain": ""}, raw=True)
        self._shown = self._content()
        self._ids.append(uuid.uuid4().hex)  # a new one each time: outputs with the same id become equal
        show_in_cell(self._shown, raw=True, display_id=self._ids[-1])
        return {**data, "text/plain": ""}, metadata

    def touch(self) -> None:
        """Draw the picture anew when nothing has changed for a moment. Returns at once."""
        self._due_s = monotonic() + _CALM_S
        if self._shown is not None and not self._is_due and threads_available():
            self._wait()

    def _wait(self) -> None:
        self._is_due = True
        call_later(self._due_s - monotonic(), self._update_when_calm)

    def _update_when_calm(self) -> None:
        # One wait at a time, however often something changes.
        if monotonic() < self._due_s:
            self._wait()
        else:
            self._is_due = False
            submit(run_in_thread(self.update))  # a picture would hold up the engine's loop

    def update(self) -> bool:
        """Draw the picture anew; `False` where outputs, to be compared, never change after their cell."""
        if settings.current().deterministic:
            return False
        if self._shown is not None and self._shown != (content := self._content()):
            self._shown = content
            for shown in self._ids:
                show_in_cell(content, raw=True, display_id=shown, update=True)
        return True

    def close(self) -> None:
        """Leave the picture as it is."""
        self._shown = None

    def _content(self) -> dict[str, Any]:
        content = self._read()
        text = "\n".join(filter(None, [repr(self._panel), content.get("text/plain")]))
        return {**content, "text/plain": text}
