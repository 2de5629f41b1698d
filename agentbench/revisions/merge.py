"""What a reader of an editable page sent back, shown before it is applied to a branch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import mask_secrets
from agentbench._signatures import coerce_answer, is_instance_of
from agentbench._signatures.reading import readable_by_pydantic
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench._text.redact import hide_secrets, line_preview
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.editing import Edit, make_edit, updates_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import InvalidEdit, MergeError, WorkflowCheckpointException
from agentbench.revisions.answer_file import AnswerFile, read_answer_file
from agentbench.revisions.places import (
    LONGEST_VALUE,
    OpenQuestion,
    PlaceKind,
    fingerprint,
    holds_approval,
    is_plain,
    json_text,
    kind_of,
    questions_of,
    values_of,
)
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.run import WorkflowRun

_KINDS: dict[PlaceKind, tuple[type, ...]] = {"text": (str,), "whole": (int,), "number": (int, float), "truth": (bool,)}


@drawn_by("agentbench.notebook.cards.merge:merge_bundle")
@dataclass(frozen=True, kw_only=True, repr=False)
class Merge(Displayable):
    """The content of a file from an editable page, made by `await run.merge(path)`. Nothing is applied yet.

    Its display and `str()` show every change whole. `apply()` applies what is shown; the file is not read again.
    Approvals are never taken from a file: `questions` has their requests, for the person who merges to answer in the
    branch.

    Attributes:
        name: The name that the reader typed, unverified.
        checkpoint: The checkpoint at which the reader made the changes.
        edits: The edited values.
        answers: The answers by request id, as they are in the file.
        questions: The requests for approval that the file answers; these answers are not applied.

    Example:
        >>> merge = await run.merge("answer.json")
        >>> print(merge)
        >>> branch = await merge.apply()
        >>> for request in merge.questions:
        ...     await branch.respond(request, True)
        >>> await branch.result()
    """

    name: str
    checkpoint: CheckpointInfo
    edits: tuple[Edit, ...]
    answers: dict[str, Any]
    questions: tuple[WorkflowEvent[Any], ...]
    _run: WorkflowRun = field(compare=False)
    _content: WorkflowCheckpoint = field(compare=False)
    _converted: dict[str, Any] = field(compare=False)

    async def apply(self) -> WorkflowRun:
        """Start a branch of the run with these edits and answers. The run itself stays as it is.

        Returns:
            The branch, not yet driven.

        Raises:
            RuntimeError: A superstep of the run is being executed.
            ValueError: An edited message has no receiver, or an answer does not fit its request.
        """
        updates = updates_of(self._content, self.edits)
        branch = await self._run.fork(
            self.checkpoint, state_updates=updates.state or None, messages=updates.messages or None
        )
        await branch.plan()  # restores the open requests
        for request_id, value in self._converted.items():
            await branch.respond(request_id, value)
        return branch

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The changes as (place, before, after), each whole and with special characters made visible."""
        rows = [(edit.path, json_text(edit.before), json_text(edit.after)) for edit in self.edits]
        asked = self._content.pending_request_info_events
        for request_id, value in self.answers.items():
            request = asked[request_id]
            question = f"{request.source_executor_id} asks: {line_preview(request.data, 400)}"
            rows.append((f"answer to {request_id}", question, json_text(value)))
        return [tuple(esc(cell, into="text", limit=None) for cell in row) for row in rows]  # type: ignore[misc]

    @property
    def asked(self) -> list[str]:
        """The questions to the person who merges, as lines."""
        return [
            esc(f"{each.source_executor_id} asks: {line_preview(each.data, 400)}", into="line", limit=600)
            for each in self.questions
        ]

    @property
    def author(self) -> str:
        """The author of the changes, in words."""
        return f"by {esc(self.name, into='line', limit=200)} (unverified)" if self.name else "by an unnamed reader"

    def __str__(self) -> str:
        lines = [f"Merge at superstep {self.checkpoint.iteration}, {self.author}; apply() makes the branch"]
        lines += [f"  ~ {place}: {before} -> {after}" for place, before, after in self.rows]
        lines += [f"  ? {line} (approvals in a file are not applied: answer in the branch)" for line in self.asked]
        return "\n".join(lines)

    def __repr__(self) -> str:
        parts = [count_text(len(self.edits), "edit"), count_text(len(self.answers), "answer")]
        if self.questions:
            parts.append(count_text(len(self.questions), "question"))
        return f"Merge({', '.join(parts)} {self.author}, at superstep {self.checkpoint.iteration})"


async def merge(run: WorkflowRun, path: str | Path) -> Merge:
    """Read a file from an editable page of this run; `WorkflowRun.merge` documents it."""
    file = read_answer_file(path)
    where = str(path)
    checkpoint = await _checkpoint_of(run, file, where)
    values = {value.path: value for value in values_of(checkpoint)}
    edits: list[Edit] = []
    for place, before, after in file.edits:
        value = values.get(place)
        if value is None:
            raise MergeError(where, f"{place[:80]!r} is not a value that the page offered for editing")
        if value.before != before:
            raise MergeError(where, f"the value of {place!r} is not the one that the reader saw")
        _require_kind(after, value.kind, place, where)
        try:
            edit = make_edit(checkpoint, place, after, edits)
        except InvalidEdit as error:
            raise MergeError(where, f"the value of {place!r} does not fit: {error.problem}") from None
        is_number = value.kind == "number" and edit.after == after  # 2 for 1.5, which becomes 2.0
        is_same_kind = is_number or kind_of(edit.after) == kind_of(after)
        if edit.path != place or not is_plain(edit.after) or not is_same_kind:
            raise MergeError(where, f"the value of {place!r} would become another kind of value")
        if any(edit.steps[: len(other.steps)] == other.steps[: len(edit.steps)] for other in edits):
            raise MergeError(where, f"it edits {place!r} and a value around or inside it")
        edits.append(edit)
    questions = questions_of(checkpoint)
    answers: dict[str, Any] = {}
    converted: dict[str, Any] = {}
    unanswered: list[WorkflowEvent[Any]] = []
    for request_id, answer in file.answers:
        question = questions.get(request_id)
        if question is None:
            raise MergeError(where, f"no request {request_id[:80]!r} is open at that checkpoint")
        if question.is_approval:
            unanswered.append(question.request)
        else:
            converted[request_id] = _answer(question, answer, request_id, where)
            answers[request_id] = answer
    return Merge(
        name=file.name,
        checkpoint=CheckpointInfo.of(checkpoint),
        edits=tuple(edits),
        answers=answers,
        questions=tuple(unanswered),
        _run=run,
        _content=checkpoint,
        _converted=converted,
    )


async def _checkpoint_of(run: WorkflowRun, file: AnswerFile, where: str) -> WorkflowCheckpoint:
    """Return the checkpoint of a file, which must be of this run or before its beginning."""
    if run.storage is None:
        raise MergeError(where, "this run has no checkpoints, so no page of it could be edited")
    storage, at, ids = run.storage, run.started_from, {info.checkpoint_id for info in run.checkpoints}
    while at is not None and file.checkpoint not in ids and at not in ids:
        ids.add(at)
        at = (await load_checkpoint(storage, at)).previous_checkpoint_id
    if file.checkpoint not in ids:
        raise MergeError(where, "it is for a different run: its checkpoint does not belong to this run")
    try:
        checkpoint = await load_checkpoint(storage, file.checkpoint)
    except WorkflowCheckpointException:
        raise MergeError(where, "its checkpoint was deleted or cannot be loaded") from None
    if fingerprint(checkpoint) != file.run:
        raise MergeError(where, "it is for a different run: its hash is not the one of this run")
    return checkpoint


def _require_kind(value: Any, kind: PlaceKind, place: str, where: str) -> None:
    kinds = _KINDS.get(kind)
    if kinds is not None and type(value) not in kinds:
        wanted = {"text": "a text", "whole": "a whole number", "number": "a number", "truth": "true or false"}[kind]
        raise MergeError(where, f"the value of {place!r} is a {type(value).__name__}, expected {wanted}")
    if not is_plain(value):
        raise MergeError(where, f"the value of {place!r} is nested too deep or contains an approval")
    text = json_text(value)
    if len(text) > LONGEST_VALUE:
        raise MergeError(where, f"the value of {place!r} has more than {LONGEST_VALUE:,} characters")
    if mask_secrets(value) is not value or hide_secrets(text, ()) != text:
        raise MergeError(where, f"the value of {place!r} contains a secret, which could not be shown")


def _answer(question: OpenQuestion, value: Any, request_id: str, where: str) -> Any:
    place, wanted = f"answer to {request_id}", question.request.response_type
    _require_kind(value, question.kind, place, where)
    if question.kind == "choice" and not any(type(each) is type(value) and each == value for each in question.options):
        raise MergeError(where, f"the {place!r} is not one of the options")
    answer = coerce_answer(value, wanted)
    if not is_instance_of(answer, wanted):
        from pydantic import PydanticUserError, TypeAdapter, ValidationError

        try:
            answer = TypeAdapter(readable_by_pydantic(wanted)).validate_python(value)
        except (ValidationError, PydanticUserError):  # their texts would repeat the value
            raise MergeError(where, f"the {place!r} is not of the type of the request") from None
    if holds_approval(answer):
        raise MergeError(where, f"the {place!r} contains an approval, which a file cannot give")
    return answer
