"""Whose yields leave a workflow as outputs, whose as intermediate outputs, and whose stay inside.

A designation is collected by the builder (`Designation`) and expanded to executor ids when the workflow is built
(`resolve_designation`); validation then checks it like every other rule of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.validation import EVERY_YIELD_IS_OUTPUT, OutputDesignation

__all__ = ["OMITTED", "Designation", "resolve_designation"]


class _Omitted:
    """The value of a keyword that was not given, where `None` would be a mistake."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "..."


OMITTED = _Omitted()


class Designation:
    """One of the two designations while it is collected: not given, a word such as `"all"`, or a list of nodes.

    Args:
        keyword: Name of the builder's keyword, for messages.
        words: Which words it takes in place of a list.
        given: The value of the keyword.

    Raises:
        ValueError: An unknown word.
        TypeError: Neither a word nor a list.
    """

    __slots__ = ("entries", "keyword", "word", "words")

    def __init__(self, keyword: str, words: Sequence[str], given: Any = OMITTED) -> None:
        self.keyword = keyword
        self.words = tuple(words)
        self.word: str | None = None
        self.entries: list[Any] | None = None
        if given is OMITTED or given is None:
            return
        if isinstance(given, str):
            self._take_word(given)
        elif isinstance(given, Iterable):
            self.entries = list(given)
        else:
            self.entries = [given]

    @property
    def is_given(self) -> bool:
        """Whether anything was said, be it an empty list."""
        return self.word is not None or self.entries is not None

    def add(self, entries: Iterable[Any]) -> None:
        """Add nodes to those that were named before; a single known word stands for itself.

        Raises:
            ValueError: A word was given before, which a list cannot be added to.
        """
        added = [*entries]
        if len(added) == 1 and isinstance(added[0], str) and added[0] in self.words:
            self._take_word(added[0])
            return
        if self.word is not None:
            msg = (
                f"{self.keyword} is {self.word!r} already, which names executors by itself; {added!r} cannot be added. "
                "Use either the word or a list."
            )
            raise ValueError(msg)
        self.entries = [*(self.entries or ()), *added]

    def _take_word(self, word: str) -> None:
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
    """Expand both designations to executor ids.

    Args:
        outputs: Of `output_from`.
        intermediate: Of `intermediate_output_from`.
        executors: All nodes by id, in builder order.
        node_id: Gives the id of a listed node.

    Raises:
        TypeError: A listed entry is no node (raised by `node_id`).
    """
    if not outputs.is_given and not intermediate.word and not intermediate.entries:
        return EVERY_YIELD_IS_OUTPUT
    output_ids = _expand(outputs, executors, node_id, taken=())
    intermediate_ids = _expand(intermediate, executors, node_id, taken=output_ids)
    is_empty = not outputs.word and not outputs.entries and not intermediate.word and not intermediate.entries
    return OutputDesignation(output_ids, intermediate_ids, is_empty)


def _expand(
    designation: Designation, executors: Mapping[str, Executor], node_id: Callable[[Any], str], taken: Sequence[str]
) -> tuple[str, ...]:
    if designation.word is None:
        return tuple([node_id(entry) for entry in designation.entries or ()])
    capable = [key for key, executor in executors.items() if executor.workflow_output_types]
    if designation.word == "all_other":
        capable = [key for key in capable if key not in taken]
    return tuple(capable)
