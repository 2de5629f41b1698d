"""The inbox: the open requests of several runs in one place, the newest at the bottom, each with its own form."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench._clock import runtime_defaults
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, run_name
from agentbench._workers import run_in_thread
from agentbench.notebook.forms.form import Form, FormState, request_form
from agentbench.notebook.forms.questions import FormQuestion, FormRequest, read_request
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay, needs_widgets
from agentbench.workflows.executors.message import WITHDRAWN
from agentbench.workflows.run.responses import id_of_request

_EMPTY = '<div class="abi-empty" role="status">No open requests.</div>'


def inbox(*runs: Any) -> "Inbox":
    """Show the open requests of several runs together, and update the list when requests change.

    Args:
        runs: Runs (`workflow.start(...)`) and steppers. More can be added later, with `Inbox.add`.

    Raises:
        TypeError: If an argument is neither.

    Example:
        box = inbox(first, second)
        box  # the forms
        box.respond(box.requests[0], Approval(True))  # a value of its response type
    """
    made = Inbox()
    for run in runs:
        made.add(run)
    return made


class InboxEntry:
    """One request in an inbox: the event, the name of its run, the question, and the form that answers it."""

    def __init__(self, request: FormRequest, source: "Source") -> None:
        self.request, self.source, self.run = request, source, source.name
        self.question: FormQuestion = read_request(request)
        self.asked_ns: int | None = getattr(request, "time_ns", None)
        self.superstep: int | None = getattr(request, "superstep", None)
        origin = self.run if self.superstep is None else f"{self.run}, superstep {self.superstep}"
        self.form: Form = request_form(
            request, respond=source.send, withdraw=source.withdraw, origin=origin, asked_ns=self.asked_ns
        )

    @property
    def request_id(self) -> str:
        """Id of the request."""
        return self.request.request_id

    @property
    def executor(self) -> str:
        """Id of the requesting executor."""
        return self.request.source_executor_id

    @property
    def waiting_s(self) -> float | None:
        """Waiting time in seconds; `None` if its run records no times."""
        if self.asked_ns is None:
            return None
        return max(0.0, (runtime_defaults().clock.time_ns() - self.asked_ns) / 1e9)

    def __repr__(self) -> str:
        return f"InboxEntry({self.request_id!r} from {self.executor} in {self.run}, {self.form.state})"


class Inbox(WidgetDisplay):
    """The open requests of several runs, made by `inbox`. A cell displays their forms; `text` is the plain text.

    An answered form is removed when the next request arrives. Text typed into the other forms is kept. Pass runs and
    steppers to `inbox` or `add`, which raises `TypeError` for anything else.

    Example:
        box = inbox(first, second)
        for entry in box:
            print(entry.run, entry.question.prompt)
        box.respond(box.requests[0], Approval(True))  # a value of its response type
    """

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._entries: list[InboxEntry] = []
        self._unwatch: list[Callable[[], object]] = []
        self._lock = threading.RLock()
        self._box: Any = None
        self._stand_in = StandIn(self)
        self._closed = False

    # ---- requests ---------------------------------------------------------------------------------------------------

    def add(self, run: Any) -> None:
        """Add a run or a stepper.

        Raises:
            TypeError: If `run` is neither.
        """
        with self._lock:
            self._sources.append(_source_of(run))
            self._unwatch.append(self._sources[-1].watch(self.refresh))
            self.refresh()

    @property
    def requests(self) -> list[InboxEntry]:
        """The open requests, the oldest first."""
        self.refresh()
        return [entry for entry in self._entries if entry.form.live]

    def __len__(self) -> int:
        return len(self.requests)

    def __iter__(self) -> Iterator[InboxEntry]:
        return iter(self.requests)

    def form(self, request_id: str, *, run: str | None = None) -> Form:
        """The form of a request, also of one that was just answered.

        Raises:
            KeyError: If the request does not exist; the message lists the existing ones.
            ValueError: If several runs have this request; pass `run`.
        """
        self.refresh()
        matches = [e for e in self._entries if e.request_id == request_id and run in (None, e.run)]
        if not matches:
            ids = ", ".join(repr(entry.request_id) for entry in self._entries) or "none"
            msg = f"There is no request {request_id!r} in this inbox. Requests: {ids}."
            raise KeyError(msg)
        live = [entry for entry in matches if entry.form.live]
        if len(matches) > 1 and len(live) != 1:
            names = ", ".join(entry.run for entry in matches)
            msg = f"{len(matches)} runs have a request {request_id!r}. Pass one of them as run=: {names}."
            raise ValueError(msg)
        return (live or matches)[0].form

    def respond(self, request: FormRequest | InboxEntry | str, value: Any, *, run: str | None = None) -> bool:
        """Answer a request with a value of its response type.

        Returns:
            Whether the run accepted the answer within ten seconds.

        Raises:
            KeyError: If the request does not exist.
            ValueError: If several runs have this request (pass `run`), or its run refuses the value.
            RequestAlreadyAnswered: If it was answered before.
            RequestExpired: If its deadline has passed.
        """
        form = self.form(id_of_request(request), run=run)
        taken = form.answer(value)
        if form.state is FormState.REFUSED:
            raise ValueError(form.refusal)
        return taken

    answer = respond

    def withdraw(self, request: FormRequest | InboxEntry | str, *, run: str | None = None) -> bool:
        """Withdraw a question, so that its run goes on without an answer.

        Returns:
            Whether the run accepted it within ten seconds.

        Raises:
            KeyError: If the request does not exist.
            ValueError: If several runs have this request (pass `run`), or its run refuses.
            RequestAlreadyAnswered: If it was answered or withdrawn before.
            NotebookError: If the run cannot go on without an answer: the request is an interrupt of a state graph.
        """
        form = self.form(id_of_request(request), run=run)
        taken = form.withdraw()
        if form.state is FormState.REFUSED:
            raise ValueError(form.refusal)
        return taken

    def refresh(self) -> None:
        """Read the open requests again. This happens automatically at each change of a run and on each access."""
        with self._lock:
            if self._closed:
                return
            entries: list[InboxEntry] = []
            for source, request in [(each, request) for each in self._sources for request in each.pending()]:
                existing = next((e for e in self._entries if e.source is source and e.form.asks(request)), None)
                entries.append(existing or InboxEntry(request, source))
                entries[-1].request = request
            for entry in self._entries:
                if entry not in entries:
                    entry.form.end_elsewhere(entry.source.answers.get(entry.request_id))
            if not {*entries} <= {*self._entries}:
                # Requests without a time keep their order.
                self._entries = sorted(entries, key=lambda entry: entry.asked_ns or 0)
            # Inside the lock, because the engine, the kernel and the page call this from different threads.
            if self._box is not None and self._entries:
                self._box.children = [entry.form.widget for entry in self._entries]

    # ---- display ----------------------------------------------------------------------------------------------------

    @property
    def widget(self) -> Any:
        """The inbox as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: If ipywidgets or anywidget is missing.
        """
        with needs_widgets("inbox.text shows how to answer by code"):
            import ipywidgets
        with self._lock:
            if self._box is None:
                self._box = ipywidgets.VBox([ipywidgets.HTML(_EMPTY)])
                self._box.add_class("abi")
            self.refresh()
            return self._box

    @property
    def text(self) -> str:
        """The inbox as plain text, with the code that answers, without typed text."""
        entries = self.requests
        lines = [count_text(len(entries), "open request")]
        for entry in entries:
            waiting = "" if entry.waiting_s is None else f", waiting {entry.waiting_s:.0f} s"
            step = "" if entry.superstep is None else f", superstep {entry.superstep}"
            lines.append(f"{esc(entry.run, into='line')}: {esc(entry.executor, into='line')}{step}{waiting}")
            lines.append(f"  {esc(entry.question.prompt, into='line', limit=200)}")
            if entry.question.deadline is not None:
                lines.append(f"  before {entry.question.deadline:%Y-%m-%d %H:%M:%S} UTC")
            lines.append(f"  inbox.respond({entry.request_id!r}, ...)")
            if entry.form.can_withdraw:
                lines[-1] += f" or inbox.withdraw({entry.request_id!r})"
        return "\n".join(lines)

    def close(self) -> None:
        """Remove the forms from the page and stop following the runs. Typed text is kept. May be called twice."""
        with self._lock:
            self._closed = True
            while self._unwatch:
                self._unwatch.pop()()
            for entry in self._entries:
                entry.form.close()
            if self._box is not None:
                self._box.children = ()
                self._box.close()
                self._box = None

    def __repr__(self) -> str:
        return f"Inbox({count_text(len(self._sources), 'run')}, {len(self.requests):,} open)"


# ---- runs and steppers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """The interface of a run or a stepper to an inbox; `watch` subscribes a function and returns its unsubscribe."""

    name: str
    pending: Callable[[], Sequence[FormRequest]]
    send: Callable[[str, Any], object]
    withdraw: Callable[[str], object] | None
    watch: Callable[[Callable[[], object]], Callable[[], object]]
    answers: Mapping[str, Any] = field(default_factory=dict)
    """Answers sent elsewhere, by request id, if they are reported."""


def _source_of(run: Any) -> Source:
    if hasattr(run, "pending_requests") and hasattr(run, "send_response"):
        workflow = getattr(getattr(run, "workflow", None), "name", None)
        name = f"{workflow}, {run_name(run.run_id)}" if workflow else run_name(run.run_id)
        listen = getattr(run, "listen", lambda _: lambda: None)
        return Source(
            name,
            lambda: run.pending_requests,
            run.send_response,
            getattr(run, "cancel_pending_requests", None),
            lambda look: listen(lambda _: look()),
        )
    if not (hasattr(run, "pending") and hasattr(run, "respond")):
        msg = f"An inbox needs runs from workflow.start() or steppers from stepper(), not {type(run).__name__}."
        raise TypeError(msg)
    answers: dict[str, Any] = {}

    def watch(look: Callable[[], object]) -> Callable[[], object]:
        stops = [run.on("answer", lambda answered: answers.update([answered]))]
        stops += [run.on(kind, lambda _: look()) for kind in ("status", "step", "request_info", "answer")]
        return lambda: [stop() for stop in stops]

    def send(request_id: str, value: Any) -> object:
        return run_in_thread(run.respond, request_id, value)  # because it waits for the run

    def withdraw(request_id: str) -> object:
        return run_in_thread(run.withdraw, request_id)

    return Source(f"{run.name}, {run_name(run.run_id)}", lambda: run.pending, send, withdraw, watch, answers)


# ---- the requests of one run ----------------------------------------------------------------------------------------


class RequestForms:
    """The forms of a stepper's open requests, oldest first; an answered form stays until the run continues.

    `answer` also gets withdrawals. With `can_withdraw=False` the forms offer none, because the run needs every answer.
    """

    def __init__(self, answer: Callable[[str, Any], object], *, can_withdraw: bool = True) -> None:
        import ipywidgets

        self.box = ipywidgets.VBox([])
        self.box.add_class("abs-requests")
        self._answer, self._can_withdraw = answer, can_withdraw
        self._title = ipywidgets.HTML()
        self._forms: dict[str, Form] = {}
        """Displayed and still open forms: a failed run has no requests until it continues."""
        self._open: dict[str, Form] = {}
        self._moved = -1

    def show(self, requests: Sequence[FormRequest], title: str, steps: int) -> bool:
        """Update the forms after `steps` supersteps, and return whether a request is new."""
        wanted = {request.request_id: self._form_of(request) for request in requests}
        new = any(self._forms.get(key) is not form for key, form in wanted.items())
        stays = not new and steps == self._moved
        every = self._forms | wanted
        forms = {key: form for key, form in every.items() if key in wanted or (stays and not form.live)}
        self._moved = steps
        if not new and forms.keys() == self._forms.keys():
            return False
        for key, form in self._forms.items():
            if forms.get(key) is not form:
                form.close()
        self._open = {key: form for key, form in (self._open | every).items() if form.live}
        self._forms = forms
        # No user text here: forms receive theirs by message. A single form needs no title.
        bars = '<span class="abs-bars" aria-hidden="true"></span>'
        self._title.value = f'<div class="abs abs-asking">{bars} {title}</div>'
        above = [self._title] if len(wanted) > 1 else []
        self.box.children = [*above, *(form.widget for form in forms.values())]
        return new

    def _form_of(self, request: FormRequest) -> Form:
        form = self._forms.get(request.request_id) or self._open.get(request.request_id)
        if form is not None and form.asks(request):
            return form
        return request_form(request, respond=self._answer, withdraw=self._withdraw if self._can_withdraw else None)

    def _withdraw(self, request_id: str) -> object:
        return self._answer(request_id, WITHDRAWN)

    def close(self) -> None:
        """Remove the forms from the page."""
        from agentbench.notebook.runtime.widgets import close_all

        for form in self._forms.values():
            form.close()
        self._forms.clear()
        self._open.clear()
        close_all(self._title)
        close_all(self.box)
