"""The tables that `SQLCheckpointStorage` keeps checkpoints in, and the statements that read and write them.

Names, ids and texts are columns of bytes: so every database compares and sorts them alike, code point by code point,
with any collation, and holds every text, also one with NUL characters. Loaded only where SQLAlchemy is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from operator import itemgetter
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.mysql import LONGBLOB, VARBINARY
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.expression import BindParameter, ClauseElement, ColumnElement

#: Of the tables. A database with another number was written by another version of the library.
SCHEMA_VERSION: Final = 1

_Key = BigInteger().with_variant(Integer, "sqlite")  # only an INTEGER is the number that SQLite gives a row anyway
_Name = LargeBinary().with_variant(VARBINARY(700), "mysql", "mariadb")  # those index no column without a length
_Text = LargeBinary().with_variant(LONGBLOB, "mysql", "mariadb")

tables = MetaData()
#: One row. Chains begin with its generation, which is random: another database is never taken for this one.
schema = Table(
    "agentbench_schema",
    tables,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("generation", BigInteger, nullable=False),
)
#: A row stays when the chain is gone: its generation must not come back.
chains = Table(
    "agentbench_chains",
    tables,
    Column("chain_id", _Key, primary_key=True),
    Column("name", _Name, nullable=False, unique=True),
    Column("generation", BigInteger, nullable=False),
)
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
    Index("agentbench_records_order", "chain_id", "seq", "timestamp", "record_id"),
)
#: Apart from the records, so that a list reads none of it.
contents = Table(
    "agentbench_contents",
    tables,
    Column("record_id", _Key, primary_key=True, autoincrement=False),
    Column("content", _Text, nullable=False),
)
parts = Table(
    "agentbench_parts",
    tables,
    Column("chain_id", _Key, primary_key=True, autoincrement=False),
    Column("part_id", _Name, primary_key=True),
    Column("text", _Text, nullable=False),
)


class Statement:
    """A statement in the words of one dialect, to be run by the driver without SQLAlchemy in between.

    Args:
        clause: The statement; its values have names.
        dialect: The database's.
        columns: Of an insertion: the columns with values.
    """

    __slots__ = ("_fixed", "_in_order", "text")

    def __init__(self, clause: ClauseElement, dialect: Dialect, columns: list[str] | None = None) -> None:
        compiled: Any = clause.compile(dialect=dialect, column_keys=columns)
        self.text = str(compiled)
        names: list[str] | None = compiled.positiontup
        #: Puts values in order, where the dialect goes by that.
        self._in_order: Callable[[Mapping[str, Any]], Any] | None = (
            None if names is None else partial(_in_order, names) if len(names) < 2 else itemgetter(*names)
        )
        #: Values that the dialect adds itself: SQLite has no LIMIT without an OFFSET.
        self._fixed = {name: value for name, value in compiled.params.items() if value is not None}

    def arguments(self, values: Mapping[str, Any]) -> Any:
        """Return values by name in the form that the driver takes."""
        if self._fixed:
            values = {**self._fixed, **values}
        return values if self._in_order is None else self._in_order(values)


def _in_order(names: list[str], values: Mapping[str, Any]) -> list[Any]:
    return [values[name] for name in names]


# --------------------------------------------------------------------------------------------------------- expressions

_last_record: ColumnElement[int] = func.last_insert_rowid()
_ONE: ColumnElement[int] = literal_column("1", Integer)
_OLDEST_FIRST = (records.c.seq, records.c.timestamp, records.c.record_id)
_NEWEST_FIRST = tuple(column.desc() for column in _OLDEST_FIRST)
_HEAD = (records.c.checkpoint_id, records.c.seq, records.c.timestamp, records.c.run_id, records.c.head)


def _value(column: Column[Any], name: str | None = None) -> BindParameter[Any]:
    """A value for a column; `of_` because the bare name belongs to what an insertion sets."""
    return bindparam(name or f"of_{column.name}", type_=column.type)


_is_chain = chains.c.name == _value(chains.c.name)
_chain_of_name = select(chains.c.chain_id).where(_is_chain).scalar_subquery()
_is_record = records.c.checkpoint_id == _value(records.c.checkpoint_id)


def _heads(*, of_run: bool, before: bool, limited: bool) -> Select[Any]:
    found = select(*_HEAD).where(records.c.chain_id == _chain_of_name).order_by(*_NEWEST_FIRST)
    if of_run:
        found = found.where(records.c.run_id == _value(records.c.run_id))
    if before:
        found = found.where(tuple_(*_OLDEST_FIRST) < tuple_(*map(_value, _OLDEST_FIRST)))
    return found.limit(bindparam("limit", type_=Integer)) if limited else found


def _any_of(column: Column[Any], count: int) -> Any:
    return column.in_([_value(column, f"id_{number}") for number in range(count)])


class Statements:
    """All statements in the words of one dialect; from `statements_of`."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.heads = cache(self._heads)
        self.find_parts = cache(self._find_parts)
        self.find_records = cache(self._find_records)
        made = self._made
        whole = select(chains.c.name, *_HEAD, contents.c.content).select_from(
            records.join(chains, chains.c.chain_id == records.c.chain_id).join(
                contents, contents.c.record_id == records.c.record_id
            )
        )
        in_chain = records.c.chain_id == _value(records.c.chain_id)
        # Reading.
        self.schema = made(select(schema.c.version, schema.c.generation))
        self.generation = made(select(chains.c.generation).where(_is_chain))
        self.get = made(whole.where(_is_record))
        self.latest = made(whole.where(records.c.chain_id == _chain_of_name).order_by(*_NEWEST_FIRST).limit(_ONE))
        self.position = made(select(*_OLDEST_FIRST).where(records.c.chain_id == _chain_of_name, _is_record))
        self.ids = made(
            select(records.c.checkpoint_id).where(records.c.chain_id == _chain_of_name).order_by(*_OLDEST_FIRST)
        )
        self.chains = made(
            select(chains.c.name)
            .where(exists().where(records.c.chain_id == chains.c.chain_id))
            .where(chains.c.name >= _value(chains.c.name, "first"), chains.c.name < _value(chains.c.name, "behind"))
            .order_by(chains.c.name)
        )
        # Saving.
        self.add_schema = made(insert(schema), schema)
        self.lock_chain = made(select(chains.c.chain_id, chains.c.generation).where(_is_chain).with_for_update())
        self.add_chain = made(insert(chains).inline(), chains, without="chain_id")
        self.newest_seq = made(select(records.c.seq).where(in_chain).order_by(*_NEWEST_FIRST).limit(_ONE))
        self.find_record = made(select(records.c.record_id).where(_is_record))
        columns = [column for column in records.c if column.name not in ("record_id", "chain_id")]
        #: Only to a chain of the generation; it locks the chain.
        self.add_record = made(
            insert(records).from_select(
                ["chain_id", *[column.name for column in columns]],
                select(chains.c.chain_id, *map(_value, columns))
                .where(_is_chain, chains.c.generation == _value(chains.c.generation))
                .with_for_update(),
            )
        )
        content = _value(contents.c.content)
        part = select(chains.c.chain_id, _value(parts.c.part_id), _value(parts.c.text)).where(_is_chain)
        if dialect.name == "sqlite":  # no query for what was just inserted
            self.add_content = made(insert(contents).from_select(contents.c.keys(), select(_last_record, content)))
            self.add_part = made(insert(parts).prefix_with("OR IGNORE").from_select(parts.c.keys(), part))
        else:
            found = select(records.c.record_id, content).where(_is_record)
            known = exists().where(parts.c.chain_id == chains.c.chain_id, parts.c.part_id == _value(parts.c.part_id))
            self.add_content = made(insert(contents).from_select(contents.c.keys(), found))
            self.add_part = made(insert(parts).from_select(parts.c.keys(), part.where(~known)))
        # Removing.
        self.remove_content = made(delete(contents).where(contents.c.record_id == _value(contents.c.record_id)))
        self.remove_record = made(delete(records).where(records.c.record_id == _value(records.c.record_id)))
        self.record_ids = made(select(records.c.record_id).where(in_chain))
        self.contents = made(
            select(contents.c.content).join(records, records.c.record_id == contents.c.record_id).where(in_chain)
        )
        self.part_ids = made(select(parts.c.part_id).where(parts.c.chain_id == _value(parts.c.chain_id)))
        self.remove_part = made(
            delete(parts).where(
                parts.c.chain_id == _value(parts.c.chain_id), parts.c.part_id == _value(parts.c.part_id)
            )
        )
        self.next_generation = made(
            update(chains)
            .where(chains.c.chain_id == _value(chains.c.chain_id))
            .values(generation=chains.c.generation + _ONE)
        )

    def _made(self, clause: ClauseElement, table: Table | None = None, *, without: str = "") -> Statement:
        columns = None if table is None else [name for name in table.c.keys() if name != without]  # noqa: SIM118
        return Statement(clause, self._dialect, columns)

    def _heads(self, *, of_run: bool, before: bool, limited: bool) -> Statement:
        return self._made(_heads(of_run=of_run, before=before, limited=limited))

    def _find_parts(self, count: int) -> Statement:
        """Find parts of a chain by so many ids, `id_0` and so on."""
        in_chain = parts.c.chain_id == _chain_of_name
        return self._made(select(parts.c.part_id, parts.c.text).where(in_chain, _any_of(parts.c.part_id, count)))

    def _find_records(self, count: int) -> Statement:
        in_chain = records.c.chain_id == _value(records.c.chain_id)
        return self._made(select(records.c.record_id).where(in_chain, _any_of(records.c.checkpoint_id, count)))


def statements_of(dialect: Dialect) -> Statements:
    """Return the statements in the words of a dialect; they are compiled once."""
    kind: Any = type(dialect)
    return _compile(kind, dialect.paramstyle)


@cache
def _compile(kind: Any, paramstyle: str) -> Statements:
    return Statements(kind(paramstyle=paramstyle))
