"""What all tests share: `async def` tests run, the network is out of reach, process-wide defaults are put back."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import inspect
import ipaddress
import os
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest

from agentbench import InMemoryCheckpointStorage, _clock
from tests.parts.nightly import NIGHTLY
from tests.servers.postgres import PostgresServer
from tests.servers.process import MissingServerError
from tests.servers.redis import RedisServer

HERE = Path(__file__).parent

# Folders whose tests need an extra as a whole; without it they are not collected, and the header of the report says so.
NEEDS = {"notebook": "ipywidgets", "browser": "ipywidgets"}
LEFT_OUT = {
    folder: package
    for folder, package in NEEDS.items()
    if (HERE / folder).is_dir() and importlib.util.find_spec(package) is None
}
collect_ignore = sorted(LEFT_OUT)

# Files that take long, or share a browser or a server that is kept while the next file needs it too. Several processes
# take them first, so that all end together.
LONGEST = ("tests/batch/test_crashes", "tests/browser/", "notebooks/")

# In CI: always the same examples, whatever the speed of the machine. By hand and at night: new ones each time.
hypothesis.settings.register_profile("ci", max_examples=25, derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("dev", max_examples=25, deadline=None)
hypothesis.settings.register_profile("nightly", max_examples=200, deadline=None, print_blob=True)
hypothesis.settings.load_profile("nightly" if NIGHTLY else "ci" if os.environ.get("CI") else "dev")


# Clients of models refuse to leave this machine; tests of that switch set it themselves.
os.environ["AGENTBENCH_OFFLINE"] = "1"

# The tests in a browser are skipped where there is none, except where they have to run.
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
REQUIRE_BROWSER = os.environ.get("AGENTBENCH_REQUIRE_BROWSER") == "1"


def pytest_configure() -> None:
    if REQUIRE_BROWSER and "browser" in LEFT_OUT:
        reason = f"AGENTBENCH_REQUIRE_BROWSER is set, but {LEFT_OUT['browser']} is not installed."
        raise pytest.UsageError(reason)


@pytest.fixture(scope="session", autouse=True)
def config_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The configuration folder of the user, so that tests neither read nor write the one of whoever runs them."""
    folder = tmp_path_factory.mktemp("config")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTBENCH_CONFIG_DIR", str(folder))
        yield folder


def pytest_report_header() -> list[str]:
    return [f"left out: tests/{folder} ({package} is not installed)" for folder, package in sorted(LEFT_OUT.items())]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Let each process of `pytest -n auto` take a whole file: the cells of a notebook need their order."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # files are taken in the order below
    return LoadFileScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("::" in arg for arg in config.args)
    if not (NIGHTLY or config.option.markexpr or named):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    # Thousands of tests are never garbage; without this, every `gc.collect()` of a test looks through all of them.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests on a loop of their own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Count a skipped browser test as failed where browser tests have to run."""
    report = yield
    if REQUIRE_BROWSER and report.skipped and item.get_closest_marker("browser"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"AGENTBENCH_REQUIRE_BROWSER is set, but: {reason}"
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium that Playwright can drive; skips where there is none."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"there is no Chromium at {CHROMIUM}; set CHROMIUM to its path")
    return CHROMIUM


# Likewise the tests that need a server: it is started when the first one asks for it, and stopped with the session.
REQUIRE_SERVERS = os.environ.get("AGENTBENCH_REQUIRE_SERVERS") == "1"


def _skip_without_server(error: MissingServerError) -> NoReturn:
    if REQUIRE_SERVERS:
        pytest.fail(f"AGENTBENCH_REQUIRE_SERVERS is set, but: {error}")
    pytest.skip(str(error))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL; a test that stops it starts it again."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        server = PostgresServer()
    except MissingServerError as error:
        _skip_without_server(error)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of an empty database."""
    return postgres_server.create_database()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A running Redis; a test that stops it starts it again."""
    try:
        server = RedisServer()
    except MissingServerError as error:
        _skip_without_server(error)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def storage() -> InMemoryCheckpointStorage:
    return InMemoryCheckpointStorage()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of an empty Redis."""
    redis_server.clear()
    return redis_server.url


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Refuse every connection that would leave this machine."""
    connect, connect_ex, lookup = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _refuse_foreign(self.family, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _refuse_foreign(self.family, address)
        return connect_ex(self, address)

    def guarded_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        _refuse_foreign(socket.AF_INET, (host,))
        return lookup(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_lookup)
        yield


def _refuse_foreign(family: int, address: Any) -> None:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return
    host = address[0]
    text = host.decode() if isinstance(host, bytes) else host
    if text in (None, "", "localhost"):
        return
    try:
        local = ipaddress.ip_address(text).is_loopback
    except ValueError:
        local = False
    if not local:
        pytest.fail(f"a test reached for the network: {address!r}. Tests talk to this machine only.")


@pytest.fixture(autouse=True)
def runtime_defaults_put_back() -> Iterator[None]:
    """A test may set process-wide defaults; the next one finds those of a fresh process."""
    before = _clock.runtime_defaults()
    yield
    _clock.set_runtime_defaults(clock=before.clock, ids=before.ids, observe=before.observe)
