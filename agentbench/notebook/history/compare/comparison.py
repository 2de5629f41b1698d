"""Pure: two runs side by side, superstep by superstep, and the first superstep that differs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentbench._secrets import is_secret_name
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.notebook.text.escape import MASK, esc
from agentbench.notebook.text.phrases import count_text
from agentbench.notebook.text.redact import line_preview

__all__ = ["Op", "Outcome", "RunComparison", "Side", "Step", "compare_sides"]

Op = Literal["equal", "changed", "only_a", "only_b"]

_VALUE = 60


@dataclass(frozen=True)
class Outcome:
    """What one executor did in one superstep, as far as events or checkpoints record it.

    Attributes:
        status: As in a timeline: `completed`, `failed`, `waiting` and so on.
        sent: The messages that it sent and the outputs that it yielded.
        requests: The data of the requests that it emitted.
        error: The error that it raised.
    """

    status: str = "completed"
    sent: Sequence[object] = ()
    requests: Sequence[object] = ()
    error: str = ""

    @property
    def words(self) -> str:
        """The outcome in one line, secrets masked."""
        status = f"{self.status} ({self.error})" if self.error else self.status
        parts = [status] if status != "completed" else []
        parts += [f"asked {_enumeration(self.requests)}"] if self.requests else []
        parts += [f"sent {_enumeration(self.sent)}"] if self.sent else []
        return "; ".join(parts) or self.status


@dataclass(frozen=True)
class Step:
    """One superstep of one side.

    Attributes:
        outcomes: By executor, in plan order.
        state: Shared state after it, flattened; `None` if it is unknown.
    """

    outcomes: Mapping[str, Outcome]
    state: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Side:
    """One of two runs.

    Attributes:
        name: Its name in titles and sentences.
        steps: Its supersteps by number.
        status: Status of the run, if known.
    """

    name: str
    steps: Mapping[int, Step]
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
            return f"Nothing is known of {' and '.join(empty)}."
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
                names = ", ".join(_name(part) for part in list(other.steps[superstep].outcomes)[:3])
                runs = f": {names} ran there" if names else ""
                ended = f" ({side.status})" if side.status else ""
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
    for superstep in sorted({*a.steps, *b.steps}):
        one, other = a.steps.get(superstep, _NO_STEP), b.steps.get(superstep, _NO_STEP)
        rows += _outcome_rows(superstep, one, other, comparison)
        if one.state is not None and other.state is not None:
            rows += _states(superstep, one.state, other.state, known, comparison)
    return RunComparison(a, b, rows)


_NO_STEP = Step({})
_ABSENT: object = object()


def _outcome_rows(superstep: int, one: Step, other: Step, comparison: Comparison) -> Iterator[Row]:
    for name in dict.fromkeys((*one.outcomes, *other.outcomes)):
        a, b = one.outcomes.get(name), other.outcomes.get(name)
        op = _op(a, b, equal=a is not None and b is not None and comparison.same(a, b))
        yield Row(
            superstep, "executor", name, op, *_apart("" if a is None else a.words, "" if b is None else b.words, op)
        )


def _states(
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
    return f", but {a.name} is {a.status} and {b.name} is {b.status}"
