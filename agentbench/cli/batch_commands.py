"""The actions of `agentbench batch`: show, retry, answer and export the rows of a batch."""

from __future__ import annotations

import argparse
import csv
import heapq
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import Any, TextIO

from agentbench._files.private_file import open_private
from agentbench._text.phrases import count_text
from agentbench.batch.batch import Batch
from agentbench.batch.opening import open_batch, open_database
from agentbench.batch.rows import BatchRow, RowStatus
from agentbench.batch.store.store import BatchStore, batch_names
from agentbench.cli.batch_text import (
    ROW_FIELDS,
    batch_facts,
    batch_text,
    batches_text,
    question_json,
    questions_text,
    row_json,
    rows_text,
)
from agentbench.cli.checkpoint_commands import plain_unknown, print_json
from agentbench.cli.checkpoint_text import line
from agentbench.exceptions import BatchError
from agentbench.serialization.class_names import UnknownType, unknown_as_plain
from agentbench.workflows.run.responses import check_responses

_PAGE = 500
_NEXT = "run_many() with the workflow continues here: its next call, or one that is running now."


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator[Batch]:
    batch = open_batch(options.into, options.name)
    try:
        yield batch
    finally:
        batch.close()


def show(options: argparse.Namespace) -> int:
    """Print the batches of a database, or the numbers, questions and rows of one."""
    if options.name is None:
        database = open_database(options.into)
        found = [batch_facts(Batch(BatchStore(database, name), None, None, None)) for name in batch_names(database)]
        database.close()
        print_json(found) if options.json else print(batches_text(found))
        return 0
    with _opened(options) as batch, plain_unknown():
        facts = batch_facts(batch)
        status = None if options.rows in (None, "all") else options.rows
        rows = [] if options.rows is None else batch.rows(status, limit=options.limit)
        questions = batch.questions()
        if options.json:
            asked = [question_json(each) for each in questions[: options.limit]]
            more = {"questions": asked, "rows": [row_json(row, secrets=options.show_secrets) for row in rows]}
            print_json(facts | more)
            return 0
        print(batch_text(facts, len(questions)))
        if questions:
            print(f"\n{questions_text(questions[: options.limit])}")
        if rows:
            print(f"\n{rows_text(rows, secrets=options.show_secrets)}")
        total = sum(facts["counts"].values()) if status is None else facts["counts"].get(status, 0)
        if options.rows is not None and len(rows) < total:
            print(f"{len(rows):,} of {count_text(total, 'row')}; --limit N prints more.", file=sys.stderr)
    return 0


def retry(options: argparse.Namespace) -> int:
    """Open failed rows again."""
    with _opened(options) as batch, unknown_as_plain():
        for key in options.keys:
            status = batch.row(key).status
            if status is not RowStatus.FAILED:
                msg = f"Row {key!r} of batch {batch.name!r} is {status}, not failed. Nothing was opened."
                raise BatchError(msg)
        opened = batch.store.reopen(RowStatus.FAILED, options.keys or None)
    print(f"{count_text(opened, 'row')} opened again. {_NEXT}" if opened else "No row has failed.")
    return 0


def answer(options: argparse.Namespace) -> int:
    """Answer the questions of a row, or print them."""
    with _opened(options) as batch, plain_unknown():
        row, questions = batch.row(options.key), batch.questions(options.key)
        if not questions:
            msg = f"Row {options.key!r} of batch {batch.name!r} asks nothing: it is {row.status}."
            raise BatchError(msg)
        if not options.answers:
            print(questions_text(questions))
            return 0
        requests = {each.request.request_id: each.request for each in questions}
        texts = _by_request(options.answers, requests)
        answers = {request_id: _checked(requests[request_id], text) for request_id, text in texts.items()}
        if not batch.store.answer(options.key, answers):
            msg = f"Row {options.key!r} was answered by someone else in the meantime. Nothing was stored."
            raise BatchError(msg)
        print(f"Answered {count_text(len(answers), 'question')} of row {line(options.key)}. {_NEXT}")
        if unknown := {line(requests[each].response_type) for each in answers if _is_unknown(requests[each])}:
            print(f"Not checked, because it is unknown here: {', '.join(sorted(unknown))}.", file=sys.stderr)
    return 0


def _by_request(texts: Sequence[str], requests: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        request_id, equals, value = text.partition("=")
        if not equals or request_id not in requests:
            request_id, value = next(iter(requests)), text
            if len(requests) > 1:
                msg = f"{text!r} names no request. Expected REQUEST=VALUE, with one of {', '.join(requests)}."
                raise BatchError(msg)
        if request_id in found:
            both = f"{found[request_id]!r} and {value!r}"
            msg = f"There are two answers to request {request_id!r}: {both}. Quote a text with spaces."
            raise BatchError(msg)
        found[request_id] = value
    return found


def _checked(request: Any, text: str) -> Any:
    """Return an answer as its type wants it, read as JSON or else as text, if that type is known here."""
    request_id, value = request.request_id, text
    with suppress(ValueError):
        value = json.loads(text)
    if _is_unknown(request):
        return value  # the run will check it, and ask again if it does not fit
    with suppress(ValueError):
        return check_responses({request_id: request}, {request_id: value})[request_id]
    return check_responses({request_id: request}, {request_id: text})[request_id]


def _is_unknown(request: Any) -> bool:
    return isinstance(request.response_type, UnknownType)


def export(options: argparse.Namespace) -> int:
    """Write the rows to a file, a page of them in memory at a time."""
    write = _WRITERS.get(os.path.splitext(options.file)[1].lower())
    if write is None:
        msg = f"{options.file!r} has no known ending; expected a file that ends in {', '.join(_WRITERS)}."
        raise BatchError(msg)
    part = f"{options.file}.part"
    with _opened(options) as batch, unknown_as_plain():
        try:
            descriptor = open_private(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                # Page by page for each status, because the index of the table is by status and position.
                rows = heapq.merge(*(_pages(batch, each) for each in RowStatus), key=attrgetter("position"))
                write(file, (row_json(row, secrets=True) for row in rows))
            os.replace(part, options.file)
        finally:
            with suppress(FileNotFoundError):
                os.remove(part)
    print(f"The rows were written to {line(options.file)}.")
    return 0


def _pages(batch: Batch, status: RowStatus) -> Iterator[BatchRow]:
    after = -1
    while page := batch.store.rows(status, after=after, limit=_PAGE):
        yield from page
        after = page[-1].position


def _write_csv(file: TextIO, rows: Iterable[dict[str, Any]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*ROW_FIELDS, "error_message", "error_location"])
    for row in rows:
        error = row["error"] or {}
        row |= {"error": error.get("type")} | {f"error_{name}": error.get(name) for name in ("message", "location")}
        writer.writerow([_cell(value) for value in row.values()])


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_lines(file: TextIO, rows: Iterable[dict[str, Any]]) -> None:
    file.writelines(f"{json.dumps(row)}\n" for row in rows)


def _write_array(file: TextIO, rows: Iterable[dict[str, Any]]) -> None:
    separator = "[\n"
    for row in rows:
        file.write(separator + json.dumps(row))
        separator = ",\n"
    file.write("\n]\n" if separator == ",\n" else "[]\n")


_WRITERS = {".csv": _write_csv, ".jsonl": _write_lines, ".json": _write_array}
