"""The picture that a notebook shows in place of a panel without a kernel."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from agentbench._bridge import call_later, submit, threads_available
from agentbench._workers import run_in_thread
from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.bundles import show_as_one
from agentbench.notebook.runtime.kernel import in_kernel, show_in_cell

_CALM_S = 2.0  # drawing takes up to 0.1 s, which must not delay clicks
_WIDGET = ".jp-OutputArea-output.lm-Panel"
_MARKED = ".jp-OutputArea-child:has(> * > style.ab_stand_in)"
# JupyterLab shows an error for a widget without a kernel, even if its output has other content, so the picture is a
# separate output: this style, the picture, the panel. The picture is hidden while the panel is displayed or may still
# load; the error is always hidden. An untrusted notebook has neither style nor panel.
_STYLE = f"""<style class="ab_stand_in">
{_MARKED}, {_MARKED}:has(+ * + * > {_WIDGET} > *) + *, {_MARKED} + * + *:has(> {_WIDGET}.jupyter-widgets),
{_MARKED} + * + * > {_WIDGET}:not(:has(> *)) {{ display: none; }}
{_MARKED} + * {{ animation: ab_stand_in 1s step-end; }}
@keyframes ab_stand_in {{ from {{ position: absolute; visibility: hidden; }} }}
</style>"""


class StandIn:
    """The picture of a panel, stored in the notebook before the panel and visible if the panel is not.

    `read` returns its bundle, whose text starts with the `repr` of the panel; the bundle may be empty.
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

        The plain text of a widget is stored in the notebook, and by default it contains values.
        """
        data, metadata = widget if isinstance(widget, tuple) else (widget or {}, {})
        if include or not in_kernel():
            return {**data, "text/plain": repr(self._panel)}, metadata
        show_in_cell({"text/html": _STYLE, "text/plain": ""}, raw=True)
        self._shown = self._content()
        self._ids.append(uuid.uuid4().hex)  # a new id each time, because outputs with the same id become equal
        show_in_cell(self._shown, raw=True, display_id=self._ids[-1])
        return {**data, "text/plain": ""}, metadata

    def touch(self) -> None:
        """Redraw the picture after a short time without changes. Returns immediately."""
        self._due_s = monotonic() + _CALM_S
        if self._shown is not None and not self._is_due and threads_available():
            self._wait()

    def _wait(self) -> None:
        self._is_due = True
        call_later(self._due_s - monotonic(), self._update_when_calm)

    def _update_when_calm(self) -> None:
        # One wait at a time, regardless of the number of changes.
        if monotonic() < self._due_s:
            self._wait()
        else:
            self._is_due = False
            submit(run_in_thread(self.update))  # drawing would block the engine's loop

    def update(self) -> bool:
        """Redraw the picture; `False` if outputs are compared and must not change after their cell."""
        if settings.current().deterministic:
            return False
        if self._shown is not None and self._shown != (content := self._content()):
            self._shown = content
            for shown in self._ids:
                show_in_cell(content, raw=True, display_id=shown, update=True)
        return True

    def close(self) -> None:
        """Stop updating the picture."""
        self._shown = None

    def _content(self) -> dict[str, Any]:
        content = self._read()
        text = "\n".join(filter(None, [repr(self._panel), content.get("text/plain")]))
        return {**content, "text/plain": text}


class WidgetDisplay:
    """Displays an object with a `widget`, a `text` and a `_stand_in`; as text if widgets are missing."""

    widget: Any
    text: Any
    _stand_in: StandIn

    def _display_(self) -> Any:  # marimo calls it
        return show_as_one(self, lambda: self.text)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        try:
            bundle = self.widget._repr_mimebundle_()
        except WidgetsUnavailable as error:
            return self._bundle_without_widgets(error)
        return self._stand_in.bundle(bundle, include)

    def _bundle_without_widgets(self, error: WidgetsUnavailable) -> dict[str, Any]:
        return {"text/plain": self.text}


@contextmanager
def needs_widgets(instead: str) -> Iterator[None]:
    """Turn a missing module into `WidgetsUnavailable`; `instead` says what works without widgets."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise WidgetsUnavailable(instead, problem=f"{error.name} is not installed") from error
