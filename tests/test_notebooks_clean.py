"""The shipped notebooks are documents: small, the same everywhere, free of traces of the machine that ran them."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tools import refresh_notebooks
from tests.tools.refresh_notebooks import (
    NOTEBOOKS,
    SANITIZE,
    normalised,
    outputs_are_free,
    sanitizer,
    text_of,
)

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
MAX_BYTES = 300_000
MAX_CELLS = 30
MAX_FREE_CELLS = 2
MAX_CELL_LINES, MAX_CELL_WIDTH = 45, 115  # what a screen shows without scrolling
ABSOLUTE_PATH = re.compile(r"(?<![\w./:<])(/(tmp|home|root|Users|usr|opt|var|mnt|srv)/[\w.]|[A-Za-z]:\\\\?[A-Za-z])")
ADDRESS = re.compile(r"(?i)\b(?:https?|ftp|wss?)://(?!www\.w3\.org/)[^\s\"'<>\\)]+")  # w3.org names the SVG language

SOLUTION = re.compile(r"\n\n<details><summary>Solution</summary>\n\n.+?\n\n</details>(?:\n|$)", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")

# Names that were given once are kept: other documents and people point at them.
NAMES = (
    "01_first_workflow",
    "02_supersteps",
    "03_edges_and_routing",
    "04_state",
    "05_checkpoints_and_frames",
    "06_human_in_the_loop",
    "07_time_travel",
    "08_breakpoints_and_failures",
    "09_async_in_notebooks",
    "10_tests_with_nbval",
    "11_agents_offline",
    "12_agents_in_workflows",
    "13_state_graph",
    "14_skills_mcp_memory",
    "15_evaluation",
    "16_orchestrations",
    "17_many_runs",
    "18_revisions",
)


def load(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def prose(path: Path) -> str:
    return "\n\n".join(source(cell) for cell in load(path)["cells"] if cell["cell_type"] == "markdown")


def test_a_notebook_is_stored_in_the_fixed_form() -> None:
    for path in PATHS:
        stored = path.read_bytes().decode("utf-8")
        assert stored == text_of(normalised(json.loads(stored))), (
            f"{path.name}: run python tests/tools/refresh_notebooks.py"
        )


def test_opening_and_saving_a_notebook_leaves_it_as_it_is() -> None:
    nbformat = pytest.importorskip("nbformat")
    for path in PATHS:
        opened = nbformat.read(path, as_version=nbformat.NO_CONVERT)
        assert nbformat.writes(opened) + "\n" == path.read_text(encoding="utf-8"), path.name


def test_the_metadata_name_the_language_as_the_kernel_does() -> None:
    kernel = pytest.importorskip("ipykernel.ipkernel")
    for path in PATHS:
        stored = load(path)["metadata"]["language_info"]
        assert stored | {"version": ""} == kernel.IPythonKernel.language_info | {"version": ""}, path.name


def test_a_notebook_is_valid_and_its_cells_have_ids_of_their_own() -> None:
    nbformat = pytest.importorskip("nbformat")
    for path in PATHS:
        nbformat.validate(nbformat.read(path, as_version=nbformat.NO_CONVERT))
        ids = [cell["id"] for cell in load(path)["cells"]]
        assert len(ids) == len(set(ids)), path.name


def test_a_notebook_holds_no_widget_state() -> None:
    for path in PATHS:
        assert "widgets" not in load(path)["metadata"], path.name
        assert refresh_notebooks.WIDGET_VIEW not in path.read_text(encoding="utf-8"), path.name


def test_a_notebook_was_run_from_top_to_bottom_without_an_error() -> None:
    for path in PATHS:
        cells = code_cells(path)
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), path.name
        kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
        assert "error" not in kinds, path.name


def test_a_notebook_names_no_absolute_path_and_no_address() -> None:
    for path in PATHS:
        text = path.read_text(encoding="utf-8")
        assert [found.group() for found in ABSOLUTE_PATH.finditer(text)] == [], path.name
        assert str(refresh_notebooks.ROOT) not in text, path.name
        assert ADDRESS.findall(text) == [], path.name


def test_a_notebook_is_small() -> None:
    for path in PATHS:
        assert path.stat().st_size < MAX_BYTES, path.name
        assert len(load(path)["cells"]) <= MAX_CELLS, path.name


def test_a_cell_fits_on_a_screen() -> None:
    for path in PATHS:
        for cell in code_cells(path):
            lines = source(cell).splitlines()
            assert len(lines) <= MAX_CELL_LINES, (path.name, cell["id"])
            assert max(map(len, lines)) <= MAX_CELL_WIDTH, (path.name, cell["id"])


def test_the_first_notebook_runs_a_workflow_in_its_fourth_cell_and_shows_a_stepper_by_its_tenth() -> None:
    cells = [source(cell) for cell in load(PATHS[0])["cells"]]
    assert "await small.run(" in cells[3]
    assert any("\nsmall_panel = small.stepper(" in f"\n{cell}" for cell in cells[:10])


def test_a_notebook_starts_with_the_extension_and_fixed_clocks_and_ids() -> None:
    for path in PATHS:
        first = source(code_cells(path)[0])
        assert first.startswith("%load_ext agentbench"), path.name
        assert "configure(deterministic=True)" in first, path.name


def test_a_notebook_opens_with_its_one_title() -> None:
    for path in PATHS:
        assert load(path)["cells"][0]["cell_type"] == "markdown", path.name
        assert source(load(path)["cells"][0]).startswith("# "), path.name
        assert len(re.findall(r"^# ", prose(path), flags=re.MULTILINE)) == 1, path.name


def test_a_notebook_ends_with_what_the_reader_can_do_and_two_exercises_with_folded_solutions() -> None:
    for path in PATHS:
        last = load(path)["cells"][-1]
        assert last["cell_type"] == "markdown", path.name
        can_do, *exercises = re.split(r"^\*\*(Exercise \d\.)\*\* ", source(last), flags=re.MULTILINE)
        assert can_do.startswith("## What you can do now\n"), path.name
        assert exercises[::2] == ["Exercise 1.", "Exercise 2."], path.name
        for exercise in exercises[1::2]:
            assert len(SOLUTION.findall(exercise)) == 1, (
                f"{path.name}: blank lines around, or the solution is not read as Markdown"
            )


def test_outputs_are_compared_in_all_but_two_cells_and_those_say_why_not() -> None:
    for path in PATHS:
        free = [cell for cell in code_cells(path) if outputs_are_free(cell)]
        assert len(free) <= MAX_FREE_CELLS, path.name
        for cell in free:
            assert gives_a_reason(cell), f"{path.name}: say why in a comment, in the line behind NBVAL_IGNORE_OUTPUT"


def test_a_marker_is_one_that_nbval_heeds() -> None:
    for path in PATHS:
        for cell in code_cells(path):
            for line in source(cell).splitlines():
                marker = re.search(r"#.*\bNBVAL_\w+", line)
                assert marker is None or re.fullmatch(r"# NBVAL_\w+", line.strip()), (
                    f"{path.name}: nbval overlooks {line!r}"
                )


def gives_a_reason(cell: dict[str, Any]) -> bool:
    """Whether a comment of some words stands behind the marker, or first in a cell that has the tag instead."""
    return bool(re.search(r"(?:^|# NBVAL_IGNORE_OUTPUT\n)# (?!NBVAL_)\S+ \S+ \S+", source(cell)))


# ------------------------------------------------------------------------------------------------------- the series


def test_a_notebook_keeps_its_number_and_its_name() -> None:
    assert tuple(path.stem for path in PATHS[: len(NAMES)]) == NAMES
    assert len({path.stem[:2] for path in PATHS}) == len(PATHS)


def test_a_notebook_names_its_neighbours() -> None:
    for at, path in enumerate(PATHS):
        last = source(load(path)["cells"][-1])
        before, after = (re.findall(rf"\b{word}: \[(.+?)\]\((.+?)\)", last) for word in ("Before", "Next"))
        assert before == [(each.name, each.name) for each in PATHS[max(at - 1, 0) : at]], path.name
        assert after == [(each.name, each.name) for each in PATHS[at + 1 : at + 2]], path.name


def test_links_lead_to_files_that_are_there() -> None:
    for path in PATHS:
        for target in LINK.findall(prose(path)):
            assert (path.parent / target).is_file(), (path.name, target)


def test_the_list_names_every_notebook_in_order() -> None:
    text = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| .+ \|$", text, flags=re.MULTILINE)
    assert listed == [(path.name, path.name) for path in PATHS]
    for target in LINK.findall(text):
        assert target.startswith("https://") or (NOTEBOOKS / target).exists(), target


def test_the_suite_compares_the_notebooks_strictly() -> None:
    settings = (refresh_notebooks.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for line in ('"--nbval"', '"--nbval-current-env"', '"--nbval-sanitize-with=tests/nbval_sanitize.cfg"'):
        assert f"    {line},\n" in settings
    assert "nbval-lax" not in settings
    assert 'testpaths = ["tests", "notebooks"]' in settings


# ----------------------------------------------------------------------------------- the tools that keep them like this

# Per pattern: two texts that differ only in what may differ, and one that must stay as it is.
FIXTURES = {
    "uuid": (
        "run 5f0c2a1e-8b1d-4c3e-9f6a-0d1e2f3a4b5c ended",
        "run 11111111-2222-4333-8444-555555555555 ended",
        "run run-1 ended, cp-0001 saved",
    ),
    "iso_time": ("at 2025-03-01T10:00:00.123456+00:00", "at 2026-04-02 11:30:00Z", "on 2024-01-01"),
    "address": ("<Node at 0x7f3a12bc4d50>", "<Node at 0x10a2b3c4d>", "colour 0xff"),
    "duration": ("took 3.1 ms", "took 12ms", "node 3 sends 12 messages"),
    "path": ("read /tmp/pytest-1/a.json", "read /home/ada/work/b.json", "read notebooks/data.json"),
    "version": ("pandas 3.1.1", "pandas 2.2.3.post1", "ratio 3.11 of 1.5"),
}


def patterns() -> dict[str, str]:
    """The sections of the file, by name."""
    text = SANITIZE.read_text(encoding="utf-8")
    return dict(re.findall(r"^\[(\w+)\]\n(regex: .*\nreplace: .*)$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("name", FIXTURES)
def test_a_pattern_makes_equal_what_may_differ_and_nothing_else(name: str) -> None:
    one, other, fixed = FIXTURES[name]
    every, without = sanitizer(), sanitizer("\n".join(text for key, text in patterns().items() if key != name))
    assert every(one) == every(other)
    assert without(one) != without(other), "the pattern is not needed"
    assert every(fixed) == fixed


DIRTY: dict[str, Any] = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "abc",
            "metadata": {"execution": {"iopub.execute_input": "2025-03-01"}, "tags": ["nbval-skip"], "collapsed": True},
            "outputs": [
                {
                    "output_type": "execute_result",
                    "execution_count": 1,
                    "metadata": {refresh_notebooks.WIDGET_VIEW: {}},
                    "data": {
                        "text/plain": "two\nlines",
                        "image/png": ["aGFs", "bG8="],
                        refresh_notebooks.WIDGET_VIEW: {"model_id": "1", "version_major": 2},
                        "application/json": {"a": 1},
                    },
                },
                {"output_type": "stream", "name": "stdout", "text": "took 3 ms\n"},
            ],
            "source": "a = 1\na",
        },
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
    ],
    "metadata": {"widgets": {}, "kernelspec": {"display_name": "my own", "name": "mine"}, "toc": {}},
    "nbformat": 4,
    "nbformat_minor": 4,
}


def test_the_fixed_form_leaves_out_what_depends_on_the_machine() -> None:
    clean = normalised(DIRTY)
    code, prose = clean["cells"]
    assert code["metadata"] == {"tags": ["nbval-skip"]}
    assert code["source"] == ["a = 1\n", "a"]
    assert code["outputs"][0]["data"] == {
        "text/plain": ["two\n", "lines"],
        "image/png": "aGFsbG8=",
        "application/json": {"a": 1},
    }
    assert code["outputs"][0]["metadata"] == {}
    assert prose == {"cell_type": "markdown", "id": "cell-02", "metadata": {}, "source": ["# Title"]}
    version = clean["metadata"]["language_info"].pop("version")
    assert (clean["metadata"], version) == (refresh_notebooks.METADATA, platform.python_version())
    assert (clean["nbformat"], clean["nbformat_minor"]) == (4, 5)


@pytest.fixture
def small_notebook(tmp_path: Path) -> Path:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    path = tmp_path / "small.ipynb"
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "one",
        "metadata": {},
        "outputs": [],
        "source": "6 * 7",
    }
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return path


@pytest.mark.filterwarnings("default")  # the notebook client's own, on some Pythons
def test_refreshing_runs_a_notebook_once_and_for_all(small_notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = small_notebook.read_text(encoding="utf-8")
    assert refresh_notebooks.main(["--check", str(small_notebook)]) == 1
    assert small_notebook.read_text(encoding="utf-8") == before, "a check writes nothing"
    assert "42" in capsys.readouterr().out
    assert refresh_notebooks.main([str(small_notebook)]) == 0
    assert code_cells(small_notebook)[0]["outputs"][0]["data"] == {"text/plain": ["42"]}
    assert refresh_notebooks.main(["--check", str(small_notebook)]) == 0
