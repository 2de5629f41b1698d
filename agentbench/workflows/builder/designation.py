"""Whose yields leave a workflow as outputs, whose as intermediate outputs, and whose stay inside.

A designation is collected by the builder (`Designation`), expanded to executor ids when the workflow is built
(`resolve_designation`), and checked like every other rule of a graph (`designation_errors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agentbench.exceptions import ValidationTypeEnum, WorkflowValidationError
from agentbench.workflows.executors.executor import Executor

__all__ = ["OMITTED", "Designation", "ResolvedDesignation", "designation_errors", "resolve_designation"]


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


class ResolvedDesignation(NamedTuple):
    """Ids by kind of output, in builder order or as listed; both `None` if every yield is an output.

    Attributes:
        outputs: Executors whose yields are outputs.
        intermediate: Executors whose yields are intermediate outputs.
        is_empty: An empty list was given and nothing else, so that no yield would ever leave the workflow.
    """

    outputs: tuple[str, ...] | None
    intermediate: tuple[str, ...] | None
    is_empty: bool = False


EVERY_YIELD_IS_OUTPUT = ResolvedDesignation(None, None)


def resolve_designation(
    outputs: Designation,
    intermediate: Designation,
    executors: Mapping[str, Executor],
    node_id: Callable[[Any], str],
) -> ResolvedDesignation:
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
    return ResolvedDesignation(output_ids, intermediate_ids, is_empty)


def _expand(
    designation: Designation, executors: Mapping[str, Executor], node_id: Callable[[Any], str], taken: Sequence[str]
) -> tuple[str, ...]:
    if designation.word is None:
        return tuple([node_id(entry) for entry in designation.entries or ()])
    capable = [key for key, executor in executors.items() if executor.workflow_output_types]
    if designation.word == "all_other":
        capable = [key for key in capable if key not in taken]
    return tuple(capable)


def designation_errors(
    executors: Mapping[str, Executor], designation: ResolvedDesignation
) -> list[WorkflowValidationError]:
    """Check that each designated executor is there, can yield, and is named once.

    Returns:
        What is wrong, each with `ValidationTypeEnum.OUTPUT_VALIDATION`.
    """
    if designation.is_empty:
        return [
            _error(
                "output_from is an empty list and nothing is designated as intermediate, so that no output would ever "
                "leave the workflow. Name the executors whose yields are outputs, or leave output_from out to get all."
            )
        ]
    outputs, intermediate = designation.outputs or (), designation.intermediate or ()
    errors = [*_repeated("output_from", outputs), *_repeated("intermediate_output_from", intermediate)]
    both = sorted(set(outputs) & set(intermediate))
    if both:
        errors.append(
            _error(
                f"Executors {both} are designated both as outputs and as intermediate outputs. An executor's yields "
                "are one or the other: take each out of one of the lists."
            )
        )
    for executor_id in dict.fromkeys([*outputs, *intermediate]):
        executor = executors.get(executor_id)
        if executor is None:
            errors.append(
                _error(
                    f"Executor {executor_id!r} is designated for outputs, but is not part of the workflow, which has "
                    f"{sorted(executors)}. Connect it, or take it out of the list."
                )
            )
        elif not executor.workflow_output_types:
            errors.append(
                _error(
                    f"Executor {executor_id!r} is designated for outputs, but declares none. Annotate a handler's "
                    "context with the yielded type, WorkflowContext[Sent, Yielded], or give workflow_output=."
                )
            )
    return errors


def _repeated(keyword: str, ids: Sequence[str]) -> list[WorkflowValidationError]:
    twice = sorted({one for one in ids if ids.count(one) > 1}) if len(set(ids)) < len(ids) else []
    return [_error(f"{keyword} names {twice} more than once. Name each executor once.")] if twice else []


def _error(message: str) -> WorkflowValidationError:
    return WorkflowValidationError(message, ValidationTypeEnum.OUTPUT_VALIDATION)
