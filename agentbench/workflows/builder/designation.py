"""Whose yields leave a workflow as outputs, whose as intermediate outputs, and whose stay inside.

A designation is collected by the builder (`Designation`) and expanded to executor ids when the workflow is built
(`resolve_designation`); validation then checks it like every other rule of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.validation import EVERY_YIELD_IS_OUTPUT, OutputDesignation


class Designation:
    """One of the two designations while it is collected: open, one of `words` such as `"all"`, or a list of nodes."""

    __slots__ = ("entries", "keyword", "word", "words")

    def __init__(self, keyword: str, words: Sequence[str], value: Any = None) -> None:
        self.keyword = keyword
        self.words = tuple(words)
        self.word: str | None = None
        self.entries: list[Any] | None = None
        if isinstance(value, str):
            self._set_word(value)
        elif value is not None:
            self.entries = list(value) if isinstance(value, Iterable) else [value]

    @property
    def is_open(self) -> bool:
        """Whether there is neither a word nor a list, be it an empty one."""
        return self.word is None and self.entries is None

    def add(self, entries: Sequence[Any]) -> None:
        """Add nodes to those that were named before; a single known word is set as the word."""
        if len(entries) == 1 and isinstance(entries[0], str) and entries[0] in self.words:
            self._set_word(entries[0])
            return
        if self.word is not None:
            msg = (
                f"{self.keyword} is {self.word!r} already, which names executors by itself; {list(entries)!r} cannot "
                "be added. Use either the word or a list."
            )
            raise ValueError(msg)
        self.entries = [*(self.entries or ()), *entries]

    def _set_word(self, word: str) -> None:
        if word not in self.words:
            known = " or ".join(map(repr, self.words))
            msg = f"{self.keyword}={word!r} is not known. Use {known}, or a list of executors."
            raise ValueError(msg)
        if self.entries:
            msg = f"{self.keyword} names executors already: {self.entries!r}. Use either {word!r} or a list."
            raise ValueError(msg)
        self.word = word


def resolve_designation(
    outputs: Designation,
    intermediate: Designation,
    executors: Mapping[str, Executor],
    node_id: Callable[[Any], str],
) -> OutputDesignation:
    """Expand both designations to executor ids; `node_id` returns that of a listed node."""
    if outputs.is_open and not intermediate.word and not intermediate.entries:
        return EVERY_YIELD_IS_OUTPUT

    def expand(designation: Designation, taken: Sequence[str]) -> tuple[str, ...]:
        if designation.word is None:
            return tuple([node_id(entry) for entry in designation.entries or ()])
        others = taken if designation.word == "all_other" else ()
        return tuple([key for key, e in executors.items() if e.workflow_output_types and key not in others])

    output_ids = expand(outputs, ())
    is_empty = not any((outputs.word, outputs.entries, intermediate.word, intermediate.entries))
    return OutputDesignation(output_ids, expand(intermediate, output_ids), is_empty)
