"""The shipped notebooks are documents: small, the same everywhere, free of traces of the machine that ran them."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tools import refresh_notebooks
from tests.tools.refresh_notebooks import (
    NOTEBOOKS,
    SANITIZE,
    comparable,
    normalised,
    outputs_are_free,
    sanitizer,
    text_of,
)

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
MAX_BYTES = 300_000
MAX_CELLS = 30
MAX_FREE_CELLS = 2
ABSOLUTE_PATH = re.compile(r"(?<![\w./:<])(/(tmp|home|root|Users|usr|opt|var|mnt|srv)/[\w.]|[A-Za-z]:\\\\?[A-Za-z])")
ADDRESS = re.compile(r"(?i)\b(?:https?|ftp|wss?)://(?!www\.w3\.org/)[^\s\"'<>\\)]+")  # w3.org names the SVG language

every_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def load(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def code_cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


@every_notebook
def test_a_notebook_is_stored_in_the_fixed_form(path: Path) -> None:
    stored = path.read_bytes().decode("utf-8")
    assert stored == text_of(normalised(json.loads(stored))), "Run: python tests/tools/refresh_notebooks.py"


@every_notebook
def test_a_notebook_is_valid_and_its_cells_have_ids_of_their_own(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.read(path, as_version=nbformat.NO_CONVERT))
    ids = [cell["id"] for cell in load(path)["cells"]]
    assert len(ids) == len(set(ids))


@every_notebook
def test_a_notebook_holds_no_widget_state(path: Path) -> None:
    assert "widgets" not in load(path)["metadata"]
    assert refresh_notebooks.WIDGET_VIEW not in path.read_text(encoding="utf-8")


@every_notebook
def test_a_notebook_was_run_from_top_to_bottom_without_an_error(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert "error" not in kinds


@every_notebook
def test_a_notebook_names_no_absolute_path_and_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [found.group() for found in ABSOLUTE_PATH.finditer(text)] == []
    assert str(refresh_notebooks.ROOT) not in text
    assert ADDRESS.findall(text) == []


@every_notebook
def test_a_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size < MAX_BYTES
    assert len(load(path)["cells"]) <= MAX_CELLS


@every_notebook
def test_a_notebook_starts_with_the_extension_and_fixed_clocks_and_ids(path: Path) -> None:
    first = source(code_cells(path)[0])
    assert first.startswith("%load_ext agentbench")
    assert "configure(deterministic=True)" in first


@every_notebook
def test_a_notebook_ends_with_what_was_learned_and_an_exercise_with_a_folded_answer(path: Path) -> None:
    last = load(path)["cells"][-1]
    assert last["cell_type"] == "markdown"
    assert "what you learned" in source(last).lower()
    assert "<details>" in source(last)


@every_notebook
def test_outputs_are_compared_in_all_but_two_cells_and_those_say_why_not(path: Path) -> None:
    free = [cell for cell in code_cells(path) if outputs_are_free(cell)]
    assert len(free) <= MAX_FREE_CELLS
    for cell in free:
        assert re.search(r"#\s*NBVAL_IGNORE_OUTPUT\b\W+\w+", source(cell)), "say why, behind NBVAL_IGNORE_OUTPUT"


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


def test_there_is_a_fixture_for_each_pattern() -> None:
    assert patterns().keys() == FIXTURES.keys()


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
    assert code["outputs"][0]["data"] == {"text/plain": ["two\n", "lines"], "application/json": {"a": 1}}
    assert code["outputs"][0]["metadata"] == {}
    assert prose == {"cell_type": "markdown", "id": "cell-02", "metadata": {}, "source": ["# Title"]}
    assert clean["metadata"] == refresh_notebooks.METADATA
    assert (clean["nbformat"], clean["nbformat_minor"]) == (4, 5)


def test_the_fixed_form_of_the_fixed_form_is_itself() -> None:
    assert normalised(normalised(DIRTY)) == normalised(DIRTY)


def test_two_runs_compare_equal_whatever_time_they_took() -> None:
    slower = copy.deepcopy(DIRTY)
    slower["cells"][0]["outputs"][1]["text"] = "took 7.5 ms\n"
    assert comparable(normalised(slower)) == comparable(normalised(DIRTY))


def test_another_output_is_a_change_unless_the_cell_says_that_it_may_differ() -> None:
    other = copy.deepcopy(DIRTY)
    other["cells"][0]["outputs"][1]["text"] = "something else\n"
    assert comparable(normalised(other)) != comparable(normalised(DIRTY))
    free, other_free = copy.deepcopy(DIRTY), other
    for notebook in (free, other_free):
        notebook["cells"][0]["source"] = "a  # NBVAL_IGNORE_OUTPUT: random"
    assert comparable(normalised(other_free)) == comparable(normalised(free))


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
