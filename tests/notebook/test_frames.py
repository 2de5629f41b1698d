from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter

from agentbench import (
    Approval,
    CheckpointInfo,
    CheckpointManager,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowRun,
    executor,
    handler,
    response_handler,
    run_sync,
)
from agentbench.notebook import Frames
from agentbench.notebook.frames.frames import (
    checkpoints_frame,
    events_frame,
    lineage_frame,
    messages_frame,
    requests_frame,
    runs_frame,
    state_frame,
    timeline_frame,
    usage_frame,
)
from agentbench.notebook.plots.compare import compare
from tests.parts.elsewhere import Elsewhere
from tests.parts.errors import raises, warns

pytestmark = pytest.mark.usefixtures("counted")

NAMES = ("checkpoints", "messages", "state", "events", "timeline", "usage", "requests", "runs", "lineage")

#: Columns of each table, in order, with what a dtype must print as.
COLUMNS = {
    "checkpoints": "parent_id=string run_id=category superstep=int64 created=datetime64[ns, UTC] source=category "
    "n_messages=int64 n_requests=int64 size_bytes=int64 graph_hash=category seq=int64 depth=int64 "
    "workflow_name=category input=string",
    "messages": "source=string target=string type=category size=int64 preview=string trace_id=string "
    "checkpoint_id=string run_id=category",
    "state": "value=object old=object op=category executor=category checkpoint_id=string run_id=category",
    "events": "time=datetime64[ns, UTC] superstep=Int64 type=category executor=category duration_ms=float64 "
    "attempt=Int64 worker=category span_id=string parent_span_id=string preview=string run_id=category",
    "timeline": "start=datetime64[ns, UTC] end=datetime64[ns, UTC] duration_ms=float64 status=category "
    "wait_ms=float64 messages_in=int64 messages_out=int64 worker=string run_id=category",
    "usage": "model=category tokens_in=Int64 tokens_out=Int64 tokens_cached=Int64 cost=Float64 latency_ms=float64 "
    "run_id=category",
    "requests": "kind=category executor=category superstep=int64 asked=datetime64[ns, UTC] "
    "answered=datetime64[ns, UTC] wait_s=float64 answer=object checkpoint_id=string run_id=category",
    "runs": "status=category started=datetime64[ns, UTC] duration_s=float64 supersteps=int64 checkpoints=int64 "
    "tokens_in=Int64 tokens_out=Int64 tokens_cached=Int64 cost=Float64 forked_from=string error=string",
    "lineage": "parent_id=string checkpoint_id=string run_id=category is_fork=bool",
}
INDEX = {
    "checkpoints": {"checkpoint_id": "string"},
    "messages": {"superstep": "int64", "position": "int64"},
    "state": {"superstep": "int64", "key": "string"},
    "events": {"seq": "int64"},
    "timeline": {"superstep": "int64", "executor": "string"},
    "usage": {"superstep": "int64", "executor": "string", "call": "int64"},
    "requests": {"request_id": "string"},
    "runs": {"run_id": "string"},
    "lineage": {None: "int64"},
}


class Write(Executor):
    """Drafts, asks for approval, and sends the draft on."""

    @handler
    async def draft(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("draft", {"text": text, "api_key": "sk-1"})
        ctx.set_state("rounds", 1)
        await ctx.request_info({"prompt": "Publish?", "password": "hunter2"}, Approval)

    @response_handler
    async def decided(self, request: dict, answer: Approval, ctx: WorkflowContext[str]) -> None:  # type: ignore[type-arg]
        ctx.set_state("draft", {"text": answer.reason})
        await ctx.send_message(answer.reason)


class Show(Executor):
    @handler
    async def show(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        used = {"input_token_count": 30, "output_token_count": 2}
        await ctx.add_event(WorkflowEvent("model_usage", {"model": "m", "usage_details": used}, executor_id=self.id))
        await ctx.yield_output(text)


class Break(Executor):
    @handler
    async def stop(self, text: str, ctx: WorkflowContext[str]) -> None:
        raise ValueError("broken")


def review(name: str = "review", end: type[Executor] = Show) -> Workflow:
    write = Write("write")
    return WorkflowBuilder(start_executor=write, name=name).add_edge(write, end("show")).build()


async def answered(storage: InMemoryCheckpointStorage | None, workflow: Workflow | None = None) -> WorkflowRun:
    run = (workflow or review()).start("Once", checkpoint_storage=storage)
    await run.result()
    await run.send_response(run.pending_requests[0].request_id, Approval(True, "Twice"))
    await run.result()
    return run


def build(source: Any, name: str, **more: Any) -> pd.DataFrame:
    frame = getattr(Frames(source), name)(**more)
    assert isinstance(frame, pd.DataFrame)
    return frame


def shape_of(frame: pd.DataFrame) -> tuple[str, dict[Any, str]]:
    index = frame.index
    keys = index.to_frame().dtypes if isinstance(index, pd.MultiIndex) else {index.name: index.dtype}
    # Either storage of text is fine; pandas 3 prints one of them as "str".
    columns = " ".join(f"{name}={dtype}" for name, dtype in frame.dtypes.items())
    return columns, {name: str(dtype) for name, dtype in keys.items()}


# ---- shapes


def test_a_frame_without_rows_has_the_columns_of_one_with_rows(storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    for name in NAMES:
        full, empty = build(run, name, full=True), build([], name)
        assert len(full) > 0, name
        assert len(empty) == 0, name
        assert shape_of(full) == shape_of(empty) == (COLUMNS[name], INDEX[name])


def every_kind_of_source(storage: InMemoryCheckpointStorage) -> dict[str, Any]:
    run, other = run_sync(answered(storage)), run_sync(answered(None))
    loaded = run_sync(storage.list_checkpoints(workflow_name="review"))
    return {
        "storage": storage,
        "manager": CheckpointManager(storage),
        "run": run,
        "events": list(run.events),
        "checkpoints": loaded,
        "infos": run.checkpoints,
        "empty storage": InMemoryCheckpointStorage(),
        "nested": [[run], (storage, other)],
        "mixed": [run, storage, other, *loaded, run.checkpoints],
        "with an id": [storage, "run-1"],
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_frame_is_freed_as_soon_as_nobody_holds_it(name: str, storage: InMemoryCheckpointStorage):
    frame = getattr(Frames(storage), name)()
    frame._repr_html_()
    reference = weakref.ref(frame)
    gc.collect()
    gc.disable()
    try:
        del frame
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.filterwarnings(
    "ignore:Storages and checkpoints have no events", "ignore:This run has no checkpoint storage"
)
def test_every_source_and_mixture_gives_the_same_columns(storage: InMemoryCheckpointStorage):
    for kind, source in every_kind_of_source(storage).items():
        for name in NAMES:
            assert shape_of(build(source, name, full=True)) == (COLUMNS[name], INDEX[name]), kind


@pytest.mark.filterwarnings("ignore:Storages and checkpoints have no events")
def test_a_mixture_of_sources_has_no_row_twice(storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    for name in NAMES:
        pd.testing.assert_frame_equal(build([run, storage], name), build(run, name))


@pytest.mark.parametrize("limit", [None, 2])
def test_ids_among_the_sources_filter_the_content_of_storages(limit: int | None, storage: InMemoryCheckpointStorage):
    for _ in range(3):
        run_sync(answered(storage))
    for name in ("checkpoints", "messages", "state", "requests", "runs", "lineage"):
        one, two = build([storage, "run-2"], name, limit=limit), build([storage, "run-1", "run-3"], name)
        assert set(one.reset_index()["run_id"]) == {"run-2"}, name
        assert set(two.reset_index()["run_id"]) == {"run-1", "run-3"}, name
        assert len(build([storage, "unheard-of"], name)) == 0, name


def test_ids_without_a_storage_are_refused():
    with raises(TypeError, "'run-1'", "[storage, id]"):
        checkpoints_frame(["run-1"])


def test_a_stepper_is_a_source_for_its_run(storage: InMemoryCheckpointStorage):
    from agentbench.notebook import stepper

    panel: Any = stepper(review(), "Once", storage=storage)
    panel.step()
    assert timeline_frame(panel).index.tolist() == timeline_frame(panel.handle).index.tolist() == [(0, "write")]
    assert list(checkpoints_frame(panel).index) == ["input", "cp-0001"]
    panel.close()


def test_each_frame_is_new_and_has_its_filter_as_attributes(storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    for name in NAMES:
        first = build(run, name, limit=1)
        assert len(first) == 1, name
        about = {"kind": name, "run_id": "run-1", "workflow_name": None, "since": None, "limit": 1}
        assert first.attrs["agentbench"] == about
        del first[first.columns[0]]
        pd.testing.assert_frame_equal(build(run, name), build(run, name))


# ---- checkpoints


def test_checkpoints_are_listed_in_order_with_their_parents_and_depth(storage: InMemoryCheckpointStorage):
    run_sync(answered(storage))
    frame = checkpoints_frame(storage)
    assert list(frame.index) == ["cp-0001", "cp-0002", "cp-0003", "cp-0004"]
    assert frame["parent_id"].isna().tolist() == [True, False, False, False]
    assert frame["parent_id"].dropna().tolist() == ["cp-0001", "cp-0002", "cp-0003"]
    assert frame["depth"].tolist() == [0, 1, 2, 3]
    assert frame["seq"].tolist() == [1, 2, 3, 4]
    assert frame["superstep"].tolist() == [1, 1, 2, 3]
    assert frame["source"].tolist() == ["step", "answer", "step", "step"]
    assert frame["n_requests"].tolist() == [1, 0, 0, 0]
    assert frame["n_messages"].tolist() == [0, 1, 1, 0]
    assert frame["created"].is_monotonic_increasing
    assert frame["created"].iloc[0] == pd.Timestamp("2024-01-01T00:00:00.008Z")
    assert frame["run_id"].unique().tolist() == ["run-1"]


def test_checkpoints_beyond_a_restore_are_not_forgotten(storage: InMemoryCheckpointStorage):
    async def main() -> WorkflowRun:
        run = await answered(storage)
        await run.restore_checkpoint(run.checkpoints[1])
        await run.result()
        return run

    run = run_sync(main())
    assert len(run.checkpoints) == 4
    frame = checkpoints_frame(run)
    assert list(frame.index) == ["input", *(f"cp-000{number}" for number in range(1, 7))]
    assert frame["depth"].tolist() == [0, 0, 1, 2, 3, 2, 3]


@pytest.mark.parametrize("save_input", [False, True])
def test_the_input_is_the_first_row_of_a_run_with_its_secrets_masked(
    storage: InMemoryCheckpointStorage, save_input: bool
):
    async def main() -> WorkflowRun:
        options = RunOptions(save_input=save_input)
        run = (
            WorkflowBuilder(Pass(id="pass"))
            .build()
            .start({"left": 1, "api_key": "sk-hidden"}, checkpoint_storage=storage, options=options)
        )
        await run.result()
        return run

    class Pass(Executor):
        @handler
        async def work(self, given: dict[str, Any], ctx: WorkflowContext) -> None:
            pass

    frame = checkpoints_frame(run_sync(main()))
    assert (len(frame), frame["superstep"].iloc[0]) == (2, -1)
    assert (frame["source"].iloc[0], frame["input"].notna().tolist()) == ("input", [True, False])
    assert (frame.index[0] == "input") is not save_input  # otherwise it is a checkpoint
    assert "left" in frame["input"].iloc[0]
    assert "sk-hidden" not in frame.to_string()


def test_a_storage_is_narrowed_to_a_chain_or_a_run(storage: InMemoryCheckpointStorage):
    run_sync(answered(storage))
    run_sync(answered(storage, review("other")))
    assert checkpoints_frame(storage)["workflow_name"].tolist() == ["other"] * 4 + ["review"] * 4
    assert checkpoints_frame(storage, workflow_name="other")["run_id"].tolist() == ["run-2"] * 4
    assert checkpoints_frame(storage, run_id="run-1")["run_id"].tolist() == ["run-1"] * 4


def test_since_takes_a_superstep_or_a_time_and_limit_the_last_rows(storage: InMemoryCheckpointStorage):
    run_sync(answered(storage))
    frame = checkpoints_frame(storage)
    created = frame["created"].iloc[2]
    assert list(checkpoints_frame(storage, since=2).index) == ["cp-0003", "cp-0004"]
    assert list(checkpoints_frame(storage, since=created.to_pydatetime()).index) == ["cp-0003", "cp-0004"]
    assert list(checkpoints_frame(storage, since=created.isoformat()).index) == ["cp-0003", "cp-0004"]
    assert list(checkpoints_frame(storage, limit=1).index) == ["cp-0004"]
    assert list(checkpoints_frame(storage, limit=0).index) == []
    assert checkpoints_frame(storage, limit=1)["depth"].tolist() == [3]


def test_invalid_limits_and_times_are_refused(storage: InMemoryCheckpointStorage):
    with raises(ValueError, "limit", "-1"):
        checkpoints_frame(storage, limit=-1)
    with raises(ValueError, "'soon'"):
        checkpoints_frame(storage, since="soon")


def test_other_values_than_sources_are_refused():
    for source in ("run-1", 7, None, [3]):
        with raises(TypeError, "run_id="):
            checkpoints_frame(source)


# ---- messages


def test_messages_are_those_that_waited_in_the_checkpoints(storage: InMemoryCheckpointStorage):
    run_sync(answered(storage))
    frame = messages_frame(storage)
    assert list(frame.index) == [(1, 0), (2, 0)]
    assert frame["source"].tolist() == ["internal:write", "write"]
    assert frame["type"].tolist() == ["response", "standard"]
    assert frame["target"].fillna("-").tolist() == ["write", "-"]
    assert frame["preview"].iloc[1] == "Twice"
    assert frame["size"].iloc[1] == 5


def test_a_run_without_storage_has_no_messages_and_says_so():
    run = run_sync(answered(None))
    with warns(UserWarning, "checkpoint_storage="):
        assert messages_frame(run).empty


# ---- state


def changes(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    executors = frame["executor"].astype(object).where(frame["executor"].notna(), None)
    return [
        (*key, row.value, row.old, row.op, executor)
        for key, row, executor in zip(frame.index, frame.itertuples(), executors, strict=True)
    ]


EXPECTED = [
    (1, "draft.text", "Once", None, "set", None),
    (1, "draft.api_key", "•••", None, "set", None),
    (1, "rounds", 1, None, "set", None),
    (2, "draft.text", "Twice", "Once", "set", "write"),
    (2, "draft.api_key", None, "•••", "del", "write"),
]


def test_state_has_a_row_per_change_with_secrets_masked(storage: InMemoryCheckpointStorage):
    run_sync(answered(storage))
    assert changes(state_frame(storage)) == EXPECTED


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame({"name": ["a", None], "shape": [1.0, float("nan")]}),
        lambda: pd.Series([1, 2], name="name"),
        lambda: np.array([1.0, np.nan]),
        lambda: float("nan"),
        lambda: {"inner": [float("nan"), np.array([1])]},
    ],
    ids=["frame", "series", "array", "NaN", "nested"],
)
def test_a_value_that_is_set_once_changes_once_and_equals_that_of_another_run(make: Callable[[], Any], tmp_path: Path):
    class First(Executor):
        @handler
        async def go(self, text: str, ctx: WorkflowContext[str]) -> None:
            ctx.set_state("value", make())
            await ctx.send_message(text)

    class Again(Executor):
        @handler
        async def go(self, text: str, ctx: WorkflowContext[str]) -> None:
            ctx.set_state("value", ctx.get_state("value"))
            await ctx.send_message(text)

    first, again = First("first"), Again("again")
    workflow = WorkflowBuilder(start_executor=first).add_chain([first, again, Show("show")]).build()
    storage = FileCheckpointStorage(tmp_path)
    saved, unsaved = workflow.start("x", checkpoint_storage=storage), workflow.start("x")
    run_sync(saved.result())
    run_sync(unsaved.result())
    for source in (saved, unsaved):
        frame = build(source, "state").reset_index()
        assert {key.partition(".")[0] for key in frame["key"]} == {"value"}
        assert list(frame["superstep"].unique()) == [0]
        assert list(frame["executor"].unique()) == ["first"]
    assert compare(saved, unsaved).is_equal


def test_wide_state_has_a_row_per_checkpoint_and_a_column_per_key(storage: InMemoryCheckpointStorage):
    run_sync(answered(storage))
    frame = state_frame(storage, wide=True)
    assert list(frame.index) == [1, 1, 2, 3]
    assert list(frame.columns) == ["run_id", "draft.text", "draft.api_key", "rounds"]
    assert frame["run_id"].tolist() == ["run-1"] * 4
    assert frame["draft.text"].tolist() == ["Once", "Once", "Twice", "Twice"]
    assert frame["draft.api_key"].isna().tolist() == [False, False, True, True]
    assert str(frame["rounds"].dtype) == "Int64"
    assert frame.attrs["agentbench"]["kind"] == "state"


def test_internal_keys_have_rows_only_with_internal_true(storage: InMemoryCheckpointStorage):
    run_sync(answered(storage))
    assert not any(str(column).startswith("_") for column in state_frame(storage, wide=True))
    assert "_executor_state" in state_frame(storage, wide=True, internal=True)


# ---- events


def test_events_are_listed_as_they_were_emitted(storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    frame = events_frame(run)
    assert list(frame.index) == [event.seq for event in run.events]
    assert frame["type"].tolist() == [event.type for event in run.events]
    assert frame["time"].is_monotonic_increasing
    assert frame["duration_ms"].notna().sum() > 0
    asked = frame[frame["type"] == "request_info"].iloc[0]
    assert asked["executor"] == "write"
    assert asked["preview"] == "{'prompt': 'Publish?', 'password': •••}"


def test_a_saved_checkpoint_is_previewed_by_its_id_and_a_failure_by_its_error(storage: InMemoryCheckpointStorage):
    from agentbench import WorkflowErrorDetails, WorkflowEvent

    saved = events_frame(run_sync(answered(storage))).query("type == 'checkpoint_saved'")
    assert saved["preview"].iloc[0] == "cp-0001"
    failed = WorkflowEvent.failed(WorkflowErrorDetails("ValueError", "broken"))
    assert events_frame([failed])["preview"].tolist() == ["ValueError: broken"]


def test_the_worker_that_ran_an_executor_is_shown():
    from agentbench.notebook import timeline

    @executor(on="workers")
    async def simulate(text: str, ctx: WorkflowContext) -> None: ...

    options = RunOptions(workers=Elsewhere("tcp://10.0.0.7:4000"))
    run = WorkflowBuilder(start_executor=simulate).build().start("x", options=options)
    run_sync(run.result())
    frame = build(run, "events").query("type == 'executor_completed'")
    assert frame["worker"].tolist() == ["tcp://10.0.0.7:4000"]
    assert build(run, "timeline")["worker"].tolist() == ["tcp://10.0.0.7:4000"]
    assert "on tcp://10.0.0.7:4000" in timeline(run).text


def test_attempts_of_an_executor_with_retries_are_counted():
    class Unsteady(Executor):
        attempts = 0

        @handler
        async def fetch(self, text: str, ctx: WorkflowContext) -> None:
            self.attempts += 1
            if self.attempts < 3:
                raise ConnectionError(text)

    run = WorkflowBuilder(start_executor=Unsteady("fetch", retries=2)).build().start("x")
    run_sync(run.result())
    frame = build(run, "events").query("executor == 'fetch'")
    assert list(zip(frame["type"], frame["attempt"], strict=True)) == [
        ("executor_invoked", 1),
        ("warning", 1),
        ("warning", 2),
        ("executor_completed", 3),
    ]


def test_a_storage_without_events_emits_a_warning(storage: InMemoryCheckpointStorage):
    with warns(UserWarning, "have no events"):
        assert events_frame(storage).empty


def test_many_rows_are_announced(capsys: pytest.CaptureFixture[str]):
    frame = events_frame([WorkflowEvent("custom", n) for n in range(50_001)])
    assert len(frame) == 50_001
    assert capsys.readouterr().out == "events: building 50,001 rows; use limit= and since= to reduce them\n"


# ---- usage


def test_a_usage_row_is_a_call_of_a_model(storage: InMemoryCheckpointStorage):
    frame = usage_frame(run_sync(answered(storage)), prices={"m": (1.0, 10.0)}, full=True)
    assert frame.index.tolist() == [(3, "show", 1)]
    row: Any = frame.iloc[0]
    assert (row["model"], row["tokens_in"], row["tokens_out"], row["run_id"]) == ("m", 30, 2, "run-1")
    assert pd.isna(row["tokens_cached"])
    assert row["cost"] == pytest.approx(50e-6)


# ---- timeline


def test_a_timeline_row_is_an_executor_in_a_superstep(storage: InMemoryCheckpointStorage):
    frame = timeline_frame(run_sync(answered(storage)))
    assert list(frame.index) == [(0, "write"), (2, "write"), (3, "show")]
    assert frame["status"].tolist() == ["completed"] * 3
    assert frame["messages_in"].tolist() == [1, 1, 1]
    assert frame["messages_out"].tolist() == [0, 1, 0]
    assert frame["duration_ms"].tolist() == [3.0, 1.0, 3.0]
    assert ((frame["end"] - frame["start"]).dt.total_seconds() * 1000).tolist() == frame["duration_ms"].tolist()
    assert frame["wait_ms"].notna().tolist() == [True, False, False]
    assert frame["wait_ms"].iloc[0] == 11.0


def test_a_failure_is_a_row_and_an_error_of_the_run(storage: InMemoryCheckpointStorage):
    async def main() -> WorkflowRun:
        run = review(end=Break).start("Once", checkpoint_storage=storage)
        await run.result()
        await run.send_response(run.pending_requests[0].request_id, Approval(True, "Twice"))
        with raises(ValueError, "broken"):
            await run.result()
        return run

    run = run_sync(main())
    assert timeline_frame(run)["status"].tolist() == ["completed", "completed", "failed"]
    assert runs_frame(run)["error"].tolist() == ["ValueError: broken"]
    assert runs_frame(run)["status"].tolist() == ["FAILED"]


# ---- requests


@pytest.mark.parametrize("of", ["run", "storage"])
def test_requests_have_their_response_and_waiting_time(of: str, storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    frame = requests_frame(run if of == "run" else storage)
    row: Any = frame.loc["request-1"]
    assert (row["kind"], row["executor"], row["answer"]) == ("approval", "write", Approval(True, "Twice"))
    assert row["superstep"] == (0 if of == "run" else 1)
    assert row["wait_s"] == pytest.approx((row["answered"] - row["asked"]).total_seconds())


@pytest.mark.parametrize("of", ["run", "storage"])
def test_a_withdrawn_request_is_shown_as_such(of: str, storage: InMemoryCheckpointStorage):
    async def withdraw() -> WorkflowRun:
        run = await asked(storage)
        await run.cancel_pending_requests()
        await run.result()
        return run

    run = run_sync(withdraw())
    assert requests_frame(run if of == "run" else storage)["answer"].astype(str).tolist() == ["withdrawn"]


async def asked(storage: InMemoryCheckpointStorage) -> WorkflowRun:
    run = review().start("Once", checkpoint_storage=storage)
    await run.result()
    return run


def test_a_request_has_its_checkpoint_and_the_response_of_a_resumed_run(
    storage: InMemoryCheckpointStorage,
):
    run = run_sync(asked(storage))
    row: Any = requests_frame(storage, full=True).loc["request-1"]
    assert row["checkpoint_id"] == run.checkpoints[-1].checkpoint_id
    assert row["answer"] is None

    async def go_on() -> None:
        again = review().start(resume_from=row["checkpoint_id"], checkpoint_storage=storage)
        await again.result()
        await again.send_response("request-1", Approval(True, "Later"))
        await again.result()

    run_sync(go_on())
    later: Any = requests_frame(storage, run_id=run.run_id).loc["request-1"]
    assert later["answer"] == Approval(True, "Later")
    assert later["answered"] > later["asked"]
    assert later["checkpoint_id"] == row["checkpoint_id"]


def test_the_answer_in_a_fork_is_none_to_the_original(storage: InMemoryCheckpointStorage):
    async def main() -> WorkflowRun:
        run = await asked(storage)
        fork = await run.fork(state_updates={"rounds": 7}, workflow=review())
        await fork.result()
        await fork.send_response("request-1", Approval(True, "Elsewhere"))
        await fork.result()
        return run

    run = run_sync(main())
    assert requests_frame(storage, run_id=run.run_id, full=True)["answer"].tolist() == [None]
    assert Approval(True, "Elsewhere") in requests_frame(storage)["answer"].tolist()


# ---- runs and lineage


def test_runs_have_the_same_facts_from_handles_and_from_checkpoints(storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    told: Any
    read: Any
    told, read = (runs_frame(source, full=True).loc["run-1"] for source in (run, storage))
    for name in ("status", "supersteps", "checkpoints"):
        assert told[name] == read[name]
    assert (told["status"], told["supersteps"], told["checkpoints"]) == ("IDLE", 3, 4)
    assert (told["tokens_in"], told["tokens_out"]) == (30, 2)
    assert pd.isna(read["tokens_in"])
    assert pd.isna(told["cost"])
    assert pd.isna(told["error"])
    assert len(runs_frame([run, storage, run])) == 1
    assert timeline_frame(run).index.unique("superstep").size == 3  # 0, 2 and 3: a response was delivered in 1


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({}, "IDLE"),
        ({"n_requests": 1}, "IDLE_WITH_PENDING_REQUESTS"),
        ({"source": "stop", "n_messages": 1}, "CANCELLED"),
        ({"source": "error"}, "FAILED"),
    ],
)
def test_the_last_checkpoint_decides_the_status_of_a_run(facts: dict[str, Any], status: str):
    from agentbench import CheckpointInfo

    first = CheckpointInfo("w", "a", 0, "2024-01-01T00:00:00Z", run_id="r", n_messages=1)
    last = CheckpointInfo("w", "b", 1, "2024-01-01T00:00:02Z", run_id="r", **facts)
    row: Any = runs_frame([first, last]).loc["r"]
    assert (row["status"], row["duration_s"]) == (status, 2.0)


def test_tokens_and_cost_are_added_up_where_models_were_called():
    used = {"model": "m", "usage": {"input_token_count": 3, "output_token_count": 2}, "cost": 0.5}
    events = [WorkflowEvent("model_usage", used, executor_id="a"), WorkflowEvent("model_usage", used, executor_id="b")]
    row: Any = runs_frame(events, full=True).iloc[0]
    assert (row["tokens_in"], row["tokens_out"], row["cost"]) == (6, 4, 1.0)
    assert pd.isna(row["tokens_cached"])


def test_a_fork_names_what_it_was_forked_from(storage: InMemoryCheckpointStorage):
    async def main() -> list[WorkflowRun]:
        run = await answered(storage)
        fork = await run.fork(run.checkpoints[1], state_updates={"rounds": 2}, workflow=review())
        await fork.result()
        return [run, fork]

    runs = run_sync(main())
    frame = runs_frame(runs)
    assert frame["forked_from"].fillna("-").tolist() == ["-", "cp-0002"]
    assert runs_frame(storage)["forked_from"].fillna("-").tolist() == ["-", "cp-0002"]
    lineage = lineage_frame(storage)
    assert lineage[lineage["is_fork"]][["parent_id", "checkpoint_id"]].to_numpy().tolist() == [["cp-0002", "cp-0005"]]
    assert len(lineage) == 6


def test_frames_show_what_there_is_and_read_nothing(storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    shown = Frames(run)._repr_mimebundle_()
    assert set(shown) == {"text/html", "text/plain"}
    assert shown["text/plain"].startswith(f"Frames of WorkflowRun: {len(run.events)} events, 4 checkpoints\ntables\n")
    assert all(f"  {name}()" in shown["text/plain"] for name in NAMES)
    assert Frames(storage)._repr_mimebundle_(include=["text/plain"])["text/plain"].startswith("Frames of InMemory")


def test_frames_diff_compares_the_last_two_checkpoints(storage: InMemoryCheckpointStorage):
    run = run_sync(answered(storage))
    frames = Frames(run)
    pd.testing.assert_frame_equal(frames.diff(), frames.diff("cp-0003", "cp-0004"))
    assert frames.diff("cp-0001", "cp-0004").loc["state.draft.text", "after"] == "Twice"
    with raises(ValueError, "0 checkpoints"):
        Frames(InMemoryCheckpointStorage()).diff()


IDS = [f"{place:08x}-31a3-4a85-981e-1c2b6088e06c" for place in (1, 2, 3)]


def chain_of(*ids: str) -> list[CheckpointInfo]:
    before = [None, *ids]
    return [
        CheckpointInfo("w", each, place, "", previous_checkpoint_id=before[place], run_id=IDS[2])
        for place, each in enumerate(ids)
    ]


def test_a_frame_has_only_columns_with_values_and_short_ids():
    frame = checkpoints_frame(chain_of(*IDS[:2]))
    assert {"created", "graph_hash"}.isdisjoint(frame.columns)
    assert frame["parent_id"].fillna("-").tolist() == ["-", "00000001"]
    assert frame["run_id"].tolist() == ["00000003"] * 2
    assert frame.attrs["agentbench"]["run_id"] == IDS[2]
    assert frame.loc[IDS[1], "superstep"] == 1

    full = checkpoints_frame(chain_of(*IDS[:2]), full=True)
    assert shape_of(full) == (COLUMNS["checkpoints"], INDEX["checkpoints"])
    assert full["parent_id"].fillna("-").tolist() == ["-", IDS[0]]
    pd.testing.assert_frame_equal(frame.drop(columns=["parent_id", "run_id"]), full[frame.columns[2:]])


@given(st.lists(st.sampled_from("ab").flatmap(lambda c: st.just(c * 8 + "-31a3-4a85-981e-")), min_size=2, max_size=5))
def test_shortened_ids_stay_different(heads: list[str]):
    ids = [f"{head}{place:012x}" for place, head in enumerate(heads)]
    frame = lineage_frame(chain_of(*ids))
    assert frame["checkpoint_id"].nunique() == len(ids) - 1
    known = frame[["parent_id", "checkpoint_id"]].stack()
    assert known.nunique() == len(ids)


def test_ids_are_in_one_line_each_on_a_page() -> None:
    long = "0fc701ad-31a3-4a85-981e-1c2b6088e06c"
    frame, full = (checkpoints_frame([CheckpointInfo("w", long, 0, "")], full=full) for full in (False, True))
    html, whole = (DisplayFormatter().format(each)[0]["text/html"] for each in (frame, full))
    assert f'<th><span title="{long}">0fc701ad…</span></th>' in html
    assert f'<span style="white-space:nowrap">{long}</span>' in whole
    assert pickle.loads(pickle.dumps(frame)).equals(frame)
    assert copy.deepcopy(frame).equals(frame)
