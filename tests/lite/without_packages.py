"""Optional packages and pictures in a page: tests that run in Pyodide (see `selection.py`), and nowhere else."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from agentbench._extras import require
from agentbench.exceptions import MissingExtraError, NotInBrowserError, RendererUnavailable
from agentbench.notebook import draw
from tests.parts.errors import raises
from tests.parts.executors import Pass, Show, chain

PURPOSE = "tabulate a run"


def test_a_package_that_the_page_cannot_reach_is_missing() -> None:
    with raises(MissingExtraError, extra="notebook", package="pandas", purpose=PURPOSE) as caught:
        require("pandas.api", extra="notebook", purpose=PURPOSE)
    assert "tried to load it" in str(caught.value.advice)
    assert "pip install" not in str(caught.value)


async def test_where_calls_cannot_be_suspended_the_user_imports_the_package_in_a_cell() -> None:
    errors: list[Any] = []
    ended = asyncio.Event()

    def call() -> None:
        with pytest.raises(MissingExtraError) as caught:
            require("pandas", extra="notebook", purpose=PURPOSE)
        errors.append(caught.value)
        ended.set()

    js, ffi = importlib.import_module("js"), importlib.import_module("pyodide.ffi")
    js.setTimeout(ffi.create_once_callable(call), 0)
    await ended.wait()
    assert "`import pandas` in a cell" in errors[0].advice


def test_a_package_outside_the_distribution_is_named_as_pip_knows_it() -> None:
    with raises(MissingExtraError, package="opentelemetry") as caught:
        require("opentelemetry.trace", extra="otel", purpose="trace runs")
    assert "%pip install opentelemetry-sdk" in str(caught.value.advice)


def test_a_package_that_the_page_can_reach_is_loaded_at_its_first_use() -> None:
    page, host = importlib.import_module("pyodide_js"), importlib.import_module("js").process
    name = "agentbench_reachable-1.0-py3-none-any.whl"
    wheel = Path("/reports", name)
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("agentbench_reachable.py", "answer = 42\n")
        made.writestr("agentbench_reachable-1.0.dist-info/METADATA", "Name: agentbench-reachable\nVersion: 1.0\n")
        made.writestr("agentbench_reachable-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        made.writestr("agentbench_reachable-1.0.dist-info/RECORD", "")
    entry: dict[str, Any] = {
        "name": "agentbench-reachable",
        "version": "1.0",
        "install_dir": "site",
        "package_type": "package",
    }
    entry |= {"file_name": f"{host.argv[5]}/{name}", "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    entry |= {"imports": ["agentbench_reachable"], "depends": []}
    to_js, js = importlib.import_module("pyodide.ffi").to_js, importlib.import_module("js")
    packages = page.lockfile.packages
    setattr(packages, "agentbench-reachable", to_js(entry, dict_converter=js.Object.fromEntries))
    importlib.import_module("agentbench._extras")._pyodide_packages.cache_clear()
    assert require("agentbench_reachable", extra="notebook", purpose=PURPOSE).answer == 42


def test_a_graph_is_drawn_by_the_built_in_layout(tmp_path: Path) -> None:
    workflow = chain(Pass("first"), Show("last"))
    view = draw(workflow)
    view.save(tmp_path / "graph.svg")
    assert "first" in (tmp_path / "graph.svg").read_text("utf-8")
    assert set(view._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}
    for suffix in ("png", "pdf"):
        with raises(NotInBrowserError, feature="PNG and PDF"):
            view.save(tmp_path / f"graph.{suffix}")
    with raises(RendererUnavailable, renderer="dot") as caught:
        draw(workflow, renderer="dot").save(tmp_path / "graph.svg")
    assert "'builtin'" in str(caught.value.advice)
