"""A run or a stepper as an inbox reads it: name, open requests, where answers go, and when to read again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench.notebook.history.questions import Request
from agentbench.notebook.text.phrases import run_name

__all__ = ["Source", "source_of"]

Unwatch = Callable[[], object]


@dataclass(frozen=True)
class Source:
    """One run, as an inbox sees it.

    Attributes:
        name: Name on the page.
        pending: Its open requests, the oldest first.
        send: Takes a request's id and the answer; may be async.
        watch: Calls a function when something happened; returns what ends it.
        answers: Answers sent elsewhere, by request id, as far as they are reported.
    """

    name: str
    pending: Callable[[], Sequence[Request]]
    send: Callable[[str, Any], object]
    watch: Callable[[Callable[[], object]], Unwatch]
    answers: Mapping[str, Any] = field(default_factory=dict)


def source_of(run: Any) -> Source:
    """See a run or a stepper as a source.

    Raises:
        TypeError: If it is neither.
    """
    if hasattr(run, "arespond") and hasattr(run, "pending"):
        return _stepper(run)
    if hasattr(run, "pending_requests") and hasattr(run, "send_response"):
        return _run(run)
    msg = f"An inbox follows what workflow.start() and stepper() return, not {type(run).__name__}."
    raise TypeError(msg)


def _run(run: Any) -> Source:
    workflow = getattr(getattr(run, "workflow", None), "name", None)
    name = f"{workflow}, {run_name(run.run_id)}" if workflow else run_name(run.run_id)

    def watch(look: Callable[[], object]) -> Unwatch:
        listen = getattr(run, "listen", None)
        if listen is None:
            return lambda: None
        stop: Unwatch = listen(lambda _events: look())
        return stop

    return Source(name, lambda: run.pending_requests, run.send_response, watch)


def _stepper(stepper: Any) -> Source:
    answers: dict[str, Any] = {}

    def watch(look: Callable[[], object]) -> Unwatch:
        stops = [stepper.on("answer", lambda answered: answers.update([answered]))]
        stops += [stepper.on(kind, lambda _: look()) for kind in ("status", "step", "request_info", "answer")]
        return lambda: [stop() for stop in stops]

    return Source(
        f"{stepper.name}, {run_name(stepper.run_id)}", lambda: stepper.pending, stepper.arespond, watch, answers
    )
