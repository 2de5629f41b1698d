"""Records and parts in a database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.joining import live_parts
from agentbench.checkpoints.sql_storage.database import Database
from agentbench.checkpoints.sql_storage.packing import decode_name, encode_name, pack, unpack
from agentbench.checkpoints.sql_storage.session import Row, Session, database_url
from agentbench.checkpoints.storage import require_head
from agentbench.exceptions import CheckpointNotFoundError

T = TypeVar("T")

_SHORTEST_PART: Final = 128
"""Parts are deflated from this size on (bytes), because each is written only once. Data written with every checkpoint
is small if possible, and must be written quickly.
"""
_SHORTEST: Final = 1024
_FEW: Final = 16
"""The numbers of ids per query, few or many: there is a separate statement for each number."""
_AT_ONCE: Final = 256


class SQLBackend:
    """Stores records and parts in a database; its argument and errors are those of `SQLCheckpointStorage`."""

    def __init__(self, path_or_url: Any) -> None:
        self._database = Database(database_url(path_or_url))
        self.place = self._database.place
        self._statements = self._database.statements
        # The statements that every resumption needs, compiled early so that the first one does not have to wait.
        self._statements.find_parts(_FEW)
        self._statements.heads(of_run=False, before=False, limited=True)

    @property
    def database(self) -> Database:
        """The database, for tables of other parts of the library beside those of checkpoints."""
        return self._database

    @property
    def is_local(self) -> bool:
        """Whether the database is a file, which a `put` writes but does not sync."""
        return self._database.is_sqlite

    def generation(self, workflow_name: str) -> int:
        """Return a number that changes whenever parts of the chain may have been removed, or with the database."""

        def read(session: Session) -> int:
            found = session.rows(self._statements.generation, name=encode_name(workflow_name))
            generation: int = found[0][0] if found else session.generation
            return generation

        return self._database.read(read)

    def put(
        self,
        record: CheckpointRecord,
        parts: Mapping[str, str],
        *,
        generation: int,
        expected_seq: int | None = None,
        patient: bool = True,
    ) -> None:
        """Store a record and its new parts, all or nothing, visible to others in one step."""
        checkpoint_id = encode_name(record.checkpoint_id)
        row = _row(record, generation)
        texts = _part_rows(record.workflow_name, parts)
        statements = self._statements
        seems_new = True

        def write(session: Session) -> None:
            nonlocal seems_new
            if expected_seq is not None or not seems_new:
                chain = self._lock(session, record.workflow_name, generation)
                if expected_seq is not None:
                    newest = session.rows(statements.newest_seq, chain_id=chain)
                    require_head(record.workflow_name, newest[0][0] if newest else 0, expected_seq)
            if not seems_new:  # the database rejected a duplicate id, and this is the second attempt
                self._remove(session, session.rows(statements.find_record, checkpoint_id=checkpoint_id))
            seems_new = False
            if not session.run(statements.add_record, row):  # chain missing, or of another generation
                self._lock(session, record.workflow_name, generation)
                session.run(statements.add_record, row)
            session.run_many(statements.add_part, texts)

        self._database.change(write, patient=patient)

    def put_chain(self, records: Sequence[CheckpointRecord], parts: Mapping[str, str], *, generation: int) -> None:
        """Store the records of a new chain with their parts in one transaction; the database refuses known ids."""
        chain = records[0].workflow_name
        rows, texts = [_row(record, generation) for record in records], _part_rows(chain, parts)

        def write(session: Session) -> None:
            newest = session.rows(self._statements.newest_seq, chain_id=self._lock(session, chain, generation))
            require_head(chain, newest[0][0] if newest else 0, 0)
            session.run_many(self._statements.add_record, rows)
            session.run_many(self._statements.add_part, texts)

        self._database.change(write)

    def _lock(self, session: Session, workflow_name: str, generation: int | None = None) -> int:
        """Lock a chain until the transaction ends, and return its number."""
        name = encode_name(workflow_name)
        rows = session.rows(self._statements.lock_chain, name=name)
        if not rows:
            session.run(self._statements.add_chain, {"name": name, "generation": session.generation})
            rows = session.rows(self._statements.lock_chain, name=name)
        chain: int = rows[0][0]
        if generation is not None and generation != rows[0][1]:
            raise StalePartsError
        return chain

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """Return a record with its content."""
        statement, name = self._statements.get, encode_name(checkpoint_id)
        return _first(self._database.read(lambda session: session.rows(statement, checkpoint_id=name)))

    def latest(self, workflow_name: str) -> CheckpointRecord | None:
        """Return the last record of a chain with its content, by one indexed read."""
        statement, name = self._statements.latest, encode_name(workflow_name)
        return _first(self._database.read(lambda session: session.rows(statement, name=name)))

    def heads(
        self, workflow_name: str, *, run_id: str | None = None, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRecord]:
        """List records of a chain without content, in order, oldest first."""
        values: dict[str, Any] = {"name": encode_name(workflow_name)}
        if run_id is not None:
            values["run_id"] = encode_name(run_id)
        if limit is not None:
            values["limit"] = limit
        statement = self._statements.heads(
            of_run=run_id is not None, before=before is not None, limited=limit is not None
        )

        def read(session: Session) -> list[Row]:
            if before is not None:
                place = session.rows(self._statements.position, checkpoint_id=encode_name(before), **values)
                if not place:
                    raise CheckpointNotFoundError(before)
                values.update(zip(("seq", "timestamp", "record_id"), place[0], strict=True))
            return session.rows(statement, **values)

        return _bare_records(workflow_name, self._database.read(read))

    def outlines(self, workflow_name: str) -> list[CheckpointRecord]:
        """See `StorageBackend`. Heads are hardly more expensive here."""
        return self.heads(workflow_name)

    def ids(self, workflow_name: str) -> list[str]:
        """List the ids of a chain in order, oldest first."""
        statement, name = self._statements.ids, encode_name(workflow_name)
        rows = self._database.read(lambda session: session.rows(statement, name=name))
        return [decode_name(checkpoint_id) for (checkpoint_id,) in rows]

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        """Return parts of a chain by id; missing ones are left out."""
        return self._database.read(lambda session: self._parts(session, workflow_name, ids))

    def _parts(self, session: Session, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        name, found = encode_name(workflow_name), {}
        for names in _bind_ids(ids):
            rows = session.rows(self._statements.find_parts(len(names)), name=name, **names)
            found.update({decode_name(part_id): unpack(text) for part_id, text in rows})
        return found

    def chains(self, prefix: str = "") -> list[str]:
        """List the names of all chains that hold a record, sorted by code point."""
        statement, first = self._statements.chains, encode_name(prefix)
        behind = first + b"\xff"  # no name holds this byte
        rows = self._database.read(lambda session: session.rows(statement, first=first, behind=behind))
        return [decode_name(name) for (name,) in rows]

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        """Remove records of a chain, with `sweep` also its unneeded parts; return the number of records."""

        def write(session: Session) -> int:
            chain = self._lock(session, workflow_name)
            rows: list[Row] = []
            for names in _bind_ids(dict.fromkeys(ids)):
                rows += session.rows(self._statements.find_records(len(names)), chain_id=chain, **names)
            self._remove(session, rows)
            if sweep:
                self._sweep(session, workflow_name, chain)
            return len(rows)

        return self._database.change(write)

    def remove_chain(self, session: Session, workflow_name: str) -> None:
        """Remove a whole chain within a transaction, without reading it."""
        chain = {"chain_id": self._lock(session, workflow_name)}
        session.run(self._statements.remove_records, chain)
        session.run(self._statements.remove_parts, chain)
        session.run(self._statements.next_generation, chain)

    def close(self) -> None:
        """Close the connection; a later call opens another one."""
        self._database.close()

    def _remove(self, session: Session, record_ids: list[Row]) -> None:
        session.run_many(self._statements.remove_record, [{"record_id": record_id} for (record_id,) in record_ids])

    def _sweep(self, session: Session, workflow_name: str, chain: int) -> None:
        contents = session.each_row(self._statements.contents, chain_id=chain)
        fetch = partial(self._parts, session, workflow_name)
        live = {encode_name(name) for name in live_parts((unpack(content) for (content,) in contents), fetch)}
        stored = session.rows(self._statements.part_ids, chain_id=chain)
        dead = [{"chain_id": chain, "part_id": part_id} for (part_id,) in stored if part_id not in live]
        session.run_many(self._statements.remove_part, dead)
        session.run(self._statements.next_generation, {"chain_id": chain})


def _row(record: CheckpointRecord, generation: int) -> dict[str, Any]:
    return {
        "name": encode_name(record.workflow_name),
        "generation": generation,
        "seq": record.seq,
        "timestamp": encode_name(record.timestamp),
        "checkpoint_id": encode_name(record.checkpoint_id),
        "run_id": None if record.run_id is None else encode_name(record.run_id),
        "head": pack(record.head, _SHORTEST),
        "content": pack(record.content, _SHORTEST),
    }


def _part_rows(workflow_name: str, parts: Mapping[str, str]) -> list[dict[str, Any]]:
    name = encode_name(workflow_name)
    return [
        {"name": name, "part_id": encode_name(part_id), "text": pack(text, _SHORTEST_PART)}
        for part_id, text in parts.items()
    ]


def _first(rows: list[Row]) -> CheckpointRecord | None:
    if not rows:
        return None
    name, *bare, content = rows[0]
    (record,) = _bare_records(decode_name(name), [tuple(bare)])
    return replace(record, content=unpack(content))


def _bare_records(workflow_name: str, rows: list[Row]) -> list[CheckpointRecord]:
    """Build records from rows, newest first."""
    runs: dict[bytes | None, str | None] = {None: None}  # few, with many records each
    records = []
    for checkpoint_id, seq, timestamp, run_id, head in reversed(rows):
        if run_id not in runs:
            runs[run_id] = decode_name(run_id)
        name, time, run = decode_name(checkpoint_id), decode_name(timestamp), runs[run_id]
        records.append(CheckpointRecord(name, workflow_name, seq, time, run, unpack(head)))
    return records


def _bind_ids(ids: Collection[str]) -> Iterator[dict[str, bytes]]:
    """Name ids `id_0` and so on, in groups of a few sizes; the last id is repeated to fill the last group."""
    names = iter(ids)
    while group := [encode_name(name) for name in islice(names, _AT_ONCE)]:
        group += group[-1:] * ((_FEW if len(group) <= _FEW else _AT_ONCE) - len(group))
        yield {f"id_{number}": name for number, name in enumerate(group)}
