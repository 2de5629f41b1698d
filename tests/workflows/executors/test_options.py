import dataclasses
import math

import pytest

from agentbench.workflows.executors.options import NO_POLICY, ExecutorPolicy, RunOptions, WorkflowSettings
from tests.parts.errors import raises


@pytest.mark.parametrize("limits", [{"timeout": 0}, {"retries": -1}, {"max_concurrency": 0}])
def test_a_limit_that_can_never_be_met_is_refused(limits):
    (name,) = limits
    with raises(ValueError, name, limits[name]):
        ExecutorPolicy(**limits)
    with raises(TypeError, "'no'", name):
        ExecutorPolicy(**{name: "no"})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [RunOptions, ExecutorPolicy])
@pytest.mark.parametrize(
    ("timeout", "error"),
    [(-1, ValueError), (0, ValueError), (math.nan, ValueError), (True, TypeError), ("5", TypeError)],
)
def test_a_timeout_is_a_number_above_zero(kind, timeout, error):
    with raises(error, repr(timeout)):
        kind(timeout=timeout)


def test_options_limit_and_change_nothing_by_default():
    assert ExecutorPolicy() == NO_POLICY == ExecutorPolicy(timeout=None, retries=0, max_concurrency=None)
    assert RunOptions() == RunOptions(
        chain=None, max_iterations=None, observe=None, clock=None, ids=None, metadata={}, keep_events=True
    )
    assert dataclasses.asdict(WorkflowSettings()) == {
        "strict_context": True,
        "check_types": "off",
        "report_drops": False,
        "copy_messages": False,
        "strict_checkpoints": False,
        "checkpoint_run_kwargs": False,
        "save_input": False,
        "max_messages": 100_000,
    }
