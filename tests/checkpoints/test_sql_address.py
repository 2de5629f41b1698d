from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.errors import raises

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")

from sqlalchemy.engine import make_url

from agentbench.checkpoints.sql_storage.session import database_url, display_text, file_of, secrets_of


@pytest.fixture
def psycopg() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")


@pytest.mark.parametrize(
    "given", ["runs.db", Path("runs.db"), "./runs.db", "sqlite:///runs.db", make_url("sqlite:///runs.db")]
)
def test_a_path_stays_what_it_was_when_the_working_folder_changes(
    given: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = database_url(given)
    monkeypatch.chdir("/")
    assert url.drivername == "sqlite"
    assert file_of(url) == tmp_path / "runs.db"


def test_a_path_may_look_odd(tmp_path: Path) -> None:
    path = tmp_path / "a b?c=d#e%20@:.db"
    assert file_of(database_url(path)) == path


def test_a_file_may_be_named_by_a_uri_of_sqlite() -> None:
    assert file_of(database_url("sqlite:///file:runs.db?mode=ro&uri=true")) is None


def test_postgresql_is_reached_through_psycopg(psycopg: None) -> None:
    for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        assert database_url(f"{scheme}://me:secret@host:1/name").drivername == "postgresql+psycopg"
    assert database_url("postgresql+pg8000://me@host/name").drivername == "postgresql+pg8000"
    assert file_of(database_url("postgresql://me@host/name")) is None


@pytest.mark.parametrize(
    "given",
    ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true", "sqlite:///file::memory:?uri=true"],
)
def test_a_database_in_memory_is_refused(given: str) -> None:
    with raises(ValueError, "InMemoryCheckpointStorage"):
        database_url(given)


@pytest.mark.parametrize("given", [None, 3, b"runs.db", object()])
def test_what_is_neither_a_path_nor_a_url_is_refused(given: object) -> None:
    with raises(TypeError, "URL", "sqlalchemy.URL"):
        database_url(given)


@pytest.mark.parametrize("given", ["://me:secret@host", "postgresql://me:secret@host:port/name"])
def test_a_url_that_is_none_is_refused_without_being_printed(given: str) -> None:
    with raises(ValueError, "URL", "SQLAlchemy") as caught:
        database_url(given)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_secrets_are_not_displayed(psycopg: None) -> None:
    url = database_url("postgresql://me:s%40cret@host/name?sslpassword=hidden&application_name=bench&sslkey=/k")
    text = display_text(url)
    assert "s@cret" not in text
    assert "s%40cret" not in text
    assert "hidden" not in text
    assert "application_name=bench" in text
    assert sorted(secrets_of(url)) == ["/k", "hidden", "s@cret"]
    assert secrets_of(database_url("postgresql://me@host/name")) == []
