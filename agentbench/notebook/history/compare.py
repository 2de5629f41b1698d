"""Two runs side by side, superstep by superstep, and the first superstep that differs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentbench._secrets import is_secret_name
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.checkpoints.metadata import RUN_ID, SOURCE, WRITERS
from agentbench.notebook.history.run_history import ExecutorCall, Superstep
from agentbench.notebook.history.sources import Chosen, Contents, read_checkpoints, read_runs
from agentbench.notebook.history.state import flatten_state
from agentbench.notebook.text.escape import MASK, esc
from agentbench.notebook.text.phrases import count_text, run_name, state_text
from agentbench.notebook.text.redact import line_preview

__all__ = ["Op", "Row", "RunComparison", "Side", "compare_sides", "read_sides"]

Op = Literal["equal", "changed", "only_a", "only_b"]

_VALUE = 60
_ABSENT: object = object()


@dataclass(frozen=True)
class Side:
    """One of two runs.

    Attributes:
        name: Its name in titles and sentences.
        steps: Its supersteps by number, as far as events or checkpoints record them.
        status: Status of the run, if known.
    """

    name: str
    steps: Mapping[int, Superstep]
    status: str | None = None


@dataclass(frozen=True)
class Row:
    """One executor, or one key of the state, in one superstep on both sides.

    Attributes:
        superstep: Number of the superstep.
        kind: `executor` or `state`.
        part: Id of the executor, or the dotted key.
        op: `equal`, `changed`, `only_a` or `only_b`.
        a: On side a, what the executor did or the value of the key, in one line; empty if there is neither.
        b: The same on side b.
    """

    superstep: int
    kind: Literal["executor", "state"]
    part: str
    op: Op
    a: str
    b: str


class RunComparison:
    """Two sides and the rows in which they differ or are equal.

    Attributes:
        a: The first side.
        b: The second side.
        rows: By superstep, executors before keys of the state. Equal keys have no row, nor do differences that last.
        steps: The rows by superstep, for every superstep of either side.
        begins: The first superstep that both sides record: a resumed run has no events of what came before.
        different: Supersteps that are not the same on both sides.
        first: The first of them from `begins` on; `None` if there is none.
    """

    def __init__(self, a: Side, b: Side, rows: Sequence[Row]) -> None:
        self.a = a
        self.b = b
        self.rows = rows
        self.steps: dict[int, list[Row]] = {step: [] for step in sorted({*a.steps, *b.steps})}
        for row in rows:
            self.steps[row.superstep].append(row)
        self.begins = max((min(side.steps) for side in (a, b) if side.steps), default=0)
        self.different = {row.superstep for row in rows if row.op != "equal"}
        self.first = min((step for step in self.different if step >= self.begins), default=None)

    @property
    def is_equal(self) -> bool:
        """Whether no superstep differs."""
        return not self.different

    @property
    def differing_executors(self) -> set[str]:
        """Executors whose outcome differs in some superstep."""
        rows = [row for row in self.rows if row.kind == "executor" and row.op != "equal"]
        return {row.part for row in rows if row.superstep >= self.begins}

    @property
    def title(self) -> str:
        """The names of both sides, and how many supersteps are equal."""
        common = [step for step in self.steps if step >= self.begins]
        equal = sum(step not in self.different for step in common)
        count = f"{equal:,} of {count_text(len(common), 'superstep')} equal"
        return f"{self.a.name} and {self.b.name}: {count}"

    @property
    def verdict(self) -> str:
        """The first divergence in words."""
        lead = self._late()
        if not self.a.steps or not self.b.steps:
            empty = [side.name for side in (self.a, self.b) if not side.steps]
            return f"No supersteps are recorded for {' and '.join(empty)}."
        if self.first is None:
            return f"{lead}They do the same in every superstep{_end_text(self.a, self.b)}."
        same = [step for step in self.steps if self.begins <= step < self.first]
        lead += f"Equal up to superstep {same[-1]}. " if same else ""
        return f"{lead}{self._divergence(self.first)}"

    def _late(self) -> str:
        """Return a sentence about the side that begins later, if one does."""
        late = [side for side in (self.a, self.b) if side.steps and min(side.steps) > min(self.steps)]
        return f"{late[0].name} begins at superstep {min(late[0].steps)}. " if late else ""

    def _divergence(self, superstep: int) -> str:
        for side, other in ((self.a, self.b), (self.b, self.a)):
            if superstep not in side.steps and superstep > max(side.steps):
                names = ", ".join(_name(part) for part in list(other.steps[superstep].calls)[:3])
                runs = f": {names} ran there" if names else ""
                ended = f" ({state_text(side.status)})" if side.status else ""
                return f"{side.name} ends after superstep {max(side.steps)}{ended}; {other.name} goes on{runs}."
        found = [row for row in self.steps[superstep] if row.op != "equal"]
        ran = [
            [_name(row.part) for row in found if row.kind == "executor" and row.op == op] for op in ("only_a", "only_b")
        ]
        if all(ran):
            here, there = (", ".join(names[:3]) for names in ran)
            return f"In superstep {superstep}, {here} ran in {self.a.name}, but {there} in {self.b.name}."
        others = len(found) - 1
        more = f" {others} more part{' differs' if others == 1 else 's differ'} there." if others else ""
        return f"In superstep {superstep}, {self._difference_text(found[0])}.{more}"

    def _difference_text(self, row: Row) -> str:
        part = _name(row.part)
        if row.op != "changed":
            side = (self.a if row.op == "only_a" else self.b).name
            return f"{part} ran in {side} only" if row.kind == "executor" else f"state {part} is set in {side} only"
        what = f"state {part}" if row.kind == "state" else part
        return f"{what} differs: {row.a} in {self.a.name}, {row.b} in {self.b.name}"


def compare_sides(a: Side, b: Side) -> RunComparison:
    """Return the comparison of two sides, superstep by superstep."""
    comparison = Comparison()
    known: dict[str, tuple[object, object]] = {}
    rows: list[Row] = []
    for number in sorted({*a.steps, *b.steps}):
        one, other = a.steps.get(number), b.steps.get(number)
        rows += _call_rows(number, {} if one is None else one.calls, {} if other is None else other.calls, comparison)
        if one is not None and other is not None:
            rows += _state_rows(number, flatten_state(one.state), flatten_state(other.state), known, comparison)
    return RunComparison(a, b, rows)


def _call_rows(
    superstep: int, one: Mapping[str, ExecutorCall], other: Mapping[str, ExecutorCall], comparison: Comparison
) -> Iterator[Row]:
    for name in dict.fromkeys((*one, *other)):
        a, b = one.get(name), other.get(name)
        equal = a is not None and b is not None and comparison.same(_outcome(a), _outcome(b))
        op = _op(a, b, equal=equal)
        yield Row(superstep, "executor", name, op, *_apart(_call_text(a), _call_text(b), op))


def _outcome(call: ExecutorCall) -> tuple[object, ...]:
    """What counts as equal: times and ids do not."""
    return call.status, call.error, call.results, [event.data for event in call.requests]


def _call_text(call: ExecutorCall | None) -> str:
    """The outcome in one line, secrets masked."""
    if call is None:
        return ""
    parts = [f"{call.status} ({call.error})" if call.error else call.status] if call.status != "completed" else []
    parts += [f"requested {_enumeration(event.data for event in call.requests)}"] if call.requests else []
    parts += [f"sent {_enumeration(call.results)}"] if call.results else []
    return "; ".join(parts) or call.status


def _state_rows(
    superstep: int,
    one: Mapping[str, object],
    other: Mapping[str, object],
    known: dict[str, tuple[object, object]],
    comparison: Comparison,
) -> Iterator[Row]:
    """Return a row for each key where it begins to differ, and where a value changes after that."""
    for key in dict.fromkeys((*one, *other)):
        a, b = one.get(key, _ABSENT), other.get(key, _ABSENT)
        if a is not _ABSENT and b is not _ABSENT and comparison.same(a, b):
            known.pop(key, None)
        elif key not in known or not all(map(comparison.same, known[key], (a, b))):
            known[key] = (a, b)
            op = _op(None if a is _ABSENT else key, None if b is _ABSENT else key, equal=False)
            yield Row(superstep, "state", key, op, *_apart(_value(key, a), _value(key, b), op))


def _op(a: object, b: object, *, equal: bool) -> Op:
    if equal:
        return "equal"
    return "only_a" if b is None else "only_b" if a is None else "changed"


def _apart(a: str, b: str, op: Op) -> tuple[str, str]:
    """Return two previews, with a note if they are equal because the difference is in the part that was cut."""
    return (a, f"{b} (differs within)") if op == "changed" and a == b else (a, b)


def _value(key: str, value: object) -> str:
    if value is _ABSENT:
        return ""
    return MASK if any(map(is_secret_name, key.split("."))) else _short(value)


def _short(value: object) -> str:
    return repr(line_preview(value, _VALUE)) if isinstance(value, str) else line_preview(value, _VALUE)


def _enumeration(values: Iterable[object]) -> str:
    texts = [_short(value) for value in values]
    return ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")


def _name(part: str) -> str:
    return esc(part, into="line", limit=60)


def _end_text(a: Side, b: Side) -> str:
    if a.status == b.status or not (a.status and b.status):
        return ""
    return f", but {a.name} is {state_text(a.status)} and {b.name} is {state_text(b.status)}"


# ---- reading ----------------------------------------------------------------------------------------------------


def read_sides(a: Any, b: Any, source: Any) -> tuple[Side, Side]:
    """Return both sides, named by their run ids if these differ.

    Raises:
        TypeError: A side is none of these, or is an id and `source` is missing.
    """
    wholes = [source if isinstance(each, str) and source is not None else each for each in (a, b)]
    run_ids = [each if isinstance(each, str) and source is not None else None for each in (a, b)]
    chosen = [Chosen(run_id=run_id) for run_id in run_ids]
    known = [read_runs(whole, each) for whole, each in zip(wholes, chosen, strict=True)]
    # Both sides are read in the same way: events record more than checkpoints and number the start differently, but a
    # run that was resumed has no events of what came before.
    runs = [run for runs in known for run in [run for run in runs if run.calls][-1:]]
    begun = {run.calls[0].superstep for run in runs}
    if len(runs) == 2 and (begun == {0} or any(run.storage is None for run in runs)):
        found = [(run.run_id, {step.number: step for step in run.supersteps if step.calls}, run.status) for run in runs]
    else:
        found = []
        for place in (0, 1):
            run_id = known[place][-1].run_id if known[place] else run_ids[place]
            found.append((*_read_path(read_checkpoints(wholes[place], chosen[place]), run_id), None))
    names = ["" if run_id is None else run_name(run_id) for run_id, _, _ in found]
    if names[0] == names[1] or not all(names):
        names = [f"{name or 'run'} ({letter})" for name, letter in zip(names, "ab", strict=True)]
    one, other = (Side(name, steps, status) for name, (_, steps, status) in zip(names, found, strict=True))
    return one, other


def _read_path(read: Contents, run_id: str | None) -> tuple[str | None, dict[int, Superstep]]:
    """Return the run of the last checkpoint, and the supersteps of those that led to it."""
    path: list[WorkflowCheckpoint] = []
    passed: set[str] = set()  # a damaged storage may hold a ring
    at = read.rows[-1] if read.rows else None
    while at is not None and at.checkpoint_id not in passed:
        path.append(at)
        passed.add(at.checkpoint_id)
        at = read.by_id.get(at.previous_checkpoint_id or "")
    steps: dict[int, Superstep] = {}
    for checkpoint in reversed(path):
        if read.can_read(checkpoint):
            step = steps.setdefault(checkpoint.iteration_count, Superstep(checkpoint.iteration_count))
            step.state = checkpoint.state
            step.calls.update(_calls_in(checkpoint))
    read.warn_about_problems(stacklevel=5)
    return next((own for each in path if (own := each.metadata.get(RUN_ID)) is not None), run_id), steps


def _calls_in(checkpoint: WorkflowCheckpoint) -> dict[str, ExecutorCall]:
    """What executors did in the superstep before a checkpoint, as far as it records that."""
    requests: dict[str, list[object]] = {}
    for request in checkpoint.pending_request_info_events.values():
        requests.setdefault(str(request.source_executor_id), []).append(request)
    ran = [str(name) for name in checkpoint.metadata.get(WRITERS) or ()]
    failed = checkpoint.metadata.get(SOURCE) == "error" and len(ran) == 1  # of several, the one that failed is unknown
    return {
        name: ExecutorCall(
            checkpoint.iteration_count,
            name,
            status="failed" if failed else "waiting" if name in requests else "completed",
            results=[message.data for message in checkpoint.messages.get(name, ())],
            requests=requests.get(name, []),
        )
        for name in ran
    }
