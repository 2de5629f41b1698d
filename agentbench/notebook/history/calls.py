"""What each executor did in each superstep of a run, with the times at which its requests were answered."""

from agentbench.notebook.history.requests import answers_of
from agentbench.notebook.history.sources import Run
from agentbench.notebook.history.supersteps import Bar, bars_of

__all__ = ["run_bars"]

# States in which an executor may still be at work.
_GOING = frozenset({"STARTED", "IN_PROGRESS", "IN_PROGRESS_PENDING_REQUESTS"})


def run_bars(run: Run) -> list[Bar]:
    """Return the bars of a run."""
    has_requests = any(event.type == "request_info" for event in run.events)
    answered = {request_id: answer.at_ns for request_id, answer in answers_of(run).items()} if has_requests else {}
    return bars_of(
        run.events,
        over=run.status is not None and run.status not in _GOING,
        answered_ns={request_id: at for request_id, at in answered.items() if at is not None},
        open_requests=run.open_requests,
    )
