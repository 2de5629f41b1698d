"""Pure: the progress of a run, from its events, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text, state_text
from agentbench.notebook.history.run_history import Superstep
from agentbench.notebook.history.usage import tokens_of
from agentbench.workflows.events.events import WorkflowEvent, count_unanswered

_NAMES = 4


@dataclass
class ProgressState:
    """The progress of a run: finished and expected supersteps, tokens, seconds, open requests."""

    total: int | None = None
    supersteps: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0
    unanswered: int = 0
    _here: Superstep = field(default_factory=lambda: Superstep(0))
    _calls_before: int = 0

    def see(self, event: WorkflowEvent[Any]) -> None:
        """Add one event."""
        if event.type == "superstep_started":
            # The start executors run before the first of these events; they count as a superstep.
            self.supersteps += bool(self._here.calls) and self.supersteps == 0
            self._calls_before = self.calls
            self._here = Superstep(event.iteration or 0)
        self._here.add(event)
        if event.type == "superstep_completed":
            self.supersteps += bool(self._here.calls)  # the last superstep may be empty
        self.tokens += tokens_of(event)
        self.unanswered = count_unanswered([event]) or self.unanswered

    @property
    def calls(self) -> int:
        """Number of called handlers."""
        return self._calls_before + self.share_here[1]

    @property
    def share_here(self) -> tuple[int, int]:
        """Numbers of finished and of called handlers in the current superstep."""
        calls = list(self._here.calls.values())
        called = sum(call.messages_in for call in calls)
        return called - sum(call.at_work for call in calls), called

    @property
    def names_at_work(self) -> str:
        """The executors whose handlers are running; at most the first four."""
        at_work = [call.executor for call in list(self._here.calls.values()) if call.at_work > 0]
        names = [esc(name, into="line", limit=32) for name in at_work[:_NAMES]]
        more = f" and {len(at_work) - _NAMES} more" if len(at_work) > _NAMES else ""
        return f"{', '.join(names)}{more}"

    @property
    def count(self) -> str:
        """The number of supersteps in words."""
        if self.total is None:
            return count_text(self.supersteps, "superstep")
        return f"{self.supersteps:,} of {count_text(self.total, 'superstep')}"

    def consumption(self, *, times: bool = True) -> list[str]:
        """Return the tokens, if any, and the time that the run has used."""
        tokens = [count_text(self.tokens, "token")] if self.tokens else []
        return [*tokens, duration_text(self.elapsed_s)] if times else tokens

    def words(self, *, times: bool = True) -> str:
        """Return the progress in one line."""
        at_work = [f"running: {self.names_at_work}"] if self.names_at_work else []
        return ", ".join([self.count, count_text(self.calls, "call"), *self.consumption(times=times), *at_work])

    def last_words(self, status: object, *, times: bool) -> str:
        """Return the outcome in one line."""
        end = "paused" if str(status).startswith("IN_PROGRESS") else state_text(status, self.unanswered)
        return ", ".join([end, self.count, count_text(self.calls, "call"), *self.consumption(times=times)])
