"""`agentbench site`: what a site contains, and what is reported. Sites in a browser: tests/browser."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, unquote

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.cli import main
from agentbench.cli.site import build
from agentbench.cli.site.build import build_site
from agentbench.cli.site.contents import Contents, collect
from agentbench.cli.site.index import write_index
from agentbench.cli.site.lab import build_lab
from agentbench.cli.site.problems import find_problems
from agentbench.cli.site.pyodide import Pyodide
from agentbench.cli.site.server import make_server
from agentbench.cli.site.tour import write_tour
from agentbench.exceptions import SiteError


def write_notebook(path: Path, *cells: str, markdown: str = "# A lesson") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(markdown), *code]), path)
    return path


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def problems(tmp_path: Path, *cells: str, modules: frozenset[str] = frozenset({"agentbench"})) -> list[str]:
    return find_problems(collect([write_notebook(tmp_path / "lesson.ipynb", *cells)]), set(modules))


def test_files_modules_and_pictures_that_a_notebook_uses_come_with_it(tmp_path: Path) -> None:
    write(tmp_path / "scores.csv")
    write(tmp_path / "more" / "a.txt")
    write(tmp_path / "plan.svg")
    write(tmp_path / "the site.svg")
    write(tmp_path / "helpers.py", "import tools.cut\nTABLE = 'table.json'")
    write(tmp_path / "table.json")
    write(tmp_path / "tools" / "cut.py")
    write(tmp_path / "unused.csv")
    cells = "import helpers\nopen('scores.csv')", "from pathlib import Path\nPath('more') / 'a.txt'"
    contents = collect(
        [write_notebook(tmp_path / "lesson.ipynb", *cells, markdown="![the plan](plan.svg) ![](the%20site.svg)")]
    )
    expected = {"scores.csv", "more/a.txt", "plan.svg", "the site.svg", "helpers.py", "table.json", "tools/cut.py"}
    assert set(contents.files) == expected
    assert contents.problems == []


@pytest.mark.parametrize("name", [".env", ".git/config", "sub/.hidden/key", "__pycache__/a.pyc", ".", ""])
def test_hidden_files_stay_here_even_if_a_notebook_names_them(name: str, tmp_path: Path) -> None:
    if name.strip("."):
        write(tmp_path / name, "secret")
    contents = collect([write_notebook(tmp_path / "lesson.ipynb", f"print({name!r}); print('sub')")])
    assert contents.files == {}


def test_a_file_outside_of_the_folder_is_not_included_but_reported(tmp_path: Path) -> None:
    write(tmp_path / "secret.txt")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.txt").symlink_to(tmp_path / "secret.txt")
    contents = collect([write_notebook(tmp_path / "in" / "lesson.ipynb", "open('../secret.txt')", "open('link.txt')")])
    assert contents.files == {}
    assert ["'../secret.txt'" in contents.problems[0], "'link.txt'" in contents.problems[1]] == [True, True]


def test_links_bring_nothing_else_into_a_site(tmp_path: Path) -> None:
    write(tmp_path / "outside.txt", "secret")
    data = write(tmp_path / "in" / "data" / "a.txt").parent
    write(data / ".env", "secret")
    (data / "b.txt").symlink_to("a.txt")
    (data / "c.txt").symlink_to(".env")
    (data / "d.txt").symlink_to(tmp_path / "outside.txt")
    contents = collect([write_notebook(tmp_path / "in" / "lesson.ipynb", "open('data/a.txt')", "print('data')")])
    assert set(contents.files) == {"data/a.txt", "data/b.txt"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import subprocess", "subprocess does not work, because a page cannot start other programs"),
        ("!ls", "this command does not run"),
        ("files = !ls", "this command does not run"),
        ("%%bash\nls", "this command does not run"),
        ("import torch.nn as nn", "torch is not available"),
        ("from agentbench import MCPStdioTool", None),
        ("MCPStdioTool('x', command='y')", "MCPStdioTool does not work"),
        ("storage = SQLCheckpointStorage('postgresql://localhost/x')", "SQLCheckpointStorage(postgresql://...)"),
        ("run_many(workflow, inputs, backend='processes')", "a batch on a cluster"),
        ("run_many(workflow, inputs, backend='here')", None),
        ("run_sync(workflow.run('x'))", "write await instead"),
        ("checkpoints_frame(run)", "a frame needs pandas"),
        ("batch.frame()", "a frame needs pandas"),
        ("await workflow.run('x')", None),
        ("import json, asyncio, sqlite3", None),
        ("this is no code", None),
    ],
)
def test_what_cannot_work_in_a_browser_is_reported_with_its_place(
    code: str, expected: str | None, tmp_path: Path
) -> None:
    found = problems(tmp_path, "x = 1", code)
    if expected is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith("lesson.ipynb, code cell 2: ")
        assert expected in found[0]


def test_code_in_any_encoding_is_looked_at_and_code_that_is_none_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_bytes("# coding: latin-1\nimport torch  # für".encode("latin-1"))
    (tmp_path / "broken.py").write_bytes(b"x = '\xff'")
    (tmp_path / "empty.py").write_bytes(b"\0")
    found = problems(tmp_path, "import old, broken, empty", "import redis\nx = '\\d'")
    assert [problem.split(":")[0] for problem in found] == ["old.py", "lesson.ipynb, code cell 2"]


def test_what_is_there_is_not_reported(tmp_path: Path) -> None:
    write(tmp_path / "helpers.py")
    there = frozenset({"agentbench", "pandas"})
    assert problems(tmp_path, "import helpers\nimport pandas\ncheckpoints_frame(run)", modules=there) == []


def test_a_module_beside_the_notebook_is_looked_at_too(tmp_path: Path) -> None:
    write(tmp_path / "helpers.py", "import subprocess")
    assert [problem.split(":")[0] for problem in problems(tmp_path, "import helpers")] == ["helpers.py"]


def test_one_problem_in_several_cells_is_reported_once(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "import torch", "x = 1", "import torch")
    assert found == "lesson.ipynb, code cells 1, 3: torch is not available, so the import fails."


def test_a_folder_that_is_no_site_is_never_replaced(tmp_path: Path) -> None:
    kept = write(tmp_path / "out" / "thesis.txt")
    with pytest.raises(SiteError, match="is not a site"):
        build_site(tmp_path / "out", [write_notebook(tmp_path / "lesson.ipynb")])
    assert kept.exists()


def test_each_notebook_has_a_page_of_its_own_to_which_the_list_leads(tmp_path: Path) -> None:
    names = ["index.ipynb", "Über uns #1 100%? <b>.ipynb"]
    paths = [write_notebook(tmp_path / name, "x", markdown=f"# {name} & <script>") for name in names]
    write_index(tmp_path, write_tour(tmp_path / "tour", collect(paths)))
    listed = (tmp_path / "tour" / "index.html").read_text("utf-8")
    links = re.findall(r'<li><a href="([^"]*)"', listed)
    assert len(set(links)) == 2
    for link, name in zip(links, names, strict=True):
        page = (tmp_path / "tour" / unquote(link.partition("#")[0].partition("?")[0])).read_text("utf-8")
        assert quote(name) in page
    assert "<b>" not in listed
    assert "<script>" not in listed


def test_names_that_the_page_cannot_open_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "50 %.csv")
    contents = collect(
        [write_notebook(tmp_path / f"{name}.ipynb", "open('50 %.csv')") for name in ("Lesson #1", "ü b")]
    )
    assert contents.problems == [
        "JupyterLite cannot open 'Lesson #1.ipynb', because of #. Rename it.",
        "JupyterLite cannot open '50 %.csv', because of %. Rename it.",
    ]


def test_a_notebook_of_an_older_format_is_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"cell_type": "code", "language": "python", "input": "1", "outputs": [], "metadata": {}, "collapsed": False}
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }
    contents = collect([write(tmp_path / "old.ipynb", json.dumps(old))])
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 1, "", "")
    )  # of JupyterLite
    with pytest.raises(SiteError, match="JupyterLite failed"):
        build_lab(tmp_path / "lab", contents, tmp_path)
    new = json.loads((tmp_path / "contents" / "old.ipynb").read_text("utf-8"))
    assert [cell["source"] for cell in new["cells"]] == ["1"]
    assert new["metadata"]["kernelspec"]["name"] == "python"


HOSTILE = (
    """<script>window.ran = 1</script><SCRIPT src="http://127.0.0.1:1/x.js"></SCRIPT ><img src=x onerror="ran = 1">"""
)


def test_pages_of_notebooks_run_no_script_and_take_no_hidden_picture(tmp_path: Path) -> None:
    write(tmp_path / "plan.svg", "<svg/>")
    write(tmp_path / ".env", "TOKEN=sesame")
    path = write_notebook(tmp_path / "in.ipynb", "1", markdown=f"# <b>`x`</b>\n![](plan.svg) ![](.env) {HOSTILE}")
    notebook = nbformat.read(path, as_version=4)
    output = nbformat.v4.new_output("display_data", {"text/html": HOSTILE})
    notebook.cells[1].outputs.append(output)
    nbformat.write(notebook, path)
    titles = write_tour(tmp_path / "tour", collect([path]))
    page = (tmp_path / "tour" / "in.html").read_text("utf-8")
    assert titles == {"in.ipynb": "<b>x</b>"}
    assert "<script" not in page.lower()
    assert page.index("script-src 'none'") < page.index("onerror")
    assert (tmp_path / "tour" / "plan.svg").exists()
    assert not any(b"sesame" in file.read_bytes() for file in (tmp_path / "tour").iterdir())


@given(
    parts=st.lists(st.sampled_from(["a", ".env", "..", ".", "b.txt", ".git", "link", "out"]), min_size=1, max_size=4)
)
def test_whatever_a_notebook_names_only_visible_files_below_its_folder_are_included(parts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "in"
        for name in ("a/b.txt", "a/.env", "b.txt", ".env", ".git/a/b.txt", "../out/b.txt", "../.env"):
            write(root / name)
        (root / "link").symlink_to(root / "a")
        (root / "a" / "out").symlink_to(root.parent / "out")
        for file in collect([write_notebook(root / "lesson.ipynb", f"open({'/'.join(parts)!r})")]).files.values():
            inside = file.resolve().relative_to(root)
            assert not any(part.startswith(".") for part in inside.parts)


@pytest.mark.parametrize("lock", ["<html>", "{}", "[]", '{"packages": [], "info": {}}'])
def test_a_folder_with_another_lock_file_is_refused(lock: str, tmp_path: Path) -> None:
    for name in ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"):
        write(tmp_path / name)
    write(tmp_path / "pyodide-lock.json", lock)
    with pytest.raises(SiteError, match="There is no Pyodide at"):
        Pyodide(str(tmp_path))


def test_a_taken_port_is_reported_before_anything_is_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_notebook(tmp_path / "lesson.ipynb")
    with make_server(tmp_path) as server:
        port = server.server_address[1]
        assert main(["site", str(tmp_path / "out"), str(path), "--port", str(port)]) == 1
    assert f"Port {port} cannot be used" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_two_notebooks_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"Two notebooks are called lesson\.ipynb"):
        collect([write_notebook(tmp_path / name / "lesson.ipynb") for name in ("a", "b")])


@pytest.mark.parametrize("arguments", [["missing.ipynb"], ["broken.ipynb"], ["good.ipynb", "--pyodide", "nowhere"]])
def test_the_command_says_what_is_wrong_and_leaves_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "broken.ipynb", "{}")
    write_notebook(tmp_path / "good.ipynb")
    assert main(["site", "out", *arguments]) == 1
    output = capsys.readouterr()
    assert arguments[-1] in output.err
    assert "Pass" in output.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.ipynb", "good.ipynb"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what writes the parts of a site: these tests are about its folder."""

    class Python:
        url = None

        def __init__(self, where: str) -> None:
            pass

        def install(self, *_: object) -> SimpleNamespace:
            return SimpleNamespace(at_start=[], modules=set())

    def build_lab(out: Path, contents: Contents, scratch: Path) -> None:
        assert out.is_absolute(), "JupyterLite runs in another folder"
        (out / "of").mkdir(parents=True)
        write(out / "of" / str(min(contents.notebooks)))

    monkeypatch.setattr(build, "Pyodide", Python)
    monkeypatch.setattr(build, "build_lab", build_lab)
    monkeypatch.setattr(build, "kernel_wheels", list)
    monkeypatch.setattr(build, "configure_lab", lambda *_, **__: None)
    monkeypatch.setattr(build, "write_tour", lambda folder, contents: dict.fromkeys(contents.notebooks, "A lesson"))
    monkeypatch.setattr(build, "write_reference", lambda folder: None)
    monkeypatch.setattr(build, "write_index", lambda site, titles: None)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("out", ["site", "new/site", "link", "dangling", "empty"])
def test_a_site_is_built_in_the_folder_that_is_named(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("aim", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to("aim")
    (tmp_path / "dangling").symlink_to("later")
    for name in ("a.ipynb", "b.ipynb"):  # the second site replaces the first
        assert build_site(Path(out), [write_notebook(tmp_path / name)], pyodide="here").folder == Path(out)
        assert names(tmp_path / out / "lab" / "of") == [name]
    assert (tmp_path / "link").is_symlink()
    assert not [name for name in names(tmp_path) if name.startswith(".")]


@pytest.mark.usefixtures("quick")
def test_a_site_in_which_somebody_works_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "site"
    lesson = write_notebook(tmp_path / "lesson.ipynb")
    build_site(out, [lesson], pyodide="here")
    with pytest.raises(SiteError, match=r"own\.ipynb is in it\. Name another folder"):
        build_site(out, [write_notebook(out / "own.ipynb")], pyodide="here")
    monkeypatch.chdir(out)
    with pytest.raises(SiteError, match="would be replaced"):
        build_site(Path(), [lesson], pyodide="here")
    assert (out / "own.ipynb").exists()


@pytest.mark.usefixtures("quick")
def test_an_older_site_stays_if_the_new_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = write_notebook(tmp_path / "lesson.ipynb")
    build_site(tmp_path / "site", [lesson], pyodide="here")

    def interrupt(folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "write_reference", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build_site(tmp_path / "site", [lesson], pyodide="here")
    assert names(tmp_path) == ["lesson.ipynb", "site"]
    assert names(tmp_path / "site") == ["agentbench-site.json", "lab"]
