"""A batch as its views see it, from lists in memory; and rows, traffic and questions to put into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentbench import InMemoryCheckpointStorage, Workflow, WorkflowBuilder, WorkflowContext, WorkflowEvent, executor
from agentbench._bridge import run_sync
from agentbench.batch.rows import BatchProgress, BatchRow, RowError, RowStatus, Traffic
from agentbench.exceptions import AgentFrameworkException


def review_flow(name: str = "reviews") -> Workflow:
    """Return a workflow that reads a text, checks and rates it, and writes a verdict."""

    @executor
    async def read(text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("length", len(text))
        await ctx.send_message(text)

    @executor
    async def check(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message("clean" if "spam" not in text else "spam")

    @executor
    async def rate(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"{len(text)} letters")

    @executor
    async def write(parts: list[str], ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(", ".join(parts))

    builder = WorkflowBuilder(name=name, start_executor=read).add_fan_out_edges(read, [check, rate])
    return builder.add_fan_in_edges([check, rate], write).build()


PATHS = ("read > (check, rate) > write", "read > (check, rate)", "read")


def many_rows(count: int) -> list[BatchRow]:
    """Return rows of which every tenth failed in one of two ways, and every fiftieth waits."""
    rows = []
    for place in range(count):
        row = BatchRow(
            f"row-{place:05}",
            place,
            {"text": f"review {place}", "stars": place % 6, "api_key": "sk-planted"},
            RowStatus.FINISHED,
            f"verdict {place}",
            attempts=1,
            supersteps=3,
            path=PATHS[0],
            tokens_in=100 + place,
            tokens_out=20,
            cost=0.001,
            started=1_700_000_000.0 + place,
            seconds=0.5 + (place % 40) / 10,
            queued_seconds=0.1,
            run_id=f"run-{place}",
            graph_hash="5eed" * 16,
            worker=f"host:{place % 4}",
        )
        if place % 10 == 3:
            at = ("check", 1) if place % 20 == 3 else ("read", 0)
            name = "TimeoutError" if place % 20 == 3 else "ValueError"
            error = RowError(name, f"no answer for {place}", f"{at[0]}, superstep {at[1]}", f"Traceback: {name}")
            row = replace(row, status=RowStatus.FAILED, output=None, error=error, path=PATHS[2 - at[1]])
        elif place % 50 == 7:
            row = replace(row, status=RowStatus.WAITING, output=None, path=PATHS[1], seconds=None)
        rows.append(row)
    return rows


def traffic_of(rows: Iterable[BatchRow]) -> list[Traffic]:
    """Return the traffic of rows whose paths are those of `many_rows`."""
    found = []
    for row in rows:
        ran = [name.strip("()") for step in row.path.split(" > ") for name in step.split(", ")]
        found.append(Traffic(row.key, "Workflow", "read", messages=1))
        for name in ran:
            seconds = (row.seconds or 0.5) / len(ran)
            failed = row.error is not None and row.error.location.startswith(name)
            found.append(Traffic(row.key, name, "", 1, seconds, 40, 0.0003, int(failed)))
        edges = [("read", "check"), ("read", "rate"), ("check", "write"), ("rate", "write")]
        found += [Traffic(row.key, *edge, messages=1) for edge in edges if edge[1] in ran]
    return found


@dataclass
class OpenQuestion:
    """An open question of a row."""

    key: str
    request: WorkflowEvent[Any]


def questions_of(count: int, prompt: str = "Publish it?", *, first: int = 0) -> list[OpenQuestion]:
    """Return the same question of several rows, each with an event and an id of its own."""
    return [
        OpenQuestion(
            f"row-{place:05}", WorkflowEvent.request_info(f"request-{place}", "check", {"prompt": prompt}, bool)
        )
        for place in range(first, first + count)
    ]


class FakeBatch:
    """Answers as a batch does; `calls` lists what was asked of it."""

    def __init__(
        self,
        rows: Sequence[BatchRow] = (),
        *,
        name: str = "reviews",
        workflow: Workflow | None = None,
        questions: Iterable[OpenQuestion] = (),
        repeats: dict[int, str] | None = None,
        traffic: list[Traffic] | None = None,
        keeps: bool = False,
        **progress: Any,
    ) -> None:
        self.name, self.workflow, self.keeps = name, workflow, keeps
        self.known = list(rows)
        self.open_questions = list(questions)
        self.calls: list[Any] = []
        self.listeners: list[Callable[[], object]] = []
        self.facts = progress
        self._repeats = repeats or {}
        self._traffic = traffic

    def change(self, *rows: BatchRow, **progress: Any) -> None:
        """Replace or add rows, and change facts of the progress."""
        known = {row.key: row for row in self.known} | {row.key: row for row in rows}
        self.known = sorted(known.values(), key=lambda row: row.position)
        self.facts |= progress
        for listener in tuple(self.listeners):
            listener()

    @property
    def progress(self) -> BatchProgress:
        counts = dict.fromkeys(map(str, RowStatus), 0)
        errors: dict[str, int] = {}
        for row in self.known:
            counts[str(row.status)] += 1
            if row.error is not None:
                errors[row.error.type] = errors.get(row.error.type, 0) + 1
        slowest = sorted(((row.key, row.seconds or 0.0) for row in self.known), key=lambda each: -each[1])
        costs = [row.cost for row in self.known if row.cost is not None]
        facts: dict[str, Any] = {
            "total": len(self.known),
            "duplicates": len(self._repeats),
            "tokens_in": sum(row.tokens_in or 0 for row in self.known),
            "tokens_out": sum(row.tokens_out or 0 for row in self.known),
            "cost": sum(costs) if costs else None,
            "errors": sorted(errors.items(), key=lambda each: -each[1]),
            "slowest": slowest[:5],
            "state": "done",
        }
        return BatchProgress(self.name, counts, **(facts | self.facts))

    def rows(
        self,
        status: str | None = None,
        *,
        error: str | None = None,
        path: str | None = None,
        keys: Iterable[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        newest: bool = False,
    ) -> list[BatchRow]:
        wanted = None if keys is None else set(keys)
        found = [
            row
            for row in self.known
            if (status is None or row.status == status)
            and (error is None or (row.error is not None and row.error.type == error))
            and (path is None or row.path == path)
            and (wanted is None or row.key in wanted)
        ]
        if newest:
            found = [row for row in found if row.status != "open"][::-1]
        return found[offset:] if limit is None else found[offset : offset + limit]

    def row(self, key: str) -> BatchRow:
        for row in self.known:
            if row.key == key:
                return row
        msg = f"There is no row {key!r}."
        raise KeyError(msg)

    def traffic(self) -> list[Traffic]:
        return traffic_of(self.known) if self._traffic is None else self._traffic

    def repeats(self) -> dict[int, str]:
        return self._repeats

    def listen(self, callback: Callable[[], object]) -> Callable[[], None]:
        self.listeners.append(callback)
        return lambda: self.listeners.remove(callback)

    def cancel(self) -> None:
        self.calls.append("cancel")
        self.change(state="cancelled")

    def resume(self) -> None:
        self.calls.append("resume")
        self.change(state="running")

    @property
    def failed(self) -> FakeBatch:
        return self

    def retry(self) -> None:
        self.calls.append("retry")

    def open(self, key: str, *, rerun: bool = False) -> Any:
        self.calls.append(("open", key, rerun))
        if self.workflow is None or not (self.keeps or rerun):
            msg = f"Row {key!r} keeps no checkpoints. Run it again: open({key!r}, rerun=True)."
            raise AgentFrameworkException(msg)
        text = str(self.row(key).input)
        if rerun:
            return self.workflow.start(text, checkpoint_storage=InMemoryCheckpointStorage())
        storage = InMemoryCheckpointStorage()
        earlier = self.workflow.start(text, checkpoint_storage=storage)
        run_sync(earlier.step())
        return self.workflow.start(resume_from=earlier.last_checkpoint, checkpoint_storage=storage)

    def questions(self) -> list[OpenQuestion]:
        return list(self.open_questions)

    def answer_now(self, key: str, answers: dict[str, Any]) -> None:
        self.calls.append(("answer", key, answers))
        self.open_questions = [
            each for each in self.open_questions if each.key != key or each.request.request_id not in answers
        ]
        self.change()
