"""The tables of batches and the statements that read and write them.

They are in the same database as the checkpoints. Keys, names and texts are columns of bytes, as there. The statements
are plain SQL with `:names`, which SQLite and PostgreSQL both understand after `Dialect` has put in what differs.

- `agentbench_batch_schema`: the version of the tables.
- `agentbench_batches`: the batches by name, each with the position of its next input.
- `agentbench_batch_rows`: a row per different input.
- `agentbench_batch_repeats`: the positions of inputs that equal an earlier one.
- `agentbench_batch_traffic`: what passed each node and edge in the run of a row.
- `agentbench_batch_graphs`: hashes of the parts of each graph that ran, to say what changed.
- `agentbench_batch_owners`: the processes that run inputs, each with the time at which it was last seen alive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

FIELDS: Final = (
    "output", "error", "error_type", "attempts", "supersteps", "path", "tokens_in", "tokens_out", "cost", "started",
    "seconds", "queued_seconds", "run_id", "checkpoint_id", "graph_hash", "worker", "questions",
)  # fmt: skip
"""The columns that are written when a run ends."""
TRAFFIC: Final = ("source", "target", "calls", "seconds", "tokens", "cost", "failures", "messages")
EXPIRES_S: Final = 30
"""An owner that was not seen for this long has lost its claims."""

SCHEMA_VERSION: Final = 1
"""The version of the tables. A database with another number was written by another version of the library."""

_TABLES = """
CREATE TABLE IF NOT EXISTS agentbench_batch_schema (version INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS agentbench_batches (
    batch_id {serial}, name {bytes} NOT NULL UNIQUE, next_position BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS agentbench_batch_rows (
    row_id {serial}, batch_id BIGINT NOT NULL, key {bytes} NOT NULL, position BIGINT NOT NULL,
    status SMALLINT NOT NULL, owner {bytes}, registered {real} NOT NULL, ended {real}, input {bytes},
    output {bytes}, error {bytes}, error_type {bytes}, attempts INTEGER NOT NULL,
    losses INTEGER NOT NULL, supersteps INTEGER NOT NULL,
    path {bytes}, tokens_in BIGINT, tokens_out BIGINT, cost {real}, started {real}, seconds {real},
    queued_seconds {real}, run_id {bytes}, checkpoint_id {bytes}, graph_hash {bytes}, worker {bytes},
    questions {bytes}, answers {bytes}, UNIQUE (batch_id, key));
CREATE INDEX IF NOT EXISTS agentbench_batch_rows_order ON agentbench_batch_rows (batch_id, status, position);
CREATE INDEX IF NOT EXISTS agentbench_batch_rows_ended ON agentbench_batch_rows (batch_id, ended);
CREATE TABLE IF NOT EXISTS agentbench_batch_repeats (
    batch_id BIGINT NOT NULL, key {bytes} NOT NULL, nth INTEGER NOT NULL, position BIGINT NOT NULL,
    PRIMARY KEY (batch_id, key, nth));
CREATE TABLE IF NOT EXISTS agentbench_batch_traffic (
    row_id BIGINT NOT NULL, source {bytes} NOT NULL, target {bytes} NOT NULL, calls INTEGER NOT NULL,
    seconds {real} NOT NULL, tokens BIGINT NOT NULL, cost {real} NOT NULL, failures INTEGER NOT NULL,
    messages INTEGER NOT NULL, PRIMARY KEY (row_id, source, target));
CREATE TABLE IF NOT EXISTS agentbench_batch_graphs (
    batch_id BIGINT NOT NULL, graph_hash {bytes} NOT NULL, parts {bytes} NOT NULL, PRIMARY KEY (batch_id, graph_hash));
CREATE TABLE IF NOT EXISTS agentbench_batch_owners (owner {bytes} PRIMARY KEY, seen {real} NOT NULL)
"""

_ALIVE = "EXISTS (SELECT 1 FROM agentbench_batch_owners o WHERE o.owner = agentbench_batch_rows.owner)"
_FREE = f"(owner IS NULL OR NOT {_ALIVE})"


@dataclass(frozen=True)
class Dialect:
    """What differs between the databases: types, the clock, locking, and the spelling of parameters."""

    serial: str
    bytes: str
    real: str
    now: str
    lock: str = ""
    skip_locked: str = ""
    parameter: str = r":\1"

    def statement(self, sql: str) -> str:
        """Return a statement for the driver."""
        sql = sql.replace("{now}", self.now).replace("{lock}", self.lock).replace("{skip_locked}", self.skip_locked)
        return re.sub(r":([a-z_0-9]+)", self.parameter, sql)

    def tables(self) -> list[str]:
        """Return the statements that create missing tables."""
        text = _TABLES.format(serial=self.serial, bytes=self.bytes, real=self.real)
        return [statement.strip() for statement in text.split(";")]


SQLITE = Dialect("INTEGER PRIMARY KEY", "BLOB", "REAL", "((julianday('now') - 2440587.5) * 86400.0)")
POSTGRESQL = Dialect(
    "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "BYTEA",
    "DOUBLE PRECISION",
    "CAST(extract(epoch from clock_timestamp()) AS DOUBLE PRECISION)",
    " FOR UPDATE",
    " FOR UPDATE SKIP LOCKED",
    r"%(\1)s",
)

# The database.
VERSIONS: Final = "SELECT version FROM agentbench_batch_schema"
ADD_VERSION: Final = f"INSERT INTO agentbench_batch_schema (version) VALUES ({SCHEMA_VERSION})"
# Batches.
ADD_BATCH: Final = (
    "INSERT INTO agentbench_batches (name, next_position) VALUES (:name, 0) ON CONFLICT (name) DO NOTHING"
)
FIND_BATCH: Final = "SELECT batch_id, {now} FROM agentbench_batches WHERE name = :name"
BATCH_NAMES: Final = "SELECT name FROM agentbench_batches ORDER BY name"
LOCK_BATCH: Final = "SELECT next_position FROM agentbench_batches WHERE batch_id = :batch_id{lock}"
MOVE_POSITION: Final = "UPDATE agentbench_batches SET next_position = :position WHERE batch_id = :batch_id"
ADD_GRAPH: Final = (
    "INSERT INTO agentbench_batch_graphs (batch_id, graph_hash, parts) VALUES (:batch_id, :graph_hash, :parts) "
    "ON CONFLICT (batch_id, graph_hash) DO NOTHING"
)
OTHER_GRAPHS: Final = (
    "SELECT r.graph_hash, COUNT(*), g.parts FROM agentbench_batch_rows r LEFT JOIN agentbench_batch_graphs g "
    "ON g.batch_id = r.batch_id AND g.graph_hash = r.graph_hash "
    "WHERE r.batch_id = :batch_id AND r.status = 1 AND r.graph_hash <> :graph_hash GROUP BY r.graph_hash, g.parts"
)
# Owners.
SEEN: Final = "UPDATE agentbench_batch_owners SET seen = {now} WHERE owner = :owner"
ADD_OWNER: Final = "INSERT INTO agentbench_batch_owners (owner, seen) VALUES (:owner, {now})"
REMOVE_OWNER: Final = "DELETE FROM agentbench_batch_owners WHERE owner = :owner"
EXPIRE_OWNERS: Final = f"DELETE FROM agentbench_batch_owners WHERE seen < {{now}} - {EXPIRES_S}"
OWNERS: Final = "SELECT owner FROM agentbench_batch_owners"
# Claims.
INSERT_ROW: Final = (
    "INSERT INTO agentbench_batch_rows "
    "(batch_id, key, position, status, owner, registered, input, attempts, losses, supersteps) "
    "VALUES (:batch_id, :key, :position, 0, :owner, {now}, :input, :attempts, 0, 0)"
)
INSERT_REPEAT: Final = (
    "INSERT INTO agentbench_batch_repeats (batch_id, key, nth, position) VALUES (:batch_id, :key, :nth, :position) "
    "ON CONFLICT (batch_id, key, nth) DO NOTHING"
)
CLAIMED: Final = (
    "row_id, key, position, attempts, losses, registered, supersteps, path, tokens_in, tokens_out, cost, started, "
    "seconds, queued_seconds, checkpoint_id, graph_hash, input, answers"
)
CLAIM: Final = (
    "UPDATE agentbench_batch_rows SET status = 0, owner = :owner, attempts = attempts + 1, "
    "losses = CASE WHEN status <> 0 THEN 0 WHEN owner IS NULL THEN losses ELSE losses + 1 END "
    f"WHERE batch_id = :batch_id AND key = :key AND {_FREE} "
    "AND (status = 0 OR status = 4 OR (status = 2 AND ended < :since)) "
    f"RETURNING {CLAIMED}"
)
"""Takes a row that is open, or failed or was cancelled before this call, and that no living process runs."""
RUNNABLE: Final = (
    "SELECT key FROM agentbench_batch_rows WHERE batch_id = :batch_id "
    "AND (status = 0 OR status = 4 OR (status = 2 AND ended < :since))"
)
FREE_KEYS: Final = (
    "SELECT key FROM agentbench_batch_rows WHERE batch_id = :batch_id AND status = 0 "
    f"AND (owner IS NULL OR NOT {_ALIVE}) ORDER BY position LIMIT :count"
)
BUSY: Final = (
    "SELECT COUNT(*) FROM agentbench_batch_rows r JOIN agentbench_batch_owners o ON o.owner = r.owner "
    f"WHERE r.batch_id = :batch_id AND r.status = 0 AND o.seen > {{now}} - {2 * EXPIRES_S}"
)
"""Counts rows that run now. Owners are deleted only by drivers, and there may be none; they do it before this time."""
END: Final = (
    "UPDATE agentbench_batch_rows SET status = :status, owner = NULL, ended = {now}, answers = NULL, "
    + ", ".join(f"{name} = :{name}" for name in FIELDS)
    + " WHERE row_id = :row_id AND owner = :owner AND status = 0"
)
"""Ends a row, if this process still owns it: the first one wins."""
RELEASE: Final = (
    "UPDATE agentbench_batch_rows SET status = :status, owner = NULL, attempts = attempts - :undo "
    "WHERE row_id = :row_id AND owner = :owner AND status = 0"
)
REOPEN: Final = (
    "UPDATE agentbench_batch_rows SET status = 0, owner = NULL WHERE batch_id = :batch_id AND status = :status"
)
REOPEN_KEY: Final = f"{REOPEN} AND key = :key"
_BY_OTHERS: Final = "batch_id = :batch_id AND status = 1 AND graph_hash <> :graph_hash"
KEPT_BY_OTHERS: Final = f"SELECT key FROM agentbench_batch_rows WHERE {_BY_OTHERS} AND checkpoint_id IS NOT NULL"
FORGET_TRAFFIC_OF_OTHERS: Final = (
    "DELETE FROM agentbench_batch_traffic WHERE row_id IN "
    f"(SELECT row_id FROM agentbench_batch_rows WHERE {_BY_OTHERS})"
)
RERUN: Final = (
    "UPDATE agentbench_batch_rows SET status = 0, owner = NULL, attempts = 0, supersteps = 0, path = NULL, "
    "tokens_in = NULL, tokens_out = NULL, cost = NULL, started = NULL, seconds = NULL, checkpoint_id = NULL, "
    f"output = NULL, error = NULL, error_type = NULL WHERE {_BY_OTHERS}"
)
ANSWER: Final = (
    "UPDATE agentbench_batch_rows SET status = 0, owner = NULL, answers = :answers "
    "WHERE batch_id = :batch_id AND key = :key AND status = 3"
)
FORGET_TRAFFIC: Final = "DELETE FROM agentbench_batch_traffic WHERE row_id = :row_id"
# Reading.
COUNTS: Final = (
    "SELECT status, COUNT(*), SUM(tokens_in), SUM(tokens_out), SUM(cost) FROM agentbench_batch_rows "
    "WHERE batch_id = :batch_id GROUP BY status"
)
ERRORS: Final = (
    "SELECT error_type, COUNT(*) FROM agentbench_batch_rows WHERE batch_id = :batch_id AND status = 2 "
    "GROUP BY error_type ORDER BY 2 DESC LIMIT 20"
)
SLOWEST: Final = (
    "SELECT key, seconds FROM agentbench_batch_rows WHERE batch_id = :batch_id AND seconds IS NOT NULL "
    "ORDER BY seconds DESC LIMIT :count"
)
READ: Final = f"key, position, status, input, {', '.join(FIELDS)}, ended"
ENDED_KEYS: Final = (
    "SELECT key FROM agentbench_batch_rows WHERE batch_id = :batch_id AND status IN (1, 2) ORDER BY ended, position"
)
READ_REPEATS: Final = "SELECT position, key FROM agentbench_batch_repeats WHERE batch_id = :batch_id ORDER BY position"
READ_TRAFFIC: Final = (
    f"SELECT r.key, {', '.join('t.' + name for name in TRAFFIC)} FROM agentbench_batch_traffic t "
    "JOIN agentbench_batch_rows r ON r.row_id = t.row_id WHERE r.batch_id = :batch_id"
)


def add_traffic(count: int) -> str:
    """Return the statement that adds this many entries of traffic to what the row has, with numbered parameters."""
    rows = ", ".join(f"(:row_id, {', '.join(f':{name}_{number}' for name in TRAFFIC)})" for number in range(count))
    sums = ", ".join(f"{name} = agentbench_batch_traffic.{name} + excluded.{name}" for name in TRAFFIC[2:])
    return (
        f"INSERT INTO agentbench_batch_traffic (row_id, {', '.join(TRAFFIC)}) VALUES {rows} "
        f"ON CONFLICT (row_id, source, target) DO UPDATE SET {sums}"
    )


def bound_keys(keys: list[bytes]) -> tuple[str, dict[str, Any]]:
    """Return a list of parameters for `IN (...)`, and their values."""
    values = {f"key_{number}": key for number, key in enumerate(keys)}
    return ", ".join(f":{name}" for name in values), values
