from __future__ import annotations

from agentbench.workflows.executors.approval import Approval


def test_an_approval_is_true_exactly_when_it_approves():
    assert Approval(True) == Approval(approved=True, reason="", edited=None)
    assert Approval(True)
    assert not Approval(False, "too long", {"text": "short"})
