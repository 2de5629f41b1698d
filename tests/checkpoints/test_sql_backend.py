"""What is special about databases as places for records and parts, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentbench.checkpoints.parts.backend import StalePartsError
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException
from tests.checkpoints.backend_contract import NOON, ODD_TEXTS, bare, kept, put, record
from tests.parts.errors import raises
from tests.servers.postgres import PASSWORD, USER, PostgresServer
from tests.servers.process import free_port

sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")

from agentbench.checkpoints.sql_storage.backend import SQLBackend  # noqa: E402
from agentbench.checkpoints.sql_storage.session import database_url  # noqa: E402  needs SQLAlchemy

ROOT = Path(__file__).parents[2]
Make = Callable[..., SQLBackend]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "some" / "folder" / "checkpoints.db"


@pytest.fixture
def make(file: Path) -> Iterator[Make]:
    opened: list[SQLBackend] = []

    def open_one(path_or_url: object = file) -> SQLBackend:
        opened.append(SQLBackend(path_or_url))
        return opened[-1]

    yield open_one
    for backend in opened:
        backend.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, file: Path) -> Any:
    return f"sqlite:///{file}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def execute(url: str, statement: str) -> None:
    """Run a statement of somebody else's."""
    engine = sqlalchemy.create_engine(
        database_url(url), isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.pool.NullPool
    )
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)


def run_together(url: str, *programs: tuple[str, str, int]) -> list[str]:
    """Let functions of `database_writers` run at the same time, and return what they print."""
    command = [sys.executable, "-W", "error", "-m", "tests.checkpoints.database_writers"]
    running = [
        subprocess.Popen(
            [*command, what, url, name, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for what, name, count in programs
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(running)
    return printed


# ------------------------------------------------------------------------------------------------- several processes


def test_processes_save_at_the_same_time(url: str, make: Make) -> None:
    names = ("one", "two", "three")
    run_together(url, *[("save_many", name, 40) for name in names])
    backend = make(url)
    assert backend.chains() == ["one", "shared", "three", "two"]
    for name in names:
        assert backend.ids(name) == [f"{name} own {number}" for number in range(40)]
        assert len(kept(backend, *[f"{name} {number}" for number in range(40)], chain=name)) == 40
    shared = backend.heads("shared")
    assert [each.seq for each in shared] == sorted(list(range(40)) * 3)
    assert len({each.checkpoint_id for each in shared}) == 120


def test_of_processes_that_move_a_chain_on_one_wins_each_time(url: str, make: Make) -> None:
    run_together(url, *[("move_on", name, 25) for name in ("one", "two")])
    assert [each.seq for each in make(url).heads("shared")] == list(range(1, 51))


def test_parts_that_others_need_survive_the_sweeps_of_all(url: str, make: Make) -> None:
    run_together(url, *[("save_and_sweep", name, 30) for name in ("one", "two")])
    backend = make(url)
    expected = {f"{name} {number}" for name in ("one", "two") for number in range(0, 30, 3)}
    assert set(backend.ids("shared")) == expected
    assert set(kept(backend, "common", *expected, "one 1", chain="shared")) == {"common", *expected}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.nightly
def test_a_fork_opens_a_connection_of_its_own(url: str, make: Make) -> None:
    run_together(url, ("use_in_a_fork", "", 0))
    assert make(url).ids("flow") == ["before", "in the fork", "after"]


@pytest.mark.nightly
def test_a_program_may_end_while_a_thread_of_it_is_saving(url: str, make: Make) -> None:
    run_together(url, *[("end_while_saving", name, 10) for name in "abc"])
    backend = make(url)
    assert {f"{name} {number}" for name in "abc" for number in range(11)} <= set(backend.ids("flow"))
    assert all(backend.get(checkpoint_id) for checkpoint_id in backend.ids("flow"))


# ------------------------------------------------------------------------------------------------------- any database


def test_tables_of_another_version_are_left_alone(url: str, make: Make) -> None:
    backend = make(url)
    put(backend, record("one"))
    for versions, said in (
        ("UPDATE agentbench_schema SET version = 7", "7"),
        ("DELETE FROM agentbench_schema", "none"),
    ):
        execute(url, versions)
        with raises(WorkflowCheckpointException, said, "2"):
            make(url).chains()
    assert backend.ids("flow") == ["one"]


def test_tables_of_version_1_are_changed_when_they_are_opened(url: str, make: Make) -> None:
    backend = make(url)
    one = put(backend, record("one"))
    for statement in (
        "CREATE TABLE agentbench_contents AS SELECT record_id, content FROM agentbench_records",
        "ALTER TABLE agentbench_records DROP COLUMN content",
        "UPDATE agentbench_schema SET version = 1",
    ):
        execute(url, statement)
    for opened in (make(url), make(url)):
        assert opened.get("one") == one
        put(opened, record("two", 2))
        assert opened.ids("flow") == ["one", "two"]


def test_what_the_database_refuses_is_an_error_and_changes_nothing(url: str, make: Make) -> None:
    backend = make(url)
    one = put(backend, record("one"))
    execute(url, "ALTER TABLE agentbench_parts RENAME TO gone")
    with raises(RuntimeError, "agentbench_parts"):
        put(backend, record("two", 2, needs=("x",)), "x")
    execute(url, "ALTER TABLE gone RENAME TO agentbench_parts")
    assert backend.heads("flow") == [bare(one)]


def test_a_backend_that_is_forgotten_closes_its_connection(url: str) -> None:
    backend = SQLBackend(url)
    put(backend, record("one"))
    raw = backend._database._open_session().raw
    gone = weakref.ref(backend)
    del backend
    gc.collect()
    assert gone() is None
    with raises(Exception, "closed"):
        raw.execute("SELECT 1")


def test_statements_are_written_for_mysql_too() -> None:
    from sqlalchemy.dialects.mysql import dialect
    from sqlalchemy.schema import CreateTable

    from agentbench.checkpoints.sql_storage.tables import statements_of, tables

    assert "FOR UPDATE" in statements_of(dialect()).lock_chain.text
    ddl = [str(CreateTable(table).compile(dialect=dialect())) for table in tables.sorted_tables]
    assert not any("id BLOB" in each or "name BLOB" in each for each in ddl)  # it indexes none of those


# ------------------------------------------------------------------------------------------------------------- SQLite


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user to whom file modes apply."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_only_the_owner_may_read_the_files(make: Make, file: Path) -> None:
    before = os.umask(0)
    try:
        put(make(), record("one"))
    finally:
        os.umask(before)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in file.parent.iterdir()}
    assert modes == {"checkpoints.db": 0o600, "checkpoints.db-wal": 0o600, "checkpoints.db-shm": 0o600}


def test_nothing_is_created_before_the_first_use(make: Make, file: Path) -> None:
    backend = make()
    assert not file.parent.exists()
    assert backend.chains() == []
    assert file.exists()


def test_the_latest_is_found_by_the_index_alone(make: Make) -> None:
    backend = make()
    put(backend, record("one"))
    session, statement = backend._database._open_session(), backend._statements.latest
    session.cursor.execute(f"EXPLAIN QUERY PLAN {statement.text}", statement.arguments({"name": b"flow"}))
    steps = [row[-1] for row in session.cursor.fetchall()]
    assert any("INDEX agentbench_records_order" in step for step in steps)
    assert not any("SCAN" in step or "B-TREE FOR ORDER BY" in step for step in steps)  # it sorts equal numbers only


def test_a_save_takes_one_statement_for_each_kind_of_row(make: Make) -> None:
    backend = make()
    put(backend, record("one"))
    generation, said = backend.generation("flow"), list[str]()
    backend._database._open_session().raw.set_trace_callback(said.append)
    backend.put(record("two", 2), {"p" * 28: '"text"'}, generation=generation)
    assert [each.split(" (")[0] for each in said] == [
        "BEGIN IMMEDIATE",
        "INSERT INTO agentbench_records",
        "INSERT OR IGNORE INTO agentbench_parts",
        "COMMIT",
    ]


def test_an_impatient_save_is_refused_at_once_while_another_program_writes(make: Make, file: Path) -> None:
    backend = make(f"sqlite:///{file}?timeout=3600")  # nobody would wait for the end of this test
    put(backend, record("one"))
    generation = backend.generation("flow")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with raises(BlockingIOError, "database"):
                backend.put(record("two", 2), {"p" * 28: '"text"'}, generation=generation, patient=False)
            assert backend.ids("flow") == ["one"]
        assert backend.parts("flow", ["p" * 28]) == {}
        other.execute("ROLLBACK")
        backend.put(record("two", 2), {}, generation=generation, patient=False)
    assert backend.ids("flow") == ["one", "two"]


def test_a_patient_save_waits_also_after_an_impatient_one(make: Make, file: Path) -> None:
    backend = make(f"sqlite:///{file}?timeout=3600")
    put(backend, record("one"))
    generation = backend.generation("flow")
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BlockingIOError):
            backend.put(record("two", 2), {}, generation=generation, patient=False)
        waiting = threading.Thread(target=lambda: backend.put(record("two", 2), {}, generation=generation))
        waiting.start()
        other.execute("ROLLBACK")
        waiting.join()
    assert backend._database._open_session().cursor.execute("PRAGMA busy_timeout").fetchone() == (3_600_000,)
    assert backend.ids("flow") == ["one", "two"]


def test_what_is_not_open_is_opened_only_by_the_patient(make: Make, file: Path) -> None:
    backend = make()
    put(backend, record("one"))
    generation = backend.generation("flow")
    backend.close()
    with raises(BlockingIOError, "open"):
        backend.put(record("two", 2), {}, generation=generation, patient=False)
    backend.put(record("two", 2), {}, generation=generation)
    backend.put(record("three", 3), {}, generation=generation, patient=False)
    assert backend.ids("flow") == ["one", "two", "three"]


def test_a_database_that_others_hold_while_it_is_opened_is_waited_for_too(make: Make, file: Path) -> None:
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with raises(TimeoutError, "database"):
            make(f"sqlite:///{file}?timeout=0.05").chains()
        other.execute("ROLLBACK")
        assert make(f"sqlite:///{file}?timeout=0.05").chains() == []


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user may look into; pytest's own may not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.chmod(folder, 0o755)


def test_a_file_that_may_not_be_written_is_an_error(make: Make, public_folder: Path) -> None:
    file = public_folder / "a.db"
    backend = make(file)
    put(backend, record("one"))
    backend.close()
    file.chmod(0o444)
    with as_nobody(), raises(PermissionError, "file"):
        put(make(file), record("two", 2))
    file.chmod(0o600)
    assert make(file).ids("flow") == ["one"]


def test_on_a_full_disk_what_was_saved_before_stays(file: Path, make: Make) -> None:
    (said,) = run_together(f"sqlite:///{file}", ("save_until_the_disk_is_full", "", 300_000))
    saved, error = said.splitlines()
    assert int(saved) > 30
    assert "the disk is full or failing" in error
    backend = make()
    assert backend.ids("flow") == [f"id{number}" for number in range(int(saved))]
    texts = [f"{number}".rjust(100) for number in range(int(saved))]
    assert kept(backend, *texts) == texts
    put(backend, record("more", 10_000))


@pytest.mark.parametrize("ending", ["-wal", "-shm", ""])
def test_a_file_of_the_database_that_is_deleted_while_it_is_open_is_named_and_nothing_is_lost(
    make: Make, file: Path, ending: str
) -> None:
    opened = make()
    put(opened, record("one"))
    file.with_name(f"{file.name}{ending}").unlink()
    put(opened, record("two", 2))
    other = make()
    if ending == "-wal":
        with raises(OSError, file.name, f"{file.name}-wal", f"{file.name}-shm"):
            other.ids("flow")
    opened.close()
    assert make().ids("flow") == (["one", "two"] if ending else ["two"])


def test_a_file_of_something_else_is_an_error_and_stays(make: Make, file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"the novel I am writing" * 100)
    with raises(OSError, "checkpoints"):
        make().chains()
    assert file.read_bytes() == b"the novel I am writing" * 100


def test_a_folder_is_no_database(make: Make, tmp_path: Path) -> None:
    with raises(PermissionError, "opened"):
        make(tmp_path).chains()


def test_a_database_of_something_else_gets_tables_beside_its_own(make: Make, file: Path) -> None:
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE mine (a)")
    put(make(), record("one"))
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT count(*) FROM mine").fetchone() == (0,)


def test_a_file_that_was_removed_begins_anew_and_says_so(make: Make, file: Path) -> None:
    backend = make()
    generation = backend.generation("flow")
    backend.put(record("one", needs=("x",)), {}, generation=generation)
    shutil.rmtree(file.parent)
    with pytest.raises(StalePartsError):
        backend.put(record("two", 2), {}, generation=generation)
    put(backend, record("two", 2, needs=("x",)), "x")
    assert make().ids("flow") == ["two"]
    assert [each.name for each in sorted(file.parent.iterdir())] == [
        "checkpoints.db",
        "checkpoints.db-shm",
        "checkpoints.db-wal",
    ]


def test_a_file_that_another_one_took_the_place_of_is_left(make: Make, file: Path, tmp_path: Path) -> None:
    backend, elsewhere = make(), make(tmp_path / "other.db")
    put(backend, record("one"))
    theirs = put(elsewhere, record("theirs"))
    elsewhere.close()
    for name in file.parent.iterdir():
        name.unlink()
    (tmp_path / "other.db").rename(file)
    assert backend.get("theirs") == theirs
    assert put(backend, record("two", 2)) == make().latest("flow")
    with pytest.raises(CheckpointNotFoundError):
        backend.heads("flow", before="one")


def test_a_link_that_leads_nowhere_is_not_followed(make: Make, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "victim")
    with raises(OSError, "link"):
        make(tmp_path / "link.db").chains()
    assert not (tmp_path / "victim").exists()


def test_an_unknown_kind_of_database_is_refused() -> None:
    for kind in ("nosuch", "mysql"):
        with raises(ValueError, f"'{kind}://me:***@host'", f"'{kind}'"):
            SQLBackend(f"{kind}://me:secret@host")


# ---------------------------------------------------------------------------------------------------------- PostgreSQL


@pytest.fixture
def postgres(postgres_url: str, make: Make) -> SQLBackend:
    return make(postgres_url)


@pytest.mark.parametrize(
    ("user", "password", "database", "meaning"),
    [
        (USER, "wrong", "postgres", "rejects this user or password"),
        (USER, "", "postgres", "rejects this user or password"),
        ("unknown", PASSWORD, "postgres", "rejects this user or password"),
        (USER, PASSWORD, "nosuch", "has no such database. Create it"),
        ("crowded", PASSWORD, "postgres", "accepts no more connections"),
    ],
)
def test_a_server_that_refuses_a_connection_is_not_taken_for_one_that_is_away(
    postgres_server: PostgresServer, make: Make, user: str, password: str, database: str, meaning: str
) -> None:
    postgres_server.execute(
        f"DROP ROLE IF EXISTS crowded; CREATE ROLE crowded LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 0"
    )
    url = postgres_server.url(database, password=password).replace(f"//{USER}", f"//{user}")
    with pytest.raises(ConnectionError, match=meaning):
        make(url).chains()


def end_connections(server: PostgresServer) -> None:
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND usename = current_user"
    )


def test_a_connection_that_was_lost_is_replaced(postgres: SQLBackend, postgres_server: PostgresServer) -> None:
    put(postgres, record("one"))
    end_connections(postgres_server)
    assert postgres.ids("flow") == ["one"]
    generation = postgres.generation("flow")
    end_connections(postgres_server)
    postgres.put(record("two", 2), {}, generation=generation)
    end_connections(postgres_server)
    assert postgres.delete("flow", ["one"], sweep=True) == 1
    assert postgres.ids("flow") == ["two"]


class Interrupted:
    """A cursor before whose commit something happens."""

    def __init__(self, cursor: Any, happens: Callable[[], None]) -> None:
        self._cursor, self._happens = cursor, happens

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT":
            self._happens()
        return self._cursor.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def test_a_commit_without_answer_is_an_error_and_not_repeated(
    postgres: SQLBackend, postgres_server: PostgresServer
) -> None:
    put(postgres, record("one"))
    session = postgres._database._open_session()
    session.cursor = Interrupted(session.cursor, lambda: end_connections(postgres_server))
    with raises(ConnectionError, "stored"):
        put(postgres, record("two", 2))
    assert postgres.ids("flow") == ["one"]
    put(postgres, record("two", 2))
    assert postgres.ids("flow") == ["one", "two"]


def test_no_error_shows_a_password(postgres_server: PostgresServer, make: Make) -> None:
    for url in (
        postgres_server.url(password="wrong horse"),
        postgres_server.url("no_such_database"),
        f"postgresql://keeper:wrong%20horse@127.0.0.1:{free_port()}/postgres",
        f"postgresql://keeper@127.0.0.1:{postgres_server.port}/postgres?password=wrong+horse&options=wrong+horse",
    ):
        with raises(ConnectionError, "URL") as caught:
            make(url).chains()
        error: BaseException | None = caught.value
        while error is not None:
            assert "wrong horse" not in str(error)
            assert PASSWORD not in str(error)
            error = error.__cause__ or error.__context__


def test_the_collation_of_a_database_does_not_change_the_order(postgres_server: PostgresServer, make: Make) -> None:
    import psycopg

    try:
        url = postgres_server.create_database("LOCALE_PROVIDER icu ICU_LOCALE 'de-DE' LC_COLLATE 'C' LC_CTYPE 'C'")
    except psycopg.Error as error:
        pytest.skip(f"this PostgreSQL knows no collations of ICU: {error}")
    backend = make(url)
    for seq, text in enumerate(ODD_TEXTS):
        put(backend, record(f"id {text}", seq, chain=text))
        put(backend, record(f"in order {text}", chain="order", timestamp=text))
    assert backend.chains() == sorted([*ODD_TEXTS, "order"])
    assert backend.ids("order") == [f"in order {text}" for text in sorted(ODD_TEXTS)]
    assert backend.chains("a") == sorted(text for text in ODD_TEXTS if text.startswith("a"))


def test_a_user_who_may_not_create_tables_gets_an_error(
    postgres_server: PostgresServer, postgres_url: str, make: Make
) -> None:
    postgres_server.execute("DROP ROLE IF EXISTS guest")
    postgres_server.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    try:
        with raises(RuntimeError, "permission"):
            make(postgres_url.replace(postgres_url[13 : postgres_url.index("@")], "guest:guest")).chains()
    finally:
        postgres_server.execute("DROP ROLE guest")


def test_a_record_of_another_run_is_not_lost_when_two_save_the_same_id(postgres_url: str, make: Make) -> None:
    """Both find the id new; the one that comes second takes the place of the first."""
    one, two = make(postgres_url), make(postgres_url)
    generation = one.generation("a")
    session = one._database._open_session()
    session.cursor = Interrupted(session.cursor, lambda: None)
    waiting = threading.Thread(target=lambda: put(two, record("same", 2, chain="b")))
    session.cursor = Interrupted(session.cursor, waiting.start)
    one.put(record("same", 1, chain="a", timestamp=NOON), {}, generation=generation)
    waiting.join()
    found = one.get("same")
    assert found is not None
    assert [found.workflow_name, found.seq] == ["b", 2]
    assert one.chains() == ["b"]
