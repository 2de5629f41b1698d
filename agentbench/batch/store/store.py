"""The rows of one batch: registered, claimed, ended and read, in a database that several processes may share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from agentbench._copying import isolate_or_same
from agentbench.batch.rows import BatchRow, RowError, RowStatus, Traffic
from agentbench.batch.store import tables
from agentbench.batch.store.database import BatchDatabase, Row, RunsStatements
from agentbench.batch.store.owner import Owner
from agentbench.checkpoints.sql_storage.packing import decode_name, encode_name, pack, unpack
from agentbench.serialization.json_text import from_json, to_json

_STATUSES: Final = (RowStatus.OPEN, RowStatus.FINISHED, RowStatus.FAILED, RowStatus.WAITING, RowStatus.CANCELLED)
_NUMBERS: Final = {status: number for number, status in enumerate(_STATUSES)}
_SHORTEST: Final = 1024
"""Texts are deflated from this size on, in bytes."""
_MOST_PARAMETERS: Final = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """An input that this process runs now, with what is known of earlier attempts."""

    row_id: int
    key: str
    owner: bytes
    attempts: int
    losses: int
    """How many processes ended while they ran this input."""
    registered: float
    input: Any
    answers: dict[str, Any] | None
    checkpoint_id: str | None
    graph_hash: str | None
    started: float | None
    queued_seconds: float | None
    has_ended: bool
    """Whether it ended before: its traffic and its tokens are in the tables."""
    tokens: tuple[int | None, int | None]
    cost: float | None
    seconds: float


@dataclass(slots=True)
class Ending:
    """How a run ended: what is written to its row."""

    claim: Claim
    status: RowStatus
    fields: dict[str, Any]
    traffic: list[Traffic] = field(default_factory=list)
    chain_to_remove: str | None = None
    """The chain of its checkpoints, if they are not kept."""


class BatchStore:
    """The rows of the batch `name`. All methods block; they can be called from any thread."""

    def __init__(self, database: BatchDatabase, name: str, opened: float | None = None) -> None:
        self.database, self.name = database, name
        self._objects: dict[int, Any] = {}
        self._adding = threading.Lock()
        values = {"name": encode_name(name)}
        found = database.read(tables.FIND_BATCH, **values)
        if not found:  # one that exists can be read without writing, also while another process writes
            database.change(lambda session: session.run(database.sql(tables.ADD_BATCH), values))
            found = database.read(tables.FIND_BATCH, **values)
        ((self._batch_id, now),) = found
        self.opened: float = now if opened is None else opened
        """When this call began, by the clock of the database: rows that failed before are tried again."""
        self._owner: Owner | None = None

    @property
    def owner(self) -> Owner:
        """This process as the owner of inputs, from the first use on."""
        if self._owner is None:
            self._owner = Owner(self.database)
        return self._owner

    def give_up_claims(self) -> None:
        """End the ownership of this process, when it runs nothing any more; a later claim begins another one."""
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.close()

    def close(self) -> None:
        """Give up the claims of this process, and close the connections."""
        self.give_up_claims()
        self.database.close()

    # ---- values ------------------------------------------------------------------------------------------------------

    def pack(self, value: Any) -> Any:
        """Return the stored form of a value; in memory it is the value itself, which therefore may be any object."""
        if self.database.into is not None:
            return pack(to_json(value), _SHORTEST)
        with self._adding:
            number = len(self._objects)
            self._objects[number] = isolate_or_same(value)
        return number

    def unpack(self, stored: Any) -> Any:
        """Return the value of which `pack` made the stored form; None for NULL."""
        if stored is None:
            return None
        return self._objects[stored] if self.database.into is None else from_json(unpack(bytes(stored)))

    # ---- registering and claiming ------------------------------------------------------------------------------------

    def register(self, inputs: Sequence[tuple[str, int, Any]], *, claim: bool, patient: bool = True) -> list[Claim]:
        """Add inputs that the batch does not have yet, and claim those that nobody runs and that have not finished.

        Args:
            inputs: Key, number of earlier occurrences of the key in this call, and input.
            claim: Whether this process runs them; otherwise they are only added.
            patient: Whether to wait for other processes that write; otherwise that is a `BlockingIOError`.
        """
        database, sql = self.database, self.database.sql
        firsts = {key: value for key, nth, value in inputs if not nth}
        repeats = [(key, nth) for key, nth, _ in inputs if nth]
        packed = {key: self.pack(value) for key, value in firsts.items()}
        owner = self.owner.id if claim else None
        owned_by = {"owner": self.owner.id, "batch_id": self._batch_id, "since": self.opened}

        def work(session: RunsStatements) -> list[Row]:
            ((position,),) = session.rows(sql(tables.LOCK_BATCH), batch_id=self._batch_id)
            known = self._known(session, "agentbench_batch_rows", [(key, 0) for key in firsts])
            said = self._known(session, "agentbench_batch_repeats", repeats)
            rows: list[Row] = []
            begin = position
            for key, nth, _ in inputs:  # positions follow the order of the inputs
                values = {"batch_id": self._batch_id, "key": encode_name(key), "position": position}
                if nth:
                    if (key, nth) not in said:
                        session.run(sql(tables.INSERT_REPEAT), {**values, "nth": nth})
                        position += 1
                elif (key, 0) not in known:
                    values |= {"owner": owner, "input": packed[key], "attempts": int(claim)}
                    session.run(sql(tables.INSERT_ROW), values)
                    position += 1
                elif claim:
                    rows += session.rows(sql(tables.CLAIM), key=values["key"], **owned_by)
            if position != begin:
                session.run(sql(tables.MOVE_POSITION), {"batch_id": self._batch_id, "position": position})
            if claim and (new := [key for key in firsts if (key, 0) not in known]):
                rows += self._claimed_new(session, new)
            return rows

        rows = database.change(work, patient=patient)
        return [self._claim(row) for row in rows]

    def _known(self, session: RunsStatements, table: str, keys: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        known: set[tuple[str, int]] = set()
        nth = "0" if table == "agentbench_batch_rows" else "nth"
        for names, values in _groups([key for key, _ in keys]):
            text = f"SELECT key, {nth} FROM {table} WHERE batch_id = :batch_id AND key IN ({names})"
            found = session.rows(self.database.sql(text), batch_id=self._batch_id, **values)
            known.update((decode_name(bytes(key)), number) for key, number in found)
        return known

    def _claimed_new(self, session: RunsStatements, keys: Sequence[str]) -> list[Row]:
        rows: list[Row] = []
        for names, values in _groups(keys):
            text = (
                f"SELECT {tables.CLAIMED} FROM agentbench_batch_rows "
                f"WHERE batch_id = :batch_id AND key IN ({names}) ORDER BY position"
            )
            rows += session.rows(self.database.sql(text), batch_id=self._batch_id, **values)
        return rows

    def claim(self, keys: Iterable[str]) -> list[Claim]:
        """Claim rows by key; those that have ended or that another living process runs are left out."""
        sql, owner = self.database.sql(tables.CLAIM), self.owner.id
        values = {"owner": owner, "batch_id": self._batch_id, "since": self.opened}

        def work(session: RunsStatements) -> list[Row]:
            return [row for key in keys for row in session.rows(sql, key=encode_name(key), **values)]

        return [self._claim(row) for row in self.database.change(work)]

    def runnable(self, keys: Sequence[str]) -> list[str]:
        """Return those of the keys whose rows a claim could take, whoever runs them now, in this order."""
        found: set[str] = set()
        for names, values in _groups(keys):
            text = f"{tables.RUNNABLE} AND key IN ({names})"
            rows = self.database.read(text, batch_id=self._batch_id, since=self.opened, **values)
            found.update(decode_name(bytes(key)) for (key,) in rows)
        return [key for key in keys if key in found]

    def free_keys(self, count: int) -> list[str]:
        """Return keys of open rows that nobody runs, in order; first, owners that are gone lose their claims."""
        if self.database.into is not None:
            self.owner.expire_others()
        found = self.database.read(tables.FREE_KEYS, batch_id=self._batch_id, count=count)
        return [decode_name(bytes(key)) for (key,) in found]

    def busy(self) -> int:
        """Return the number of rows that living processes are running."""
        count: int = self.database.read(tables.BUSY, batch_id=self._batch_id)[0][0]
        return count

    def _claim(self, row: Row) -> Claim:
        (
            row_id, key, _, attempts, losses, registered, supersteps, _, tokens_in, tokens_out, cost, started, seconds,
            queued, checkpoint_id, graph_hash, stored, answers,
        ) = row  # fmt: skip
        return Claim(
            row_id,
            decode_name(bytes(key)),
            self.owner.id,
            attempts,
            losses,
            registered,
            self.unpack(stored),
            None if answers is None else self.unpack(answers),
            _text(checkpoint_id),
            _text(graph_hash),
            started,
            queued,
            bool(supersteps),
            (tokens_in, tokens_out),
            cost,
            seconds or 0.0,
        )

    # ---- ending ------------------------------------------------------------------------------------------------------

    def end(self, endings: Sequence[Ending], *, patient: bool = True) -> list[bool]:
        """Write the rows of runs that ended, all or none; return for each whether this process still owned it."""
        database = self.database
        values = [self._values(ending) for ending in endings]

        def work(session: RunsStatements) -> list[bool]:
            return [self._end_one(session, ending, each) for ending, each in zip(endings, values, strict=True)]

        return database.change(work, patient=patient)

    def _end_one(self, session: RunsStatements, ending: Ending, values: Mapping[str, Any]) -> bool:
        sql = self.database.sql
        if not session.run(sql(tables.END), values):
            return False
        if ending.claim.has_ended:
            session.run(sql(tables.FORGET_TRAFFIC), values)
        traffic = ending.traffic
        for start in range(0, len(traffic), 20):
            part = traffic[start : start + 20]
            numbered: dict[str, Any] = {"row_id": ending.claim.row_id}
            for number, each in enumerate(part):
                for name in tables.TRAFFIC:
                    value = getattr(each, name)
                    numbered[f"{name}_{number}"] = encode_name(value) if isinstance(value, str) else value
            session.run(sql(tables.add_traffic(len(part))), numbered)
        if ending.chain_to_remove is not None and self.database.into is not None:
            self.database.remove_chain(session, ending.chain_to_remove)
        return True

    def _values(self, ending: Ending) -> dict[str, Any]:
        found = dict.fromkeys(tables.FIELDS) | ending.fields
        error: RowError | None = found["error"]
        for name in ("path", "run_id", "checkpoint_id", "graph_hash", "worker"):
            text: str | None = found[name]
            found[name] = None if text is None else pack(text, _SHORTEST)
        if ending.status is RowStatus.FINISHED:
            found["output"] = self.pack(found["output"])
        if error is not None:
            found["error_type"] = encode_name(error.type)
            found["error"] = pack(json.dumps(asdict(error)), _SHORTEST)
        if found["questions"] is not None:
            found["questions"] = self.pack(found["questions"])
        claim = ending.claim
        return {**found, "status": _NUMBERS[ending.status], "row_id": claim.row_id, "owner": claim.owner}

    def release(self, claims: Sequence[Claim], status: RowStatus = RowStatus.OPEN, *, begun: bool = True) -> None:
        """Give rows back that this process will not run to their end, `begun` or not."""
        sql, number = self.database.sql(tables.RELEASE), _NUMBERS[status]
        values = [{"row_id": c.row_id, "owner": c.owner, "status": number, "undo": int(not begun)} for c in claims]
        if values:
            self.database.change(lambda session: session.run_many(sql, values))

    def reopen(self, status: RowStatus, keys: Iterable[str] | None = None) -> int:
        """Open rows again that have this status, all of them or those with the keys; return how many."""
        values = {"batch_id": self._batch_id, "status": _NUMBERS[status]}
        if keys is None:
            sql, many = self.database.sql(tables.REOPEN), [values]
        else:
            sql, many = self.database.sql(tables.REOPEN_KEY), [{**values, "key": encode_name(key)} for key in keys]
        return self.database.change(lambda session: sum(session.run(sql, each) for each in many))

    def rerun_changed(self, graph_hash: str, chain_of: Callable[[str], str]) -> None:
        """Open finished rows of other graphs again, as if they had never run, without checkpoints and traffic."""
        values = {"batch_id": self._batch_id, "graph_hash": encode_name(graph_hash)}
        sql = self.database.sql

        def work(session: RunsStatements) -> None:
            for (key,) in session.rows(sql(tables.KEPT_BY_OTHERS), **values):
                self.database.remove_chain(session, chain_of(decode_name(bytes(key))))
            session.run(sql(tables.FORGET_TRAFFIC_OF_OTHERS), values)
            session.run(sql(tables.RERUN), values)

        self.database.change(work)

    def answer(self, key: str, answers: Mapping[str, Any]) -> bool:
        """Store answers for a waiting row, which is open again; return whether it was waiting."""
        values = {"batch_id": self._batch_id, "key": encode_name(key), "answers": self.pack(dict(answers))}
        return bool(self.database.change(lambda session: session.run(self.database.sql(tables.ANSWER), values)))

    # ---- graphs ------------------------------------------------------------------------------------------------------

    def note_graph(self, graph_hash: str, parts: Mapping[str, str]) -> None:
        """Remember the hashes of the parts of a graph, to say later what changed."""
        values = {
            "batch_id": self._batch_id,
            "graph_hash": encode_name(graph_hash),
            "parts": pack(json.dumps(dict(parts)), _SHORTEST),
        }
        self.database.change(lambda session: session.run(self.database.sql(tables.ADD_GRAPH), values))

    def other_graphs(self, graph_hash: str) -> list[tuple[int, dict[str, str]]]:
        """Return for each other graph with finished rows the number of these rows and the hashes of its parts."""
        found = self.database.read(tables.OTHER_GRAPHS, batch_id=self._batch_id, graph_hash=encode_name(graph_hash))
        return [(count, {} if parts is None else json.loads(unpack(bytes(parts)))) for _, count, parts in found]

    # ---- reading -----------------------------------------------------------------------------------------------------

    def totals(self) -> dict[RowStatus, tuple[int, int, int, float | None]]:
        """Return by status: number of rows, tokens read, tokens written, cost."""
        return {
            _STATUSES[status]: (count, int(tokens_in or 0), int(tokens_out or 0), cost)
            for status, count, tokens_in, tokens_out, cost in self.database.read(tables.COUNTS, batch_id=self._batch_id)
        }

    def errors(self) -> list[tuple[str, int]]:
        """Return the classes of errors with their counts, the most frequent first."""
        found = self.database.read(tables.ERRORS, batch_id=self._batch_id)
        return [(decode_name(bytes(name or b"?")), count) for name, count in found]

    def rows(  # noqa: PLR0913 - conditions by name
        self,
        status: RowStatus | None = None,
        *,
        error: str | None = None,
        path: str | None = None,
        keys: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        after: int = -1,
        newest: bool = False,
        with_values: bool = True,
    ) -> list[BatchRow]:
        """Return the rows that fit all conditions, in the order of the inputs, or those that ended last first."""
        where = ["batch_id = :batch_id", "position > :after"]
        values = {"batch_id": self._batch_id, "offset": offset, "after": after}
        if newest:
            where.append("ended IS NOT NULL")
        if status is not None:
            where.append("status = :status")
            values["status"] = _NUMBERS[RowStatus(status)]
        if error is not None:
            where.append("error_type = :error")
            values["error"] = encode_name(error)
        if path is not None:
            where.append("path = :path")
            values["path"] = pack(path, _SHORTEST)
        if keys is not None:
            names, bound = tables.bound_keys([encode_name(key) for key in keys])
            where.append(f"key IN ({names})")
            values |= bound
        values["limit"] = (1 << 62) if limit is None else limit
        text = (
            f"SELECT {tables.READ} FROM agentbench_batch_rows WHERE {' AND '.join(where)} "
            f"ORDER BY {'ended DESC' if newest else 'position'} LIMIT :limit OFFSET :offset"
        )
        return [self._row(row, with_values=with_values) for row in self.database.read(text, **values)]

    def _row(self, row: Row, *, with_values: bool) -> BatchRow:
        key, position, status, stored, *rest, _ = row
        found: dict[str, Any] = dict(zip(tables.FIELDS, rest, strict=True))
        error, _, _ = found.pop("error"), found.pop("error_type"), found.pop("questions")
        for name in ("path", "run_id", "checkpoint_id", "graph_hash", "worker"):
            found[name] = _text(found[name])
        found["path"] = found["path"] or ""
        found["output"] = self.unpack(found["output"]) if with_values else None
        known = None if error is None else RowError(**json.loads(unpack(bytes(error))))
        value = self.unpack(stored) if with_values else None
        return BatchRow(decode_name(bytes(key)), position, value, _STATUSES[status], error=known, **found)

    def slowest(self, count: int) -> list[tuple[str, float]]:
        """Return keys and seconds of the rows that took longest."""
        found = self.database.read(tables.SLOWEST, batch_id=self._batch_id, count=count)
        return [(decode_name(bytes(key)), seconds) for key, seconds in found]

    def ended_keys(self) -> list[str]:
        """Return the keys of the finished and failed rows, in the order in which they ended."""
        found = self.database.read(tables.ENDED_KEYS, batch_id=self._batch_id)
        return [decode_name(bytes(key)) for (key,) in found]

    def questions(self, key: str | None = None) -> list[tuple[str, Any]]:
        """Return key and stored questions of the waiting rows, or of one."""
        text = "SELECT key, questions FROM agentbench_batch_rows WHERE batch_id = :batch_id AND status = 3"
        if key is None:
            found = self.database.read(f"{text} ORDER BY position", batch_id=self._batch_id)
        else:
            found = self.database.read(f"{text} AND key = :key", batch_id=self._batch_id, key=encode_name(key))
        return [(decode_name(bytes(name)), self.unpack(questions)) for name, questions in found]

    def repeats(self) -> dict[int, str]:
        """Return the positions of inputs that equal an earlier one, each with the key of that one's row."""
        found = self.database.read(tables.READ_REPEATS, batch_id=self._batch_id)
        return {position: decode_name(bytes(key)) for position, key in found}

    def traffic(self, key: str | None = None) -> list[Traffic]:
        """Return what passed the nodes and edges of the graph, for all rows or for one."""
        if key is None:
            found = self.database.read(tables.READ_TRAFFIC, batch_id=self._batch_id)
        else:
            text = f"{tables.READ_TRAFFIC} AND r.key = :key"
            found = self.database.read(text, batch_id=self._batch_id, key=encode_name(key))
        names: dict[bytes, str] = {}

        def name(data: bytes) -> str:
            known = names.get(data)
            if known is None:
                known = names[bytes(data)] = decode_name(bytes(data))
            return known

        return [Traffic(name(key), name(source), name(target), *numbers) for key, source, target, *numbers in found]


def batch_names(database: BatchDatabase) -> list[str]:
    """Return the names of the batches in a database."""
    return [decode_name(bytes(name)) for (name,) in database.read(tables.BATCH_NAMES)]


def _groups(keys: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the parameters for `IN (...)` and their values, for a limited number of keys at a time."""
    for start in range(0, len(keys), _MOST_PARAMETERS):
        yield tables.bound_keys([encode_name(key) for key in keys[start : start + _MOST_PARAMETERS]])


def _text(data: bytes | None) -> str | None:
    return None if data is None else unpack(bytes(data))
