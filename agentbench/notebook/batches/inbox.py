"""The open questions of all rows of a batch as forms; one form can answer all rows that ask the same."""

from __future__ import annotations

import threading
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench._text.redact import preview
from agentbench._workers import run_in_thread
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.notebook.batches.follower import Follower
from agentbench.notebook.batches.words import line
from agentbench.notebook.forms.form import Form, FormState, Respond, request_form
from agentbench.notebook.forms.questions import read_request
from agentbench.notebook.runtime.pacing import TRAIT_LOCK
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay, needs_widgets
from agentbench.workflows.executors.message import WITHDRAWN

_INTERVAL_S = 1.0
_FORMS = 20
_ENDED = (FormState.ANSWERED, FormState.WITHDRAWN, FormState.EXPIRED)


def batch_inbox(batch: Any) -> BatchInbox:
    """Return the open questions of all waiting rows of a batch as forms. A cell displays them.

    Args:
        batch: The batch.

    Example:
        box = batch_inbox(batch)
        box.groups[0].together = True
        box.groups[0].form.answer(True)  # all rows that ask the same
    """
    return BatchInbox(batch)


class QuestionGroup:
    """Rows that ask the same: equal data from the same executor, to be answered with the same type.

    Attributes:
        questions: The open questions, each with the `key` of its row and its `request`, in the order of the batch.
        together: Whether the form answers all of them. By default it only answers the next one.

    Example:
        for group in batch.inbox().groups:
            print(len(group.questions), group.prompt)
    """

    def __init__(self, batch: Any, question: Any) -> None:
        self._batch = batch
        self.questions = [question]
        self.together = False
        self.prompt = read_request(question.request).prompt
        self.request = question.request
        self._form: Form | None = None

    @property
    def form(self) -> Form:
        """The form of the next question; a new one after it was answered."""
        if self._form is not None and self.questions and self._form.state in _ENDED:
            self.close()
        if self._form is None:
            self.request = self.questions[0].request if self.questions else self.request
            origin = f"row {line(self.questions[0].key)}" if len(self.questions) == 1 else ""
            # In a thread, because a batch writes each answer to its database.
            respond: Respond = lambda _, value: run_in_thread(self.answer, value)  # noqa: E731 - typed
            self._form = request_form(
                self.request, respond=respond, withdraw=lambda _: run_in_thread(self.answer, WITHDRAWN), origin=origin
            )
        return self._form

    def close(self) -> None:
        """Remove the form from the page."""
        if self._form is not None:
            self._form.close()
            self._form = None

    def answer(self, value: Any) -> int:
        """Answer the next question, or all of them if `together`; `form.withdraw()` withdraws them.

        Returns:
            How many were answered.

        Raises:
            ValueError: An answer was refused, and the message says how many were accepted before it; or no row asks
                this any more.
        """
        wanted = self.questions if self.together else self.questions[:1]
        if not wanted:
            msg = "No row asks this any more: it was answered elsewhere."
            raise ValueError(msg)
        for accepted, question in enumerate(wanted):
            try:
                self._batch.answer_now(question.key, {question.request.request_id: value})
            except ValueError as error:
                if not accepted:
                    raise
                msg = f"{accepted:,} of {count_text(len(wanted), 'row')} were answered; then {question.key}: {error}"
                raise ValueError(msg) from error
        return len(wanted)

    def has(self, request: Any) -> bool:
        """Whether a request asks the same as this group."""
        return Comparison().same(_facts(self.request), _facts(request))

    def __repr__(self) -> str:
        return f"QuestionGroup({count_text(len(self.questions), 'row')}, {line(self.prompt)!r})"


class BatchInbox(WidgetDisplay):
    """The open questions of a batch, made by `batch_inbox`. A cell displays their forms; `text` is the plain text.

    Example:
        box = batch.inbox()
        print(box.text)
    """

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self._groups: list[QuestionGroup] = []
        self._lock = threading.RLock()
        self._box: Any = None
        self._boxes: dict[QuestionGroup, Any] = {}
        self._follower: Follower | None = None
        self._stand_in = StandIn(self)

    @property
    def groups(self) -> list[QuestionGroup]:
        """The groups of equal questions, in the order of their first rows."""
        self.refresh()
        return list(self._groups)

    def refresh(self) -> None:
        """Read the open questions again; the page does so after each change of the batch."""
        with self._lock:
            alike: dict[object, list[QuestionGroup]] = {}
            for group in self._groups:
                alike.setdefault(_look_of(group.request), []).append(group)
            found: dict[QuestionGroup, list[Any]] = {}
            for question in self.batch.questions():
                similar = alike.setdefault(_look_of(question.request), [])
                fitting = next((group for group in similar if group.has(question.request)), None)
                if fitting is None:
                    similar.append(fitting := QuestionGroup(self.batch, question))
                found.setdefault(fitting, []).append(question)
            for group in {*self._groups, *found}:
                group.questions = found.get(group, [])  # replaced as a whole: another thread may be answering
            self._groups = list(found)
            self._show()

    # ---- display -----------------------------------------------------------------------------------------------------

    @property
    def widget(self) -> Any:
        """The inbox as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        if self._box is None:
            with needs_widgets("inbox.text shows how to answer by code"):
                import ipywidgets
            self._title = ipywidgets.HTML()
            self._box = ipywidgets.VBox([self._title])
            self._box.add_class("abi")
            self._follower = Follower(self.batch, self.refresh, interval_s=_INTERVAL_S)
            self.refresh()
        return self._box

    def _show(self) -> None:
        """Show the forms of the first groups; a group keeps its box, so that typed text stays."""
        if self._box is None:
            return
        from agentbench.notebook.runtime.widgets import close_all

        with TRAIT_LOCK:
            before, self._boxes = self._boxes, {}
            for group in self._groups[:_FORMS]:
                box = self._boxes[group] = before.pop(group, None) or self._box_of(group)
                switch = box.children[1]
                switch.send({"kind": "switch", "count": len(group.questions), "on": group.together})
                if box.children[0] is not group.form.widget:
                    box.children = [group.form.widget, switch]
            self._title.value = f'<div class="abi-empty" role="status">{esc(self._headline)}</div>'
            self._box.children = [self._title, *self._boxes.values()]
            for group, box in before.items():
                group.close()
                close_all(box)

    def _box_of(self, group: QuestionGroup) -> Any:
        import ipywidgets

        from agentbench.notebook.batches.page import SwitchPage

        def receive(message: dict[str, Any]) -> None:
            if message["kind"] == "set":
                group.together = message.get("on") is True
            switch.send({"kind": "switch", "count": len(group.questions), "on": group.together})

        switch = SwitchPage(receive, name="Answer equal questions together")
        return ipywidgets.VBox([group.form.widget, switch])

    @property
    def _headline(self) -> str:
        count = sum(len(group.questions) for group in self._groups)
        if not count:
            return "No open questions."
        kinds = count_text(len(self._groups), "different question")
        more = f"; the first {_FORMS} are shown" if len(self._groups) > _FORMS else ""
        return f"{count_text(count, 'row')} waiting, {kinds}{more}."

    @property
    def text(self) -> str:
        """The questions as plain text, with the code that answers them."""
        groups = self.groups
        lines = [self._headline]
        for group in groups[:_FORMS]:
            first = group.questions[0]
            executor = line(first.request.source_executor_id)
            lines.append(f"{executor}, {count_text(len(group.questions), 'row')}: {line(group.prompt, 200)}")
            lines.append(
                f"  await batch.answer({line(repr(first.key))}, {{{line(repr(first.request.request_id))}: ...}})"
            )
        return "\n".join(lines)

    def close(self) -> None:
        """Remove the forms from the page. May be called twice."""
        from agentbench.notebook.runtime.widgets import close_all

        with self._lock:
            if self._follower is None:
                return
            self._follower.close()
            self._stand_in.close()
            for group in self._boxes:
                group.close()
            close_all(self._box)
            self._box = self._follower = None
            self._boxes = {}

    def __repr__(self) -> str:
        return f"BatchInbox({line(self.batch.name)})"


def _facts(request: Any) -> tuple[Any, ...]:
    return request.source_executor_id, request.response_type, request.data


def _look_of(request: Any) -> object:
    """Return a key that equal requests share, so that only those that look alike are compared."""
    return request.source_executor_id, preview(request.data, limit=500)
