"""Which executors' yields leave a workflow as outputs or as intermediate outputs, and which stay inside.

The builder collects a designation (`Designation`) and expands it to executor ids when the workflow is built
(`resolve_designation`). Validation then checks it like every other rule of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.validation import EVERY_YIELD_IS_OUTPUT, OutputDesignation


class Designation:
    """One of the two designations during collection: open (None), one of `words` such as `"all"`, or a list."""

    __slots__ = ("keyword", "value", "words")

    def __init__(self, keyword: str, words: Sequence[str], value: Any = None) -> None:
        self.keyword = keyword
        self.words = tuple(words)
        self.value: str | list[Any] | None = None
        if isinstance(value, str):
            self._set_word(value)
        elif value is not None:
            self.value = list(value) if isinstance(value, Iterable) else [value]

    def add(self, entries: Sequence[Any]) -> None:
        """Add nodes to the ones named before; a single known word is set as the word."""
        if len(entries) == 1 and isinstance(entries[0], str) and entries[0] in self.words:
            self._set_word(entries[0])
        elif isinstance(self.value, str):
            msg = (
                f"{self.keyword} is already {self.value!r}, which names executors by itself; {list(entries)!r} cannot "
                "be added. Use either the word or a list."
            )
            raise ValueError(msg)
        else:
            self.value = [*(self.value or ()), *entries]

    def _set_word(self, word: str) -> None:
        if word not in self.words:
            words = " or ".join(map(repr, self.words))
            msg = f"{self.keyword}={word!r} is not known. Use {words}, or a list of executors."
            raise ValueError(msg)
        if self.value and not isinstance(self.value, str):
            msg = f"{self.keyword} already names executors: {self.value!r}. Use either {word!r} or a list."
            raise ValueError(msg)
        self.value = word


def resolve_designation(
    outputs: Designation,
    intermediate: Designation,
    executors: Mapping[str, Executor],
    node_id: Callable[[Any], str],
) -> OutputDesignation:
    """Expand both designations to executor ids; `node_id` returns the id of a listed node."""
    if outputs.value is None and intermediate.value is None:
        return EVERY_YIELD_IS_OUTPUT

    def expand(designation: Designation, taken: Sequence[str]) -> tuple[str, ...]:
        if not isinstance(designation.value, str):
            return tuple([node_id(entry) for entry in designation.value or ()])
        others = taken if designation.value == "all_other" else ()
        return tuple([key for key, e in executors.items() if e.workflow_output_types and key not in others])

    output_ids = expand(outputs, ())
    return OutputDesignation(output_ids, expand(intermediate, output_ids), not (outputs.value or intermediate.value))
