from __future__ import annotations

from typing import Any

import pytest

from agentbench.agents.loop.configuration import normalize_function_invocation_configuration


def test_nothing_passed_is_the_defaults() -> None:
    assert normalize_function_invocation_configuration(None) == {
        "enabled": True,
        "max_iterations": 40,
        "max_function_calls": None,
        "max_consecutive_errors_per_request": 3,
        "terminate_on_unknown_calls": False,
        "additional_tools": [],
        "include_detailed_errors": False,
    }


@pytest.mark.parametrize(
    "fine",
    [
        {"max_iterations": 1},
        {"max_function_calls": None},
        {"max_function_calls": 1},
        {"max_consecutive_errors_per_request": 0},
        {"max_duration_s": None},
        {"error_scope": "tool", "approval_scope": "call"},
    ],
)
def test_a_value_at_the_edge_of_its_range_is_taken(fine: dict[str, Any]) -> None:
    checked = normalize_function_invocation_configuration(fine)

    assert {key: checked[key] for key in fine} == fine  # type: ignore[literal-required]
