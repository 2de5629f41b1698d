"""Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand."""

from agentbench._lazy import Door
from agentbench.batch.placement import DaskPlacement as DaskPlacement
from agentbench.workflows.engine.recording import record_call as record_call
from agentbench.workflows.executors.placement import CallRecord as CallRecord
from agentbench.workflows.executors.placement import HandlerCall as HandlerCall
from agentbench.workflows.executors.placement import Placement as Placement

_door: Door
__all__: list[str]
