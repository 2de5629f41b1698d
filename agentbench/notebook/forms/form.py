"""Forms in a notebook: for a value of any type, and for the response to a request of a run.

Every button has a method with the same checks: `set_raw` types, `submit` sends.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agentbench import _bridge
from agentbench._clock import iso_utc, runtime_defaults
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.exceptions import FormInvalid, NotebookError, RequestAlreadyAnswered, RequestExpired
from agentbench.notebook.forms.fields import NO_VALUE, Raw
from agentbench.notebook.forms.form_text import form_text
from agentbench.notebook.forms.kinds import model_for_request, model_for_type
from agentbench.notebook.forms.model import FormModel, FormState, write_texts
from agentbench.notebook.forms.questions import FormRequest, read_request
from agentbench.notebook.forms.values import ValuePlace
from agentbench.notebook.runtime.listeners import CallbackList, Unsubscribe
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay, needs_widgets
from agentbench.workflows.executors.message import WITHDRAWN
from agentbench.workflows.run.responses import can_be_withdrawn

if TYPE_CHECKING:
    from agentbench.notebook.forms.page import FormPage

__all__ = ["Form", "FormState", "form", "request_form"]

Respond = Callable[[str, Any], object]
Withdraw = Callable[[str], object]

# How long a `submit()` in code waits until the answer is accepted; clicks never wait.
_PATIENCE_S = 10.0


def form(
    type_or_schema: Any,
    *,
    value: Any = NO_VALUE,
    title: str | None = None,
    submit: str = "Submit",
    on_submit: Callable[[Any], object] | None = None,
    strict: bool = False,
) -> "Form":
    """Make a form for one value.

    Models, dataclasses, typed dictionaries, lists, unions and so on have separate fields; any other type is typed
    as JSON. `edit_json` turns any form into one JSON text.

    Args:
        type_or_schema: The type of the value: any type that pydantic can validate. Or a JSON Schema, as a mapping: then
            values are plain dicts and lists.
        value: The initial value, which is the answer unless a person changes it. Of an invalid value, the fields show
            the valid parts. `None` counts only if the type accepts it.
        title: The heading.
        submit: The text of the button.
        on_submit: Called with each submitted value. If it raises, the value is refused and the typed text stays.
        strict: Whether a schema keyword without a field is an error.

    Raises:
        UnsupportedSchema: With `strict`, for a keyword that has no field.
        NotebookError: The type refers to an undefined type, or pydantic cannot validate it.

    Example:
        limit = form(int, value=10, title="How many?", on_submit=print)
        limit.set_raw("value", "12")
        limit.submit()
    """
    made = Form(model_for_type(type_or_schema, value=value, title=title, submit=submit, strict=strict))
    if on_submit is not None:
        made.on_submit(on_submit)
    return made


def request_form(
    request: FormRequest,
    *,
    respond: Respond,
    withdraw: Withdraw | None = None,
    origin: str = "",
    asked_ns: int | None = None,
) -> "Form":
    """Make the form that answers a request of a run.

    Forms of the same event share typed texts and the answer, so a cell may be run again.

    Args:
        request: A `request_info` event, from `run.pending_requests` or a result.
        respond: Called once with the request's id and the answer: `run.respond`, `stepper.respond`, or any
            function. If it is async it runs on the engine thread. If it raises, the answer is refused and the text
            stays.
        withdraw: Called like `respond`, with the request's id, when the question is withdrawn:
            `run.cancel_pending_requests` or `stepper.withdraw`. Without it, the form has no button for that.
        origin: The source of the question in words, such as the run; displayed below the heading.
        asked_ns: Time of the request in nanoseconds since 1970, to display the waiting time.

    Example:
        review = request_form(run.pending_requests[0], respond=run.respond)
        review.set_raw("approved", "Approve")
        review.submit()
    """
    with _MODELS_LOCK:
        if request not in _MODELS:
            _MODELS[request] = model_for_request(read_request(request))
        model = _MODELS[request]
    if not can_be_withdrawn(request):
        withdraw = None
    return Form(model, request=request, respond=respond, withdraw=withdraw, origin=origin, asked_ns=asked_ns)


# The model of each request event, so that typed texts survive running a cell again.
# Keyed by event because request ids can repeat (deterministic ids count from one).
_MODELS: "WeakKeyDictionary[FormRequest, FormModel]" = WeakKeyDictionary()
_MODELS_LOCK = threading.Lock()


class Form(WidgetDisplay):
    """A form, displayed on a page and usable by code; made by `form` and `request_form`.

    A cell displays its fields; `text` is the form as plain text. Every button has a method with the same checks:
    `set_raw` types, `submit` sends, `value` is the answer.

    Raises:
        FormInvalid: By `value`, if a field has a problem; `errors` lists the problems by path.
        RequestAlreadyAnswered: By every method that changes the form, if the request was answered.
        RequestExpired: By every method that changes the form, if the deadline has passed.

    Example:
        trip = form(Trip)
        trip.set_raw("city", "Bergen")
        print(trip.value if trip.submit() else trip.errors)
    """

    def __init__(
        self,
        model: FormModel,
        *,
        request: FormRequest | None = None,
        respond: Respond | None = None,
        withdraw: Withdraw | None = None,
        origin: str = "",
        asked_ns: int | None = None,
    ) -> None:
        self.origin, self.asked_ns = origin, asked_ns
        self._model = model
        self._request, self._respond, self._withdraw = request, respond, withdraw
        self._listeners = CallbackList()
        self._page: FormPage | None = None
        self._stand_in = StandIn(self)

    # ---- content ----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> FormState:
        """The state: editing, validating, invalid, sending, answered, refused or expired."""
        model, deadline = self._model, self._model.content.deadline
        if deadline is not None and runtime_defaults().clock.time_ns() >= deadline.timestamp() * 1e9:
            with model.lock:
                if model.live:
                    model.end(FormState.EXPIRED)
        return model.state

    @property
    def live(self) -> bool:
        """Whether the form can still be answered."""
        _ = self.state
        return self._model.live

    @property
    def raw(self) -> dict[str, Raw]:
        """The typed texts, by path of the field; always readable. `None` means "none".

        The text of a list is its number of rows, that of a union the name of the chosen type. Empty fields that were
        never touched have no entry.
        """
        return self._model.raw

    @property
    def errors(self) -> dict[str, str]:
        """Problems found by the last check, by path; typing removes them."""
        return self._model.errors

    @property
    def refusal(self) -> str:
        """Why the last answer was refused; empty if none was."""
        return self._model.refusal

    @property
    def value(self) -> Any:
        """The submitted answer, otherwise the current value of the fields; raises the errors of the class."""
        with self._model.lock:
            if self._model.state is not FormState.ANSWERED:
                return self._model.value()
            if not self._model.answered_here:
                raise self._already_answered()
            return self._model.answer

    # ---- editing ----------------------------------------------------------------------------------------------------

    def validate(self) -> bool:
        """Validate all fields and set `errors`; return whether they are valid. Does not change texts."""
        with self._model.lock:
            return self._model.state is FormState.ANSWERED or self._model.validate()

    def set_raw(self, path: str, text: Raw) -> None:
        """Type `text` into a field, replacing its text.

        Args:
            path: The field: `"title"`, `"address.city"`, `"tags[0]"`, `"limits[0].key"`; `"value"` if the answer is a
                single value, `"value.int"` if it may have several types; in an approval `"approved"` (`"Approve"` or
                `"Reject"`), `"reason"`, `"edited"`. `raw` and `text` list the current paths.
            text: The text. For a choice the label of an option, for a union the name of a type, for a list its number
                of rows; lists, unions and groups also accept JSON. `None` if the type accepts it.

        Raises:
            KeyError: The field does not exist.
            ValueError: The field does not accept this text.
        """
        with self._editing() as model:
            model.set_raw({path: text})

    def add(self, path: str) -> str:
        """Add an empty row to a list; returns its path."""
        added = self._change_rows(path, ValuePlace.add)
        return next(place.path for place in self._model.root.walk() if place.key == added)

    def remove(self, path: str, at: int) -> None:
        """Remove the row at a position; raises `IndexError` if it does not exist."""
        self._change_rows(path, lambda rows: rows.remove(at))

    def move(self, path: str, at: int, to: int) -> None:
        """Move a row to another position; raises `IndexError` if it does not exist."""
        self._change_rows(path, lambda rows: rows.move(at, to))

    def _change_rows(self, path: str, edit: Callable[[ValuePlace], Any]) -> Any:
        def change(root: ValuePlace) -> Any:
            rows = root.find(path)
            if rows.field.item is None:
                msg = f"{path!r} has no rows. Name a list, a set or a dict."
                raise TypeError(msg)
            return edit(rows)

        with self._editing() as model:
            return model.change(change)

    # ---- the form as JSON -------------------------------------------------------------------------------------------

    @property
    def json(self) -> str:
        """The content of the form as JSON, without secrets and files; texts that are not values stay texts."""
        return self._model.json()

    def edit_json(self, text: str | None = None) -> None:
        """Edit the form as JSON, until `edit_fields`.

        Valid JSON is written into the fields; otherwise `errors` contains the problem.

        Args:
            text: The new JSON; without it the form only switches to JSON.

        Raises:
            JsonError: (a `ValueError`) The fields cannot be written as JSON, because a dict has the same key twice.
        """
        with self._editing() as model:
            model.edit_json(text)

    def edit_fields(self) -> bool:
        """Go back to the fields. Returns whether the JSON text was valid; if not, it stays open."""
        with self._editing() as model:
            return model.edit_fields()

    # ---- the answer -------------------------------------------------------------------------------------------------

    def submit(self) -> bool:
        """Validate the fields and send the answer, once.

        Returns:
            Whether it was accepted. If not, `state` is `invalid` (see `errors`), `refused` (see `refusal`), or still
            `sending` if the other side takes longer than ten seconds.
        """
        return self._wait(self._submit())

    def answer(self, value: Any) -> bool:
        """Send a value of the response type instead of the value of the fields; see `submit`."""
        with self._editing() as model:
            model.enter(FormState.SENDING)
        return self._wait(self._send(value))

    @property
    def can_withdraw(self) -> bool:
        """Whether `withdraw` is possible: the form belongs to a run that can go on without an answer."""
        return self._withdraw is not None

    def withdraw(self) -> bool:
        """Withdraw the question, so that the run goes on without an answer; see `submit`. Typed texts are dropped.

        Raises:
            NotebookError: The form has nothing to withdraw, see `can_withdraw`.
        """
        return self._wait(self.begin_withdrawal())

    def begin_withdrawal(self) -> "_bridge.EngineFuture[None] | None":
        """Do the same as `withdraw`, without waiting until it is accepted."""
        if self._withdraw is None:
            msg = f"{self._name!r} cannot be withdrawn. Pass withdraw= to request_form(), or answer it."
            raise NotebookError(msg)
        with self._editing() as model:
            model.enter(FormState.SENDING)
        return self._send(WITHDRAWN)

    def on_submit(self, fn: Callable[[Any], object]) -> Unsubscribe:
        """Call `fn(value)` with each submitted value. Returns a function that removes it."""
        return self._listeners.add("submit", fn)

    def reopen(self) -> None:
        """Make the submitted value editable again; raises `RequestAlreadyAnswered` for an answered request."""
        with self._editing():
            pass

    def press(self, action: str, raw: Mapping[str, Raw] | None = None) -> None:
        """Press a button by its name, without waiting until the answer is accepted.

        Args:
            action: Name of the button: `submit`, `approve`, `reject`, `edit`, `choose-0` and so on.
            raw: Texts of the fields on the page, by path.

        Raises:
            KeyError: The button or the field does not exist.
        """
        typed = raw or {}
        self.change_and_press(action, lambda root: write_texts(root, typed))

    def change_and_press(self, action: str, edit: Callable[[ValuePlace], Any], *, origin: str | None = None) -> None:
        """Like `press`, with a function that writes the texts; `origin` is the view in which they were typed."""
        buttons = {each.name: each for each in self._model.content.actions}
        if action not in buttons:
            msg = f"There is no button {action!r}. Buttons: {', '.join(buttons)}."
            raise KeyError(msg)
        self._submit(buttons[action].sets, edit, origin)

    def change(self, edit: Callable[[FormModel], Any]) -> Any:
        """Call `edit` with the model to change, as a page does, and return its result; raises as `set_raw`."""
        with self._editing() as model:
            return edit(model)

    def asks(self, request: FormRequest) -> bool:
        """Whether this is the form of a request, even if a restored run emits the same open request again.

        Such an event has the same id and content; it takes over the form and its typed texts if it is still unanswered.
        """
        with _MODELS_LOCK:
            if self._request is None:
                return False
            if (
                request not in _MODELS
                and self._model.live
                and Comparison().same(_facts(self._request), _facts(request))
            ):
                _MODELS[request] = self._model
            if _MODELS.get(request) is not self._model:
                return False
            self._request = request
            return True

    def end_elsewhere(self, answer: Any = None) -> None:
        """Close the form because its request was answered or withdrawn elsewhere, with `answer` if that is known."""
        with self._model.lock:
            if self._model.live:
                self._model.end(_end_state(answer), answer, _now_text(), here=False)

    @contextmanager
    def _editing(self) -> Iterator[FormModel]:
        """Yield the model for a change; reopens a submitted value, and raises if the form is closed."""
        with self._model.lock:
            if self.state is FormState.EXPIRED:
                raise RequestExpired(self._name, self._model.content.deadline_text)
            if self._request is None and self.state is FormState.ANSWERED:
                self._model.reopen()
            if not self._model.live:
                raise self._already_answered()
            yield self._model

    @property
    def _name(self) -> str:
        return self._model.content.name if self._request is None else self._request.request_id

    def _already_answered(self) -> RequestAlreadyAnswered:
        return RequestAlreadyAnswered(self._name, self._model.answered_at)

    def _submit(
        self,
        sets: Mapping[str, Raw] = {},
        edit: Callable[[ValuePlace], Any] = lambda _: None,
        origin: str | None = None,
    ) -> "_bridge.EngineFuture[None] | None":
        """Send the answer; return a future if it is not accepted immediately."""
        with self._editing() as model:
            try:
                answer = model.begin_sending(sets, edit, origin)
            except FormInvalid:
                return None
        return self._send(answer)

    def _send(self, answer: Any) -> "_bridge.EngineFuture[None] | None":
        # Foreign code is called without the lock: it may read this form.
        try:
            if answer is WITHDRAWN and self._withdraw is not None and self._request is not None:
                outcomes = [self._withdraw(self._request.request_id)]
            elif self._respond is not None and self._request is not None:
                outcomes = [self._respond(self._request.request_id, answer)]
            else:
                outcomes = self._listeners.emit("submit", answer)
        except Exception as error:  # noqa: BLE001 - every error of the other side is its refusal
            self._end(answer, error)
            return None
        waiting = [outcome for outcome in outcomes if inspect.isawaitable(outcome) or isinstance(outcome, Future)]
        if waiting:
            return _bridge.submit(self._await_outcomes(answer, waiting))
        self._end(answer)
        return None

    async def _await_outcomes(self, answer: Any, outcomes: "list[Any]") -> None:
        try:
            for outcome in outcomes:
                await (asyncio.wrap_future(outcome) if isinstance(outcome, Future) else outcome)
        except asyncio.CancelledError:
            self._end(answer, RuntimeError("Sending was cancelled."))
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self._end(answer, error)
        else:
            self._end(answer)

    def _end(self, answer: Any, error: Exception | None = None) -> None:
        """Record whether the answer was accepted; `error` is the reason of a refusal."""
        with self._model.lock:
            if error is None:
                self._model.end(_end_state(answer), answer, _now_text())
            elif isinstance(error, RequestAlreadyAnswered):
                self._model.end(FormState.ANSWERED, None, error.answered_at, here=False)
            elif isinstance(error, RequestExpired):
                self._model.end(FormState.EXPIRED)
            else:
                self._model.enter(FormState.REFUSED, str(error) or type(error).__name__)
        self._stand_in.touch()
        if error is None and self._respond is not None and answer is not WITHDRAWN:
            self._listeners.emit("submit", answer)

    def _wait(self, sending: "_bridge.EngineFuture[None] | None") -> bool:
        if sending is not None and not _bridge.on_engine_thread():
            sending.wait_until_done(_PATIENCE_S)
        return self._model.state in (FormState.ANSWERED, FormState.WITHDRAWN) and self._model.answered_here

    # ---- display ----------------------------------------------------------------------------------------------------

    @property
    def widget(self) -> Any:
        """The form as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        with needs_widgets("form.text shows how to answer by code"):
            from agentbench.notebook.forms.page import FormPage
        with self._model.lock:
            if self._page is None:
                self._page = FormPage(self, self._model)
            return self._page.panel

    @property
    def text(self) -> str:
        """The form as plain text, with the code that answers it, without the typed texts."""
        _ = self.state
        return form_text(self._model, can_withdraw=self.can_withdraw)

    def close(self) -> None:
        """Remove the form from the page. The typed texts stay for the next display. May be called twice."""
        if self._page is not None:
            self._page.close()
            self._page = None

    def __repr__(self) -> str:
        return f"Form({self._model.content.name}, {self._model.state})"


def _end_state(answer: Any) -> FormState:
    return FormState.WITHDRAWN if answer is WITHDRAWN else FormState.ANSWERED


def _now_text() -> str:
    return iso_utc(runtime_defaults().clock.time_ns())


def _facts(request: FormRequest) -> tuple[object, ...]:
    return request.request_id, request.source_executor_id, request.response_type, request.data
