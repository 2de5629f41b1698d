"""The tables in which `SQLCheckpointStorage` stores checkpoints, and the statements that read and write them.

Names, ids and texts are columns of bytes, so that every database compares and sorts them by code point with any
collation, and stores every text, including NUL characters. The statements run on the driver, because a save by
SQLAlchemy Core takes about three times as long. This module is imported only if SQLAlchemy is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, text
from sqlalchemy.dialects.mysql import LONGBLOB, VARBINARY
from sqlalchemy.engine import Dialect

SCHEMA_VERSION: Final = 2
"""The version of the tables. A database with another number was written by another version of the library."""

_Key = BigInteger().with_variant(Integer, "sqlite")  # only an INTEGER is SQLite's own row number
_Name = LargeBinary().with_variant(VARBINARY(700), "mysql", "mariadb")  # these need a length for an index
_Text = LargeBinary().with_variant(LONGBLOB, "mysql", "mariadb")

tables = MetaData()
schema = Table(
    "agentbench_schema",
    tables,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("generation", BigInteger, nullable=False),
)
"""One row. Chains begin with its generation, which is random, so that another database is never mistaken for this one.
"""
chains = Table(
    "agentbench_chains",
    tables,
    Column("chain_id", _Key, primary_key=True),
    Column("name", _Name, nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
)
"""A row stays when the chain is gone, because its generation must not recur."""
records = Table(
    "agentbench_records",
    tables,
    Column("record_id", _Key, primary_key=True),  # grows with every saving
    Column("chain_id", _Key, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("timestamp", _Name, nullable=False),
    Column("checkpoint_id", _Name, nullable=False, unique=True),
    Column("run_id", _Name),
    Column("head", _Text, nullable=False),
    Column("content", _Text, nullable=False),  # last, so that lists do not read its overflow pages
    Index("agentbench_records_order", "chain_id", "seq"),
)
parts = Table(
    "agentbench_parts",
    tables,
    Column("chain_id", _Key, primary_key=True, autoincrement=False),
    Column("part_id", _Name, primary_key=True),
    Column("text", _Text, nullable=False),
)


class Statement:
    """A statement in one SQL dialect, which the driver runs without SQLAlchemy."""

    __slots__ = ("arguments", "text")

    def __init__(self, sql: str, dialect: Dialect) -> None:
        compiled: Any = text(sql).compile(dialect=dialect)
        self.text = str(compiled)
        names: list[str] | None = compiled.positiontup
        self.arguments: Callable[[Mapping[str, Any]], Any]
        if names is None:
            self.arguments = _by_name
        else:
            self.arguments = itemgetter(*names) if len(names) > 1 else partial(_in_order, names)


def _by_name(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return values


def _in_order(names: list[str], values: Mapping[str, Any]) -> list[Any]:
    return [values[name] for name in names]


_CHAIN: Final = "(SELECT chain_id FROM agentbench_chains WHERE name = :name)"
_HEAD: Final = "checkpoint_id, seq, timestamp, run_id, head"
_WHOLE: Final = (
    f"SELECT c.name, {_HEAD}, content FROM agentbench_records r JOIN agentbench_chains c ON c.chain_id = r.chain_id"
)
_OLDEST_FIRST: Final = "ORDER BY seq, timestamp, r.record_id"
_NEWEST_FIRST: Final = "ORDER BY seq DESC, timestamp DESC, r.record_id DESC"


class Statements:
    """All statements in one SQL dialect; created by `statements_of`."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.heads = cache(self._heads)
        self.find_parts = cache(self._find_parts)
        self.find_records = cache(self._find_records)
        is_sqlite = dialect.name == "sqlite"
        lock = "" if is_sqlite else " FOR UPDATE"  # SQLite locks the whole file
        made = self._made
        # Reading.
        self.schema = made("SELECT version, generation FROM agentbench_schema")
        self.generation = made("SELECT generation FROM agentbench_chains WHERE name = :name")
        self.get = made(f"{_WHOLE} WHERE checkpoint_id = :checkpoint_id")
        self.latest = made(f"{_WHOLE} WHERE r.chain_id = {_CHAIN} {_NEWEST_FIRST} LIMIT 1")
        self.position = made(
            "SELECT seq, timestamp, record_id FROM agentbench_records "
            f"WHERE chain_id = {_CHAIN} AND checkpoint_id = :checkpoint_id"
        )
        self.ids = made(f"SELECT checkpoint_id FROM agentbench_records r WHERE chain_id = {_CHAIN} {_OLDEST_FIRST}")
        self.chains = made(
            "SELECT name FROM agentbench_chains c WHERE name >= :first AND name < :behind "
            "AND EXISTS (SELECT 1 FROM agentbench_records r WHERE r.chain_id = c.chain_id) ORDER BY name"
        )
        # Saving.
        self.add_schema = made("INSERT INTO agentbench_schema (version, generation) VALUES (:version, :generation)")
        self.lock_chain = made(f"SELECT chain_id, generation FROM agentbench_chains WHERE name = :name{lock}")
        self.add_chain = made("INSERT INTO agentbench_chains (name, generation) VALUES (:name, :generation)")
        self.newest_seq = made(
            f"SELECT seq FROM agentbench_records r WHERE chain_id = :chain_id {_NEWEST_FIRST} LIMIT 1"
        )
        self.find_record = made("SELECT record_id FROM agentbench_records WHERE checkpoint_id = :checkpoint_id")
        self.add_record = made(
            "INSERT INTO agentbench_records (chain_id, seq, timestamp, checkpoint_id, run_id, head, content) "
            "SELECT chain_id, :seq, :timestamp, :checkpoint_id, :run_id, :head, :content FROM agentbench_chains "
            f"WHERE name = :name AND generation = :generation{lock}"
        )
        """Only to a chain of this generation; it locks the chain."""
        part = "agentbench_parts (chain_id, part_id, text) SELECT chain_id, :part_id, :text FROM agentbench_chains c"
        self.add_part = made(
            f"INSERT OR IGNORE INTO {part} WHERE name = :name"
            if is_sqlite
            else f"INSERT INTO {part} WHERE name = :name AND NOT EXISTS "
            "(SELECT 1 FROM agentbench_parts p WHERE p.chain_id = c.chain_id AND p.part_id = :part_id)"
        )
        # Removing.
        self.remove_record = made("DELETE FROM agentbench_records WHERE record_id = :record_id")
        self.contents = made("SELECT content FROM agentbench_records WHERE chain_id = :chain_id")
        self.part_ids = made("SELECT part_id FROM agentbench_parts WHERE chain_id = :chain_id")
        self.remove_part = made("DELETE FROM agentbench_parts WHERE chain_id = :chain_id AND part_id = :part_id")
        self.remove_records = made("DELETE FROM agentbench_records WHERE chain_id = :chain_id")
        self.remove_parts = made("DELETE FROM agentbench_parts WHERE chain_id = :chain_id")
        self.next_generation = made(
            "UPDATE agentbench_chains SET generation = generation + 1 WHERE chain_id = :chain_id"
        )

    def _made(self, sql: str) -> Statement:
        return Statement(sql, self._dialect)

    def _heads(self, *, of_run: bool, before: bool, limited: bool) -> Statement:
        run = " AND run_id = :run_id" if of_run else ""
        place = " AND (seq, timestamp, record_id) < (:seq, :timestamp, :record_id)" if before else ""
        limit = " LIMIT :limit" if limited else ""
        return self._made(
            f"SELECT {_HEAD} FROM agentbench_records r WHERE chain_id = {_CHAIN}{run}{place} {_NEWEST_FIRST}{limit}"
        )

    def _find_parts(self, count: int) -> Statement:
        """Return the statement that finds parts of a chain by this many ids, `id_0` and so on."""
        return self._made(
            f"SELECT part_id, text FROM agentbench_parts WHERE chain_id = {_CHAIN} AND part_id IN ({_ids(count)})"
        )

    def _find_records(self, count: int) -> Statement:
        return self._made(
            f"SELECT record_id FROM agentbench_records WHERE chain_id = :chain_id AND checkpoint_id IN ({_ids(count)})"
        )


def _ids(count: int) -> str:
    return ", ".join(f":id_{number}" for number in range(count))


def statements_of(dialect: Dialect) -> Statements:
    """Return the statements for a dialect; they are compiled once."""
    kind: Any = type(dialect)
    return _compile(kind, dialect.paramstyle)


@cache
def _compile(kind: Any, paramstyle: str) -> Statements:
    return Statements(kind(paramstyle=paramstyle))
