"""Runs the branches of a what-if: the variants, each several times, through `run_many`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from agentbench._display import shorten
from agentbench._limits import require_limit
from agentbench._secrets import mask_text
from agentbench._text.phrases import count_text
from agentbench.batch.batch import Batch
from agentbench.batch.inputs import Start
from agentbench.batch.many import run_many
from agentbench.batch.rows import RowStatus
from agentbench.batch.running.starts import copy_for_run
from agentbench.batch.views import Question
from agentbench.checkpoints.access import list_lineage, load_checkpoint
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.revisions.what_if.results import WhatIf
from agentbench.revisions.what_if.variants import AS_IT_WAS, Variant, engine_of, match_answers, read_variants
from agentbench.stategraph.running.plan import GraphOptions
from agentbench.workflows.executors.message import MessageType
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.run.execution import ABSENT
from agentbench.workflows.run.responses import check_responses

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.messages.usage import Budget
    from agentbench.workflows.run.run import WorkflowRun

OWN_SHARE: Final = 2
"""How many branches of "as it was" run for each one of a variant. With 20 of each, no test that reports chance in one
of 20 cases finds four of five effects of 40 percentage points; with 40 and 20 it does, at any base rate."""
_MOST_ANSWERS: Final = 20
"""How often executors of a branch may ask again and get the answer of the variant."""


async def what_if(  # noqa: PLR0913 - as of WorkflowRun
    run: WorkflowRun,
    at: int,
    variants: Mapping[str, Mapping[str, Any]],
    repeat: int,
    concurrency: int | str,
    budget: Budget | None,
    prices: Mapping[str, Any] | None,
    progress: bool | None,
) -> WhatIf:
    """Run the branches; see `WorkflowRun.what_if`."""
    require_limit("repeat", repeat, least=1)
    require_limit("at", at)
    runnable = getattr(run, "app", None) or run.workflow
    known = read_variants(variants, runnable)
    notes: list[str] = []
    starts = {each.name: start for each, start in zip(known, await _starts(run, at, known, notes), strict=True)}
    # Variants take turns, so that neither a budget nor the time of day treats them differently.
    share = OWN_SHARE if repeat > 1 else 1
    turns: list[tuple[str, int]] = []
    for number in range(repeat):
        turns += [(AS_IT_WAS, number * share + each + 1) for each in range(share)]
        turns += [(each.name, number + 1) for each in known[1:]]
    keys = {f"{name}/{number}": (name, number) for name, number in turns}
    if progress is not False:
        others = count_text(len(known) - 1, "variant")
        own, each_of = count_text(repeat * share, "time"), count_text(repeat, "time")
        shown = f"{count_text(len(turns), 'run')}: {AS_IT_WAS!r} {own}, {others} {each_of} each"
        sys.stdout.write(f"What if, from superstep {at}: {shown}\n")
    options, kwargs = _options_of(run)
    batch = run_many(
        runnable,
        [starts[name] for name, _ in keys.values()],
        keys=list(keys),
        concurrency=concurrency,
        budget=budget,
        prices=prices,
        options=options,
        run_kwargs=kwargs,
        retry=0,
        checkpoints="none",
        progress=progress,
    )
    await batch
    await _answer_later(batch, {each.name: each.answers for each in known if each.answers}, keys)
    found = {row.key: row for row in batch.rows()}
    ordered = sorted(keys.items(), key=lambda item: list(starts).index(item[1][0]))  # sorting is stable
    rows = {place: found[key] for key, place in ordered if key in found}
    stopped = batch.progress.reason
    if stopped:
        notes.append(f"The runs stopped early: {mask_text(stopped)}")
    return WhatIf(rows, at, repeat, batch, notes)


async def _starts(run: WorkflowRun, at: int, variants: list[Variant], notes: list[str]) -> list[Start]:
    """Return where the branches of each variant begin, after checking that they can."""
    engine = engine_of(run.workflow)
    if at == 0:
        return [_input_start(run, variant) for variant in variants]
    last = run.last_checkpoint
    if run.storage is None or last is None:
        msg = "what_if() needs the checkpoints of the run. Pass checkpoint_storage= to start(), and run it past at=."
        raise WorkflowCheckpointException(msg)
    lineage = [info for info in await list_lineage(run.storage, last) if info.iteration < at]
    if not lineage or at > last.iteration + 1:
        msg = f"at is {at}; expected a superstep of the run with a checkpoint before it, at most {last.iteration + 1}."
        raise ValueError(msg)
    checkpoint = await load_checkpoint(run.storage, lineage[-1])
    if not checkpoint.messages and not checkpoint.pending_request_info_events and engine.boundary_hook is None:
        msg = f"at is {at}, but nothing was left to run then; expected at most {at - 1}."
        raise ValueError(msg)
    # Requests that the run got answers to are open in an earlier checkpoint of the same superstep.
    together = [info for info in lineage if info.iteration == checkpoint.iteration_count]
    asking = await load_checkpoint(run.storage, max(reversed(together), key=lambda info: info.n_requests))
    answered = _answers_in(checkpoint)
    starts = []
    for variant in variants:
        open_requests = asking.pending_request_info_events
        answers = match_answers(variant, open_requests, engine)
        begins = checkpoint
        if answers:
            begins = asking
            earlier = {key: answer for key, answer in answered.items() if key in open_requests}
            answers = check_responses(open_requests, {**earlier, **answers}, engine.graph)
        start = Start(begins, variant.changes, variant.workflow, answers)
        await copy_for_run(start, engine.graph, "trial", "")  # so that changes that do not fit fail before any run
        for key in variant.changes.get("state", {}):
            if key not in begins.state and (near := get_close_matches(str(key), begins.state, 1)):
                hint = f"Did you mean {near[0]!r}?"
                notes.append(f"Variant {shorten(variant.name)} adds {shorten(key)} to the state. {hint}")
        starts.append(start)
    return starts


def _input_start(run: WorkflowRun, variant: Variant) -> Start:
    message = run._first_input.message  # noqa: SLF001 - the input of a run has no public name
    if message is ABSENT or message is None or run.started_from is not None:
        msg = (
            f"at is 0, but the run began at checkpoint {run.started_from!r}, so its input is unknown. Pass a later at=."
        )
        raise ValueError(msg)
    if variant.changes:
        msg = (
            f"Variant {shorten(variant.name)} changes {next(iter(variant.changes))!r} at superstep 0, before which "
            "there is no state. Pass at=1, or run other inputs with run_many()."
        )
        raise ValueError(msg)
    match_answers(variant, {}, engine_of(run.workflow))
    return Start(None, workflow=variant.workflow, input=message)


def _answers_in(checkpoint: WorkflowCheckpoint) -> dict[str, Any]:
    """Return the answers that wait in a checkpoint for their executors, by request id."""
    waiting = [message for queue in checkpoint.messages.values() for message in queue]
    return {
        message.original_request_info_event.request_id: message.data
        for message in waiting
        if message.type is MessageType.RESPONSE and message.original_request_info_event is not None
    }


async def _answer_later(
    batch: Batch, answers: Mapping[str, Mapping[str, Any]], keys: Mapping[str, tuple[str, int]]
) -> None:
    """Answer requests that branches make later, if their variant has an answer for the executor that asks."""

    def find(question: Question) -> Any:
        return answers.get(keys[question.key][0], {}).get(question.request.source_executor_id)

    for _ in range(_MOST_ANSWERS if answers else 0):
        if not any(row.status == RowStatus.WAITING for row in batch.waiting) or not await batch.answer(find):
            return
        await batch


def _options_of(run: WorkflowRun) -> tuple[RunOptions, dict[str, Any]]:
    """Return the options of the run that hold for its branches too, and the keyword arguments."""
    own = run._options  # noqa: SLF001 - the branches are further runs like this one
    options = RunOptions(max_iterations=own.max_iterations, max_messages=own.max_messages, timeout=own.timeout)
    if isinstance(own, GraphOptions):
        config = {key: value for key, value in own.config.items() if key not in ("thread_id", "run_id")}
        return RunOptions(timeout=own.timeout), {"config": config}
    return options, {key: value for key, value in run._first_input.kwargs.items() if value}  # noqa: SLF001 - as above
