"""A plugin of pytest that gives every workflow a boundary hook which does nothing.

`pytest -p tests.tools.null_hook tests/workflows`: whatever holds of plain workflows holds of these, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.graph.boundary import BoundaryOutcome, FailurePolicy, SuperstepView


class NullHook:
    """Watches, and wants nothing."""

    failure_policy: FailurePolicy = "cancel"
    reachability = True
    drives = False

    async def at_boundary(self, view: SuperstepView) -> BoundaryOutcome:
        return BoundaryOutcome()

    async def on_responses(self, answers: Mapping[str, Any], view: SuperstepView) -> BoundaryOutcome:
        return BoundaryOutcome()

    def signature(self) -> None:
        return None


build: Any = WorkflowBuilder._build


def build_with_hook(self: WorkflowBuilder, *args: Any, **settings: Any) -> Any:
    if self._hook is None:
        self._hook = NullHook()
    return build(self, *args, **settings)


setattr(WorkflowBuilder, "_build", build_with_hook)  # noqa: B010 - its class is not ours to change, but here
