"""The commands, each as a process of its own, as a person at a terminal starts it."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from agentbench.cli.lab import CONNECTION
from agentbench.exceptions import install_command
from tests.tools.refresh_notebooks import NOTEBOOKS, ROOT

FIRST = NOTEBOOKS / "01_first_workflow.ipynb"
STANDING_IN_FOR_LAB = "import json, os, sys; print(json.dumps([*sys.argv[1:], os.environ['JUPYTER_CONFIG_PATH']]))"


def agentbench(
    *arguments: str | Path, cwd: Path, path: Path | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `agentbench ARGUMENTS` in a folder; `path` comes first where Python looks for packages."""
    packages = os.pathsep.join(map(str, [ROOT] if path is None else [path, ROOT]))
    environment = {**os.environ, "PYTHONPATH": packages, "PYTHONUTF8": "1", "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-m", "agentbench", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A folder with a JupyterLab that only says how it was started."""
    package = tmp_path / "packages" / "jupyterlab"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(STANDING_IN_FOR_LAB, encoding="utf-8")
    return package.parent


def started_with(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The arguments that JupyterLab got."""
    assert (done.returncode, done.stderr) == (0, "")
    arguments: list[str] = json.loads(done.stdout.splitlines()[-1])
    return arguments


def opened_by(arguments: list[str]) -> Path:
    """The notebook that the addresses name which JupyterLab prints and opens."""
    options = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    prefix, _, name = options["--LabApp.default_url"].rpartition("/")
    assert prefix == "/lab/tree"
    return Path(options["--ServerApp.root_dir"]) / unquote(name)


# --------------------------------------------------------------------------------------------------------- the commands


def test_the_version_is_that_of_the_package_also_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agentbench import __version__
    from agentbench.cli import main

    def distribution(name: str) -> Any:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", distribution)
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"agentbench {__version__}\n"


# ------------------------------------------------------------------------------------------------------------------ lab


def test_lab_opens_the_first_notebook_of_the_checkout_from_anywhere(lab: Path, tmp_path: Path) -> None:
    done = agentbench("lab", cwd=tmp_path, path=lab)
    assert opened_by(started_with(done)) == FIRST
    assert FIRST.name in done.stdout


def test_lab_listens_on_this_machine_only_and_fetches_no_news(lab: Path, tmp_path: Path) -> None:
    arguments = started_with(agentbench("lab", cwd=tmp_path, path=lab))
    assert "--ServerApp.ip=127.0.0.1" in arguments
    assert "--LabApp.news_url=None" in arguments
    assert "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate" in arguments
    config = Path(arguments[-1].split(os.pathsep)[0]) / "labconfig" / "page_config.json"
    assert json.loads(config.read_text())["disabledExtensions"] == {
        "@jupyterlab/apputils-extension:announcements": True
    }
    assert f"--ServerApp.kernel_websocket_connection_class={CONNECTION}" in arguments
    assert ("--allow-root" in arguments) == (hasattr(os, "geteuid") and os.geteuid() == 0)


@pytest.mark.parametrize("name", ["own.ipynb", "my own #2 (50%).ipynb"])
def test_lab_opens_any_notebook_file(name: str, lab: Path, tmp_path: Path) -> None:
    own = tmp_path / name
    own.touch()
    arguments = started_with(agentbench("lab", name, cwd=tmp_path, path=lab))
    assert opened_by(arguments) == own.resolve()
    (address,) = [argument for argument in arguments if "default_url" in argument]
    assert not {" ", "#", "("} & set(address)


@pytest.mark.skipif(os.name == "nt", reason="there the server is a process below, which would not be ended")
@pytest.mark.nightly
def test_the_address_that_a_real_jupyterlab_prints_names_the_notebook(tmp_path: Path) -> None:
    pytest.importorskip("jupyterlab")
    folders = {f"JUPYTER_{kind}_DIR": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    environment = {**os.environ, **folders, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "agentbench", "lab", "--no-browser", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            lines = (re.search(r"http://127\.0\.0\.1:\d+/\S*", line) for line in server.stderr)
            printed = next((found.group() for found in lines if found), "")
            assert f"/lab/tree/{FIRST.name}?token=" in printed
        finally:
            server.kill()


@pytest.mark.parametrize("name", ["2", "02", "02_supersteps", "02_supersteps.ipynb"])
def test_lab_finds_a_notebook_by_the_beginning_of_its_name(name: str, lab: Path, tmp_path: Path) -> None:
    opened = opened_by(started_with(agentbench("lab", name, cwd=tmp_path, path=lab)))
    assert opened == NOTEBOOKS / "02_supersteps.ipynb"


@pytest.mark.parametrize(("name", "problem"), [("99", "names no notebook"), ("0?", "names more than one notebook")])
def test_a_name_that_fits_no_notebook_or_several_is_an_error_that_lists_those_there_are(
    name: str, problem: str, lab: Path, tmp_path: Path
) -> None:
    done = agentbench("lab", name, cwd=tmp_path, path=lab)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"agentbench: '{name}' {problem}")
    assert FIRST.stem in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["99999", "0", "-1", "http"])
def test_a_port_that_is_none_is_refused(port: str, lab: Path, tmp_path: Path) -> None:
    done = agentbench("lab", "--port", port, cwd=tmp_path, path=lab)
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected" in done.stderr


@pytest.fixture
def installed(tmp_path: Path, lab: Path) -> Path:
    """A folder with the package alone, as `pip install` leaves it: no notebooks beside it."""
    shutil.copytree(ROOT / "agentbench", lab / "agentbench", ignore=shutil.ignore_patterns("__pycache__"))
    return lab


def test_without_a_checkout_lab_says_where_the_notebooks_are(installed: Path, tmp_path: Path) -> None:
    done = agentbench("lab", cwd=tmp_path, path=installed)
    assert (done.returncode, done.stdout) == (1, "")
    assert 'pip install -e ".[notebook]"' in done.stderr
    assert "agentbench lab FILE.ipynb" in done.stderr


# ----------------------------------------------------------------------------------------------------------------- demo


@pytest.fixture
def with_notebook_extra() -> None:
    for package in ("pandas", "graphviz"):
        pytest.importorskip(package)


needs_notebook_extra = pytest.mark.usefixtures("with_notebook_extra")

STEPS = [
    "superstep 0: load",
    "superstep 1: repair",
    "superstep 2: convert",
    "superstep 3: consumption, weight, power",
    "superstep 4: report",
    "superstep 5: publish",
]
ANSWERED = "superstep 6: publish"


@needs_notebook_extra
def test_the_demo_prints_its_supersteps_and_the_table(tmp_path: Path) -> None:
    done = agentbench("demo", "--yes", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("superstep")] == [*STEPS, ANSWERED]
    assert "Publish this report? yes" in lines
    assert lines.index("consumption: 14.7 and 7.4 l/100 km (-50%)") < lines.index("Publish this report? yes")
    assert [line.split()[0] for line in lines if line[:4].isdigit()] == [
        str(year) for year in (*range(1970, 1981), 1982)
    ]
    assert "\x1b" not in done.stdout, "the bar is for terminals"


@needs_notebook_extra
def test_the_demo_writes_the_graph_and_the_checkpoints(tmp_path: Path) -> None:
    done = agentbench("demo", "--yes", "--output", "here/below", cwd=tmp_path)
    folder = tmp_path / "here" / "below"
    assert {"car_report.svg", "checkpoints.csv"} < {path.name for path in folder.iterdir()}
    drawing = ElementTree.parse(folder / "car_report.svg").getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    words = " ".join(text.strip() for text in drawing.itertext())
    assert [name for name in ("load", "repair", "convert", "weight", "report", "publish") if name not in words] == []
    with (folder / "checkpoints.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["superstep"] for row in rows] == ["0", "1", "2", "3", "4", "5", "5", "6"]
    assert [row["source"] for row in rows] == ["input", *["step"] * 5, "answer", "step"]
    assert [row["parent_id"] for row in rows][1:] == [row["checkpoint_id"] for row in rows][:-1]
    for name in ("car_report.svg", "checkpoints.csv"):
        assert str(Path("here", "below", name)) in done.stdout
    listed = agentbench("checkpoints", "list", "here/below", "--json", cwd=tmp_path)
    assert [info["checkpoint_id"] for info in json.loads(listed.stdout)] == [row["checkpoint_id"] for row in rows]
    assert agentbench("checkpoints", "show", "here/below", "latest", cwd=tmp_path).returncode == 0
    again = agentbench("demo", "--yes", "--output", "here/below", cwd=tmp_path)
    assert "checkpoints.csv  8 checkpoints" in again.stdout


@needs_notebook_extra
@pytest.mark.parametrize(("typed", "published"), [("y\n", True), ("perhaps\n\nNo\n", False)])
def test_the_demo_asks_until_it_gets_an_answer(typed: str, published: bool, tmp_path: Path) -> None:
    done = agentbench("demo", "--ask", cwd=tmp_path, typed=typed)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Publish this report? [y/n]") == typed.count("\n")
    assert ("\nPublished." in done.stdout) is published


@needs_notebook_extra
def test_a_folder_that_cannot_be_made_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    done = agentbench("demo", "--yes", "--output", "taken", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "File exists: 'taken'" in done.stderr


@needs_notebook_extra
@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals on Windows")
def test_on_a_terminal_there_is_a_bar_and_a_question(tmp_path: Path) -> None:
    shown = on_a_terminal("demo", "--speed", "1000", cwd=tmp_path, asked="[y/n]", typed="y\n")
    for done in range(9):
        assert (f"] {done} of 8 executors" in shown) is (done not in (4, 5)), "three measures end at once"
    lines = re.sub(r"\[[#-]+\] \d of \d executors\r\x1b\[K", "", shown.replace("\r\n", "\n")).splitlines()
    assert [line for line in lines if line.startswith("superstep")] == [*STEPS, ANSWERED]
    assert "Publish this report? [y/n] y" in lines
    assert "Published. Files:" in lines


def on_a_terminal(*arguments: str, cwd: Path, asked: str, typed: str) -> str:
    """Run `agentbench ARGUMENTS` on a terminal of its own, type when asked, and return what was to be seen there."""
    import pty

    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentbench", *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
    finally:
        os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # Linux says so when the other side is closed
        while more := os.read(ours, 4096):
            seen += more
            if asked.encode() in seen and typed:
                os.write(ours, typed.encode())
                typed = ""
    os.close(ours)
    assert process.wait() == 0, seen.decode()
    return seen.decode()


def test_without_the_extra_the_demo_says_which_command_brings_it(tmp_path: Path) -> None:
    (tmp_path / "graphviz.py").write_text("raise ModuleNotFoundError(name='graphviz')", encoding="utf-8")
    (tmp_path / "pandas.py").touch()
    done = agentbench("demo", cwd=tmp_path, path=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("agentbench: graphviz is not installed")
    assert install_command("notebook") in done.stderr


# --------------------------------------------------------------------------------------------------------------- doctor


@needs_notebook_extra
def test_doctor_says_what_is_there(tmp_path: Path) -> None:
    done = agentbench("doctor", "--strict", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for topic in ("python", "agentbench", "renderer"):
        assert topic in done.stdout


def test_a_strict_doctor_fails_where_something_is_to_be_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_RENDERER", "no-such-renderer")
    lenient, strict = agentbench("doctor", cwd=tmp_path), agentbench("doctor", "--strict", cwd=tmp_path)
    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert "no-such-renderer" in strict.stdout
