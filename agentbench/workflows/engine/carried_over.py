"""What a run inherits from earlier runs of its workflow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """What a run inherited from earlier runs of its workflow.

    Attributes:
        state_keys: Keys of shared state that have a value.
        request_ids: Ids of open requests.
        executor_ids: Executors that have their own state.
    """

    state_keys: tuple[str, ...]
    request_ids: tuple[str, ...]
    executor_ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = (("shared state", self.state_keys), ("open requests", self.request_ids))
        parts = [f"{what} ({', '.join(names)})" for what, names in named if names]
        text = f"{' and '.join(parts)} of earlier runs; to begin without it, call workflow.reset() or workflow.start()"
        if self.executor_ids:
            text += f". Executors keep their own state, except under start(): {', '.join(self.executor_ids)}"
        return text
