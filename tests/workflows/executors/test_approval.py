from __future__ import annotations

import dataclasses

import pytest

from agentbench.workflows.executors.approval import Approval


def test_an_approval_without_words_has_an_empty_reason_and_no_edit():
    assert Approval(True) == Approval(approved=True, reason="", edited=None)


def test_a_rejection_is_false_in_a_condition_whatever_the_person_wrote():
    assert not Approval(False, "too long", {"text": "short"})
    assert Approval(True)


def test_an_approval_cannot_be_turned_into_a_rejection_afterwards():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Approval(True).approved = False  # type: ignore[misc]
