"""What is shown below the page of a batch: the run of a row in a stepper, or the inbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentbench._secrets import mask_text
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import AgentFrameworkException, WidgetsUnavailable
from agentbench.notebook.batches.cards import row_details
from agentbench.notebook.batches.words import line
from agentbench.notebook.stepping.options import Options, kernel_loop
from agentbench.notebook.stepping.stepper import Stepper
from agentbench.workflows.run.run import WorkflowRun

if TYPE_CHECKING:
    from agentbench.notebook.runtime.widgets import MessageWidget

_HEIGHT, _LIMIT = 420, 1000  # as in stepper()


class Below:
    """The box of a page and of one panel below it, such as a stepper; a new panel replaces the one before."""

    def __init__(self, batch: Any, page: MessageWidget) -> None:
        import ipywidgets

        self._batch, self._page = batch, page
        self.box = ipywidgets.VBox([page])
        self.opened: Any = None

    def open_row(self, key: str, row_id: str, *, rerun: bool = False) -> dict[str, Any]:
        """Show the run of a row in a stepper; return what the page says about the row.

        If the checkpoints of the run are not kept, nothing is shown below and the page offers to run the input again.
        """
        self.close()
        view: dict[str, Any] = {"id": row_id, "problem": "", "again": False, **row_details(self._batch.row(key))}
        try:
            self.show(_stepper_of(self._batch.open(key, rerun=True) if rerun else self._batch.open(key)))
        except AgentFrameworkException as error:
            view |= {"problem": line(mask_text(str(error)), 400), "again": not rerun}
        return view

    def show(self, panel: Any) -> None:
        """Show a panel."""
        self.close()
        self.opened = panel
        self.box.children = [self._page, panel.widget]

    def close(self) -> None:
        """Close the panel, if there is one."""
        opened, self.opened = self.opened, None
        if opened is not None:
            self.box.children = [self._page]
            opened.close()


def try_call(call: Callable[[], object]) -> str:
    """Make a call that a person requested on a page; return what went wrong, or an empty text."""
    try:
        call()
    except (AgentFrameworkException, KeyError, ValueError, WidgetsUnavailable) as error:
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        return line(mask_text(text), 400)
    return ""


def _stepper_of(run: WorkflowRun) -> Stepper:
    """Return a stepper that drives a run which a batch has opened."""

    async def start(_: Callable[[str], object]) -> WorkflowRun:
        return run

    options = Options(None, "auto", _HEIGHT, kernel_loop(None), _LIMIT, autosave=True)
    return Stepper(run.workflow, start, options, storage=run.storage or InMemoryCheckpointStorage())
