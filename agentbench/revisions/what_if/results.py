"""The results of a what-if: a row per branch, and per variant whether it had an effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentbench._display import Displayable, call_view, drawn_by
from agentbench._plain_text import plain_line
from agentbench._secrets import mask_text, masked_fields
from agentbench.batch.comparison import divergence
from agentbench.batch.rows import BatchRow, RowError, RowStatus
from agentbench.revisions.what_if.effects import (
    FEWEST,
    LEVEL,
    Outcome,
    distances,
    holm,
    least_p,
    permutation_p,
    readable,
)
from agentbench.revisions.what_if.variants import AS_IT_WAS

if TYPE_CHECKING:
    import pandas as pd

    from agentbench.batch.batch import Batch


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """One branch of a what-if.

    Attributes:
        variant: The name of its variant.
        repeat: Its number within the variant, from 1.
        status: `finished`, `failed`, `waiting` for an answer, `cancelled`, or `open` if it did not end.
        output: The output of the branch: the only one, or a list of several.
        path: The executors that ran from the beginning of the branch, superstep by superstep.
        supersteps: The number of supersteps of the branch.
        tokens: Tokens that models read and wrote; None if no model counted them.
        cost: Cost of the models in the currency of the prices; None if it is unknown.
        seconds: Duration in seconds.
        divergence: The first difference from the most typical branch of "as it was", in words; empty if there is none.
        error: The error that made the branch fail.

    Example:
        for row in result.rows:
            print(row.variant, row.repeat, row.output, row.divergence)
    """

    variant: str
    repeat: int
    status: RowStatus
    output: Any = None
    path: str = ""
    supersteps: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    divergence: str = ""
    error: RowError | None = None

    __repr__ = masked_fields


@dataclass(frozen=True, slots=True)
class Effect:
    """What one variant changed.

    Attributes:
        variant: Its name.
        runs: The number of its branches that ended.
        changed: How many of them differ from the most typical branch of "as it was".
        p: The probability of such a difference by chance, corrected for the number of variants; None if it was not
            computed, because there are fewer than three branches to compare.
        is_found: Whether `p` is below 0.05.
        change: The most frequent first difference, in words.
        changes: How often each first difference occurs.

    Example:
        found = [effect.variant for effect in result.summary().effects if effect.is_found]
    """

    variant: str
    runs: int
    changed: int
    p: float | None
    is_found: bool
    change: str
    changes: Mapping[str, int]


@drawn_by("agentbench.notebook.cards.what_if:summary_bundle")
@dataclass(frozen=True, repr=False)
class WhatIfSummary(Displayable):
    """What the variants changed, compared with how much the unchanged variant varies by itself. `str()` is its text.

    Each variant is compared with "as it was" by one permutation test on the distances between outcomes: equal or
    unequal for categories and short texts, the difference of numbers as a fraction of their range, the share of
    different words for long texts; another path counts as much as another output. An effect is reported if p is below
    0.05 after Holm's correction for the number of variants. The same rows always give the same p. If the variants have
    no effect, about one in 25 comparisons still reports one.

    Attributes:
        effects: The variants, without "as it was".
        runs: The number of branches of "as it was" that ended.
        varied: How many of them differ from the most typical one: how much "as it was" varies by itself.
        notes: What a reader has to know, such as that chance cannot be separated from effect.

    Example:
        >>> summary = result.summary()
        >>> print(summary)
        >>> summary.effects[0].is_found
    """

    effects: Sequence[Effect]
    runs: int
    varied: int
    notes: Sequence[str]

    def __str__(self) -> str:
        own = f"{AS_IT_WAS}: {self.varied} of {self.runs} differ from its most typical outcome"
        return "\n".join([own, *map(effect_line, self.effects), *map(_line, self.notes)])

    def __repr__(self) -> str:
        found = sum(effect.is_found for effect in self.effects)
        return f"WhatIfSummary({found} of {len(self.effects)} variants had an effect)"


@drawn_by("agentbench.notebook.cards.what_if:what_if_bundle")
class WhatIf(Displayable):
    """Branches of a run under changed conditions; made by `WorkflowRun.what_if`. A cell displays the summary.

    Attributes:
        rows: The branches, variant by variant, "as it was" first.
        at: The superstep from which they ran.
        repeat: How many branches each variant should have; "as it was" has twice as many.
        batch: The batch that ran them, to open single branches: `batch.open(key, rerun=True)`.
        notes: What a reader has to know about the runs.

    Example:
        >>> result = await run.what_if(at=3, variants={"short": {"state": {"tone": "short"}}}, repeat=20)
        >>> print(result.summary())
        >>> result.frame().groupby("variant").cost.mean()
    """

    def __init__(
        self, rows: Mapping[tuple[str, int], BatchRow], at: int, repeat: int, batch: Batch, notes: Sequence[str] = ()
    ) -> None:
        self.at, self.repeat, self.batch, self.notes = at, repeat, batch, list(notes)
        self._rows = rows
        self._variants = list(dict.fromkeys(variant for variant, _ in rows))

    def _ended(self, variant: str) -> list[BatchRow]:
        ended = (row for (name, _), row in self._rows.items() if name == variant)
        return [row for row in ended if row.status not in (RowStatus.OPEN, RowStatus.CANCELLED)]

    @cached_property
    def _typical(self) -> BatchRow | None:
        """The branch of "as it was" that is nearest to the others of them."""
        ended = self._ended(AS_IT_WAS)
        table = distances([Outcome.of(row) for row in ended])
        return ended[min(range(len(ended)), key=lambda at: sum(table[at]))] if ended else None

    @cached_property
    def rows(self) -> list[WhatIfRow]:
        """The branches."""
        return [self._row(*place, row) for place, row in self._rows.items()]

    def _row(self, variant: str, repeat: int, row: BatchRow) -> WhatIfRow:
        tokens = (
            None if row.tokens_in is None and row.tokens_out is None else (row.tokens_in or 0) + (row.tokens_out or 0)
        )
        return WhatIfRow(
            variant,
            repeat,
            row.status,
            row.output,
            row.path,
            row.supersteps,
            tokens,
            row.cost,
            row.seconds,
            self._divergence(row),
            row.error,
        )

    def _divergence(self, row: BatchRow) -> str:
        if self._typical is None or row.status in (RowStatus.OPEN, RowStatus.CANCELLED):
            return ""
        here, there = (replace(each, output=readable(each.output)) for each in (row, self._typical))
        return divergence(here, there, self.at)

    def summary(self) -> WhatIfSummary:
        """Return what each variant changed, and whether that is more than chance."""
        return self._summary

    @cached_property
    def _summary(self) -> WhatIfSummary:
        own = self._ended(AS_IT_WAS)
        before = [Outcome.of(row) for row in own]
        groups = {name: self._ended(name) for name in self._variants if name != AS_IT_WAS}
        tested: dict[str, float] = {}
        for name, ended in groups.items():
            if min(len(own), len(ended)) >= FEWEST:
                tested[name] = permutation_p(distances([*map(Outcome.of, ended), *before]), len(ended))
        corrected = dict(zip(tested, holm([*tested.values()]), strict=True))
        effects = [self._effect(name, ended, corrected.get(name)) for name, ended in groups.items()]
        varied = sum(bool(self._divergence(row)) for row in own)
        return WhatIfSummary(effects, len(own), varied, [*self.notes, *self._doubts(len(tested))])

    def _effect(self, name: str, ended: Sequence[BatchRow], p: float | None) -> Effect:
        found = Counter(filter(None, map(self._divergence, ended)))
        change = found.most_common(1)[0][0] if found else ""
        return Effect(name, len(ended), found.total(), p, p is not None and p < LEVEL, change, dict(found))

    def _doubts(self, tested: int) -> list[str]:
        """Return why an effect may not be found."""
        text = f"With repeat={self.repeat}, chance cannot be separated from effect: "
        if self.repeat < FEWEST:
            return [f"{text}a model may answer differently each time. Pass at least {FEWEST}, better 20."]
        if tested and least_p(len(self._ended(AS_IT_WAS)), self.repeat) * tested >= LEVEL:
            return [f"{text}with {tested} variants no difference can reach p < {LEVEL}. Pass a larger repeat."]
        return []

    def frame(self) -> pd.DataFrame:
        """Return the branches as a data frame, one row per branch; secrets are masked.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        made: pd.DataFrame = call_view("agentbench.notebook.cards.what_if:what_if_frame", self)
        return made

    def plot(self) -> Any:
        """Return the paths of the branches as a tree with counts: a `Plot`.

        Raises:
            MissingExtraError: The notebook extra is not installed.
        """
        return call_view("agentbench.notebook.plots.path_tree:path_tree", self)

    def __repr__(self) -> str:
        return f"WhatIf({len(self._rows)} branches of {len(self._variants)} variants from superstep {self.at})"


def effect_line(effect: Effect) -> str:
    """Return an effect as one line of text, such as `short: 18 of 20 differ; effect, p = 0.001; output: ...`."""
    parts = [f"{_line(effect.variant)}: {effect.changed} of {effect.runs} differ", verdict_text(effect)]
    return "; ".join([*parts, *([_line(effect.change)] if effect.change else [])])


def verdict_text(effect: Effect) -> str:
    """Return whether there was an effect: `effect, p = 0.001`, `no effect found, p = 0.4`, or `not tested`."""
    if effect.p is None:
        return "not tested"
    p = "p < 0.001" if effect.p < 0.001 else f"p = {effect.p:.2g}"
    return f"effect, {p}" if effect.is_found else f"no effect found, {p}"


def _line(text: str) -> str:
    return plain_line(mask_text(text), 200)
