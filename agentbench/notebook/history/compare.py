"""Two runs side by side, superstep by superstep, and the first superstep that differs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentbench._secrets import is_secret_name
from agentbench._text.escape import MASK, esc
from agentbench._text.phrases import count_text, run_name, state_text
from agentbench._text.redact import line_preview
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.checkpoints.metadata import RUN_ID, SOURCE, WRITERS
from agentbench.notebook.history.run_history import ExecutorCall, Superstep
from agentbench.notebook.history.sources import Chosen, Contents, ancestors, read_checkpoints, read_runs
from agentbench.notebook.history.state import flatten_state

Op = Literal["equal", "changed", "only_a", "only_b", "unknown"]

_VALUE = 60
_NOT_RECORDED = "outputs not recorded"
_ABSENT: object = object()


@dataclass(frozen=True)
class Side:
    """One of two runs: its name, and the supersteps that its events or checkpoints record."""

    name: str
    steps: Mapping[int, Superstep]
    status: str | None = None


@dataclass(frozen=True)
class CompareRow:
    """One executor, or one dotted key of the state, in one superstep: its outcome or value on both sides."""

    superstep: int
    kind: Literal["executor", "state"]
    part: str
    op: Op
    a: str
    b: str


class RunComparison:
    """Two sides and their rows, by superstep, executors before keys of the state.

    Equal keys and unchanged differences have no row. A row is `unknown` if both sides sent the same but one side
    did not record outputs.
    """

    def __init__(self, a: Side, b: Side, rows: Sequence[CompareRow]) -> None:
        self.a = a
        self.b = b
        self.rows = rows
        self.steps: dict[int, list[CompareRow]] = {step: [] for step in sorted({*a.steps, *b.steps})}
        for row in rows:
            self.steps[row.superstep].append(row)
        # The first superstep that both sides record: a resumed run has no earlier events.
        self.begins = max((min(side.steps) for side in (a, b) if side.steps), default=0)
        self.different = {row.superstep for row in rows if row.op not in ("equal", "unknown")}
        self.unknown = {row.superstep for row in rows if row.op == "unknown"}
        self.first = min((step for step in self.different if step >= self.begins), default=None)

    @property
    def differing_executors(self) -> set[str]:
        """The executors whose outcome differs in a superstep."""
        rows = [row for row in self.rows if row.kind == "executor" and row.op not in ("equal", "unknown")]
        return {row.part for row in rows if row.superstep >= self.begins}

    @property
    def title(self) -> str:
        """The names of both sides and the number of equal supersteps."""
        common = [step for step in self.steps if step >= self.begins]
        equal = sum(step not in self.different | self.unknown for step in common)
        count = f"{equal:,} of {count_text(len(common), 'superstep')} equal"
        return f"{self.a.name} and {self.b.name}: {count}"

    @property
    def verdict(self) -> str:
        """A sentence about the first difference."""
        sides = (self.a, self.b)
        if empty := [side.name for side in sides if not side.steps]:
            return f"No supersteps are recorded for {' and '.join(empty)}."
        late = [side for side in sides if min(side.steps) > min(self.steps)]
        lead = f"{late[0].name} begins at superstep {min(late[0].steps)}. " if late else ""
        if self.first is None:
            ends = [f"{side.name} is {state_text(side.status)}" for side in sides if side.status]
            but = f", but {' and '.join(ends)}" if len(ends) == 2 and self.a.status != self.b.status else ""
            if self.unknown:
                return f"{lead}All supersteps send the same messages{but}. Outputs are not recorded on both sides."
            return f"{lead}All supersteps are equal{but}."
        same = [step for step in self.steps if self.begins <= step < self.first]
        lead += f"Equal up to superstep {same[-1]}. " if same else ""
        return f"{lead}{self._divergence(self.first)}"

    def _divergence(self, superstep: int) -> str:
        one, two = self.a.name, self.b.name
        for side, other in ((self.a, self.b), (self.b, self.a)):
            if superstep not in side.steps and superstep > max(side.steps):
                names = ", ".join(_name(part) for part in list(other.steps[superstep].calls)[:3])
                runs = f": {names} ran there" if names else ""
                ended = f" ({state_text(side.status)})" if side.status else ""
                return f"{side.name} ends after superstep {max(side.steps)}{ended}; {other.name} continues{runs}."
        rows = [row for row in self.steps[superstep] if row.op not in ("equal", "unknown")]
        here, there = (
            ", ".join([_name(row.part) for row in rows if row.kind == "executor" and row.op == op][:3])
            for op in ("only_a", "only_b")
        )
        if here and there:
            return f"In superstep {superstep}, {here} ran in {one}, but {there} in {two}."
        row, others = rows[0], len(rows) - 1
        what = f"state {_name(row.part)}" if row.kind == "state" else _name(row.part)
        if row.op == "changed":
            what += f" differs: {row.a} in {one}, {row.b} in {two}"
        else:
            what += f" {'ran' if row.kind == 'executor' else 'is set'} in {one if row.op == 'only_a' else two} only"
        more = f" {others} more part{' differs' if others == 1 else 's differ'} there." if others else ""
        return f"In superstep {superstep}, {what}.{more}"


def compare_sides(a: Side, b: Side) -> RunComparison:
    """Return the comparison of two sides, superstep by superstep."""
    same = Comparison().same
    lasting: dict[str, tuple[object, object]] = {}
    rows: list[CompareRow] = []

    def add(superstep: int, kind: Literal["executor", "state"], part: str, one: object, other: object) -> None:
        if kind == "state" and part in lasting and all(map(same, lasting[part], (one, other))):
            return
        op = _op(same, one, other)
        if kind == "state":
            lasting.pop(part, None)
            if op == "equal":
                return
            lasting[part] = (one, other)
        left, right = (
            _text(part, each) + (f"; {_NOT_RECORDED}" if op == "unknown" and not _knows_outputs(each) else "")
            for each in (one, other)
        )
        right += " (differs within)" if op == "changed" and left == right else ""  # in the omitted part
        rows.append(CompareRow(superstep, kind, part, op, left, right))

    for number in sorted({*a.steps, *b.steps}):
        one, other = (side.steps.get(number, Superstep(number)) for side in (a, b))
        for part in dict.fromkeys((*one.calls, *other.calls)):
            add(number, "executor", part, one.calls.get(part, _ABSENT), other.calls.get(part, _ABSENT))
        if number in a.steps and number in b.steps:
            old, new = flatten_state(one.state), flatten_state(other.state)
            for part in dict.fromkeys((*old, *new)):
                add(number, "state", part, old.get(part, _ABSENT), new.get(part, _ABSENT))
    return RunComparison(a, b, rows)


def _outcome(part: object) -> object:
    """Return the compared outcome: without times and ids."""
    if isinstance(part, ExecutorCall):
        return part.status, part.error, part.results, [event.data for event in part.requests]
    return part


def _op(same: Callable[[object, object], bool], one: object, other: object) -> Op:
    if other is _ABSENT or one is _ABSENT:
        return "only_a" if other is _ABSENT else "only_b"
    if _knows_outputs(one) and _knows_outputs(other):
        return "equal" if same(_outcome(one), _outcome(other)) else "changed"
    return "unknown" if same(_outcome_without_outputs(one), _outcome_without_outputs(other)) else "changed"


def _knows_outputs(part: object) -> bool:
    return not isinstance(part, ExecutorCall) or part.knows_outputs


def _outcome_without_outputs(part: Any) -> object:
    """Return the outcome of a call without its outputs."""
    sent = [result for result in part.results if not any(result is output for output in part.outputs)]
    return part.status, part.error, sent, [event.data for event in part.requests]


def _text(name: str, part: object) -> str:
    """Return the outcome of a call or the value of a key in one line, secrets masked."""
    if part is _ABSENT:
        return ""
    if not isinstance(part, ExecutorCall):
        return MASK if any(map(is_secret_name, name.split("."))) else _short(part)
    parts = [f"{part.status} ({part.error})" if part.error else part.status] if part.status != "completed" else []
    parts += [f"requested {_enumeration(event.data for event in part.requests)}"] if part.requests else []
    parts += [f"sent {_enumeration(part.results)}"] if part.results else []
    return "; ".join(parts) or part.status


def _short(value: object) -> str:
    return repr(line_preview(value, _VALUE)) if isinstance(value, str) else line_preview(value, _VALUE)


def _enumeration(values: Iterable[object]) -> str:
    texts = [_short(value) for value in values]
    return ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")


def _name(part: str) -> str:
    return esc(part, into="line", limit=60)


# ---- reading ----------------------------------------------------------------------------------------------------


def read_sides(a: Any, b: Any, source: Any) -> tuple[Side, Side]:
    """Return both sides, named by their run ids if these differ.

    Raises:
        TypeError: A side is none of these, or is an id and `source` is missing.
    """
    sides = [
        (source, Chosen(run_id=side)) if isinstance(side, str) and source is not None else (side, Chosen())
        for side in (a, b)
    ]
    runs_by_side = [read_runs(*side) for side in sides]
    # Both sides are read in the same way: events record more than checkpoints and count the start differently, but a
    # resumed run has no earlier events.
    runs = [run for side_runs in runs_by_side for run in [run for run in side_runs if run.calls][-1:]]
    begun = {run.calls[0].superstep for run in runs}
    if len(runs) == 2 and (begun == {0} or any(run.storage is None for run in runs)):
        paths = [(run.run_id, {step.number: step for step in run.supersteps if step.calls}, run.status) for run in runs]
    else:
        ids = [
            each[-1].run_id if each else chosen.run_id for each, (_, chosen) in zip(runs_by_side, sides, strict=True)
        ]
        observed = {
            run.run_id: {step.number: step.calls for step in run.supersteps} for each in runs_by_side for run in each
        }
        read = [_read_path(read_checkpoints(*side), run_id, observed) for side, run_id in zip(sides, ids, strict=True)]
        paths = [(run_id, steps, None) for run_id, steps in read]
    names = ["" if run_id is None else run_name(run_id) for run_id, _, _ in paths]
    if names[0] == names[1] or not all(names):
        names = [f"{name or 'run'} ({letter})" for name, letter in zip(names, "ab", strict=True)]
    one, other = (Side(name, steps, status) for name, (_, steps, status) in zip(names, paths, strict=True))
    return one, other


def _read_path(
    read: Contents, run_id: str | None, observed: Mapping[str | None, Mapping[int, Mapping[str, ExecutorCall]]]
) -> tuple[str | None, dict[int, Superstep]]:
    """Return the run of the last checkpoint, and the supersteps that led to it.

    `observed` are the recorded calls by run and superstep; unlike checkpoints, events contain outputs.
    """
    path = [checkpoint for last in read.rows[-1:] for checkpoint in (last, *ancestors(read.by_id, last))]
    steps: dict[int, Superstep] = {}
    for checkpoint in reversed(path):
        if read.can_read(checkpoint):
            step = steps.setdefault(checkpoint.iteration_count, Superstep(checkpoint.iteration_count))
            step.state = checkpoint.state
            calls = _calls_in(checkpoint)
            events = observed.get(checkpoint.metadata.get(RUN_ID), {}).get(checkpoint.iteration_count, {})
            recorded = {name: call for name, call in step.calls.items() if call.knows_outputs}
            step.calls |= calls | recorded
            if set(events) == set(calls):
                step.calls.update(events)
    read.warn_about_problems()
    return next((own_id for each in path if (own_id := each.metadata.get(RUN_ID)) is not None), run_id), steps


def _calls_in(checkpoint: WorkflowCheckpoint) -> dict[str, ExecutorCall]:
    """Return the executor calls in the superstep before a checkpoint that it records."""
    requests: dict[str, list[object]] = {}
    for request in checkpoint.pending_request_info_events.values():
        requests.setdefault(str(request.source_executor_id), []).append(request)
    ran = [str(name) for name in checkpoint.metadata.get(WRITERS) or ()]
    failed = checkpoint.metadata.get(SOURCE) == "error" and len(ran) == 1  # if several ran, the failed one is unknown
    return {
        name: ExecutorCall(
            checkpoint.iteration_count,
            name,
            status="failed" if failed else "waiting" if name in requests else "completed",
            results=[message.data for message in checkpoint.messages.get(name, ())],
            requests=requests.get(name, []),
            knows_outputs=False,
        )
        for name in ran
    }
