"""Replay of a kept run: the same input and answers, the recorded model calls, and the same times and ids each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentbench._bridge import run_sync
from agentbench._clock import CountingIds, TickingClock
from agentbench.agents.clients.cassette.recording import ModelRecording
from agentbench.revisions.kept_tests.facts import Replayed, facts_of, question_of
from agentbench.workflows.executors.options import RunOptions

if TYPE_CHECKING:
    from agentbench.stategraph.compiled import CompiledGraph
    from agentbench.workflows.run.run import WorkflowRun
    from agentbench.workflows.run.workflow import Workflow

Answer = tuple[str, Any, Any]
"""The executor that asks, its question as a plain value, and the answer."""
_listeners: list[Callable[[Replayed], object]] = []


def listen(listener: Callable[[Replayed], object]) -> Callable[[], None]:
    """Call a function with the result of each replay in this process; the returned function ends this."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def replay(
    workflow: Workflow | CompiledGraph[Any] | Callable[[], Workflow | CompiledGraph[Any]],
    *,
    input: Any,  # noqa: A002 - as in workflow.start()
    answers: Sequence[Answer] = (),
    cassette: str | Path | None = None,
    everything: bool = True,
    fails: bool = False,
) -> Replayed:
    """Run a workflow with recorded answers and return what it did. `run.keep_as_test()` writes tests that call it.

    The run has a clock and ids of its own that are the same each time. It saves nothing and calls no model that the
    cassette could answer.

    Args:
        workflow: The workflow or compiled state graph, or a function without arguments that makes it.
        input: The input of the run.
        answers: The answers to its requests, each as the id of the executor that asks, its question as a plain value,
            and the answer. An answer is given when this executor asks this question.
        cassette: The file of recorded model calls. A request that is not in it is an error.
        everything: Whether the file has the calls of all clients; with False, scripted clients and the like answer
            themselves, as they do without a file.
        fails: The run is expected to fail; `error` of the result then says how.

    Raises:
        AssertionError: An answer is left over, or the run did not fail although it should.
        UnrecordedCallError: The workflow asks a model something that was not recorded.
        Exception: Any error of an executor, unchanged, unless `fails` is set.

    Example:
        from agentbench.testing import replay

        replayed = replay(workflow, input="to be", answers=[("check", "Send it?", True)])
        assert replayed.outputs == ["to be"]
    """
    replayed = run_sync(_replay(workflow, input, answers, cassette, everything, fails))
    for listener in _listeners:
        listener(replayed)
    return replayed


async def _replay(
    workflow: Any,
    message: Any,
    answers: Sequence[Answer],
    cassette: str | Path | None,
    everything: bool,
    fails: bool,
) -> Replayed:
    began = time.time()
    target = workflow if hasattr(workflow, "start") else workflow()
    recording = ModelRecording(new_calls="refuse") if cassette is None else ModelRecording.load(cassette)
    recording.everything = everything and cassette is not None
    if hasattr(target, "astart"):  # a state graph, which may have to read a thread first
        run = await target.astart(message, record=recording)
    else:
        options = RunOptions(clock=TickingClock(), ids=CountingIds(), observe=True, record=recording)
        run = target.start(message, options=options)
    left = list(answers)
    try:
        await run.result()
        while await _answer(run, left, began):
            await run.result()
    except Exception:
        if not fails or run.error is None:
            raise
    else:
        if fails:
            msg = "The run was expected to fail, but it did not. Remove fails=True if this is right."
            raise AssertionError(msg)
    if left and run.error is None:
        asked = [(event.source_executor_id, event.data) for event in run.pending_requests]
        msg = f"The workflow did not ask for this answer: {left[0]!r}. Its open questions are {asked!r}."
        raise AssertionError(msg)
    return facts_of(run, outside=[message, list(answers)], windows=[(began, time.time())])


async def _answer(run: WorkflowRun, left: list[Answer], began: float) -> bool:
    """Give the answers to the open requests; return whether there was one. Answers that were given leave the list."""
    answered = False
    for event in run.pending_requests:
        plain = question_of(event.data, run.run_id, [(began, time.time())])
        match = next((each for each in left if each[0] == event.source_executor_id and each[1] == plain), None)
        if match is not None:
            left.remove(match)
            await run.respond(event, match[2])
            answered = True
    return answered
