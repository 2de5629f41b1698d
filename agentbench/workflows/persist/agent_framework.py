"""Converts messages and events that agent-framework has pickled to ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage

_REQUEST: Final = ("request_id", "source_executor_id", "request_type", "response_type")


class ForeignMessage(WorkflowMessage):
    """Becomes a plain message as soon as its attributes are set."""

    __slots__ = ()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes of their message; the names are the same as ours."""
        WorkflowMessage.__init__(self, **state)
        self.__class__ = WorkflowMessage  # type: ignore[assignment]


class ForeignEvent(WorkflowEvent[Any]):
    """Becomes a plain event as soon as its attributes are set."""

    __slots__ = ()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes of their event; except for requests, the names are the same as ours."""
        fields = {(name[1:] if name[1:] in _REQUEST else name): value for name, value in state.items()}
        WorkflowEvent.__init__(self, **fields)
        self.__class__ = WorkflowEvent  # type: ignore[assignment]
