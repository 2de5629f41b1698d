import dataclasses

import pytest

from agentbench._clock import CountingIds, TickingClock
from agentbench.workflows.executors.options import NO_POLICY, ExecutorPolicy, RunOptions, WorkflowSettings


@pytest.mark.parametrize("limits", [{"timeout": 0}, {"timeout": -1}, {"retries": -1}, {"max_concurrency": 0}])
def test_a_limit_that_can_never_be_met_is_refused(limits):
    (name,) = limits
    with pytest.raises(ValueError, match=rf"{name} is {limits[name]}; expected"):
        ExecutorPolicy(**limits)


def test_a_policy_limits_nothing_unless_it_is_told_to():
    assert ExecutorPolicy() == NO_POLICY == ExecutorPolicy(timeout=None, retries=0, max_concurrency=None)
    assert ExecutorPolicy(timeout=0.5, retries=1, max_concurrency=1).timeout == 0.5


def test_a_run_has_no_options_unless_they_are_given():
    assert RunOptions() == RunOptions(
        chain=None, max_iterations=None, observe=None, clock=None, ids=None, metadata={}, keep_events=True
    )
    clock, ids = TickingClock(), CountingIds()
    options = RunOptions(clock=clock, ids=ids, metadata={"user": "Ann"})
    assert (options.clock, options.ids, options.metadata) == (clock, ids, {"user": "Ann"})


def test_a_workflow_is_strict_about_contexts_and_lenient_about_the_rest():
    assert dataclasses.asdict(WorkflowSettings()) == {
        "strict_context": True,
        "check_types": "off",
        "report_drops": False,
        "copy_messages": False,
        "strict_checkpoints": False,
        "checkpoint_run_kwargs": False,
    }


@pytest.mark.parametrize("options", [RunOptions(), WorkflowSettings(), ExecutorPolicy()])
def test_options_are_values_that_do_not_change(options):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(options, dataclasses.fields(options)[0].name, "changed")
