"""The house rules that a tool can check: the front door, what an import loads, who may import whom."""

from __future__ import annotations

import ast
import copy
import importlib
import importlib.metadata
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import agentbench
from agentbench._lazy import public_packages
from tests.tools import write_stub

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(agentbench.__file__).parent

# Not needed to build and run a workflow, and slow to load or not always there.
HEAVY = {
    "IPython",
    "anywidget",
    "graphviz",
    "ipywidgets",
    "jinja2",
    "jupyterlab",
    "mistune",
    "nest_asyncio",
    "nest_asyncio2",
    "numpy",
    "opentelemetry",
    "pandas",
    "pydantic",
    "resvg_py",
    "traitlets",
    "typing_extensions",
}


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after running `code`, without those that it starts with."""
    shown = "import json; print(json.dumps(sorted(set(sys.modules) - before)))"
    script = f"import sys\nbefore = set(sys.modules)\n{code}\n{shown}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


def modules() -> Iterator[ModuleType]:
    """Every module of the library that can be imported with the packages that are installed."""
    for found in pkgutil.walk_packages([str(PACKAGE)], "agentbench."):
        if found.name.endswith("__main__"):
            continue
        try:
            yield importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if importlib.util.find_spec(str(error.name).partition(".")[0]) is not None:
                raise


# ------------------------------------------------------------------------------------------------------- the front door


PACKAGES = [importlib.import_module(name) for name in public_packages()]
LAZY = [package for package in PACKAGES if hasattr(package, "_door")]


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_the_public_names_of_a_package_are_sorted_and_dir_shows_nothing_else(package: ModuleType) -> None:
    assert list(package.__all__) == sorted(set(package.__all__))
    shown = {name for name in dir(package) if not name.startswith("__")}
    assert shown == {*package.__all__, *package._door.parts}


def test_the_type_checker_reads_a_use_of_every_package() -> None:
    read = (Path(__file__).parent / "typing" / "packages.py").read_text(encoding="utf-8")
    assert [package.__name__ for package in PACKAGES if f"from {package.__name__} import" not in read] == []


def told(code: str, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        exec(code)
    assert type(caught.value) is error
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("draw", "from agentbench.notebook import draw"),
        ("events_frame", "from agentbench.notebook import events_frame"),
        ("ObservabilitySettings", "from agentbench.observability import ObservabilitySettings"),
    ],
)
def test_a_name_of_another_package_is_reported_with_its_package(name: str, hint: str) -> None:
    for code, error in ((f"agentbench.{name}", AttributeError), (f"from agentbench import {name}", ImportError)):
        message = told(code, error)
        assert f"'{name}'" in message
        assert message.endswith(hint)
    assert not hasattr(agentbench, name)
    assert told("from agentbench.stategraph import Agent", ImportError).endswith("from agentbench import Agent")


def test_the_root_has_few_names_and_says_where_every_other_public_name_is() -> None:
    assert len(agentbench.__all__) <= 353
    for package in PACKAGES:
        for name in {*package.__all__} - {*agentbench.__all__, *vars(agentbench)}:
            assert f"from {package.__name__} import {name}" in told(f"from agentbench import {name}", ImportError)


def test_a_mistyped_name_is_reported_with_the_nearest() -> None:
    near = "from agentbench import WorkflowBuilder"
    assert told("agentbench.WorkflowBuildr", AttributeError).endswith(near)
    assert told("from agentbench import WorkflowBuildr", ImportError).endswith(near)
    assert told("agentbench.event_frame", AttributeError).endswith("from agentbench.notebook import events_frame")
    assert told("agentbench.xyzzy", AttributeError) == "module 'agentbench' has no attribute 'xyzzy'"


def test_looking_for_a_near_name_loads_nothing_heavy_and_inner_modules_need_no_search() -> None:
    assert not loaded_by("import agentbench\nassert not hasattr(agentbench, 'draw')") & HEAVY
    assert "difflib" not in loaded_by("from agentbench import messages, workflows, _bridge")
    assert "difflib" in loaded_by("import agentbench\nassert not hasattr(agentbench, 'Workflo')")


@pytest.mark.parametrize("name", agentbench._door.parts)
def test_a_part_is_found_without_importing_it_first(name: str) -> None:
    assert "agentbench" in loaded_by(f"import agentbench\nassert agentbench.{name}.__name__ == 'agentbench.{name}'")


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_the_typed_stub_of_a_package_has_the_same_names(package: ModuleType) -> None:
    assert write_stub.main(["--check"]) == 0
    body = ast.parse(Path(str(package.__file__)).with_name("__init__.pyi").read_text(encoding="utf-8")).body
    imported = {alias.asname for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    aliases = {ast.unparse(node.targets[0]) for node in body if isinstance(node, ast.Assign)}
    assert imported - {None} | aliases == {*package.__all__, *package._door.parts}


def test_what_other_packages_list_as_public_is_there_and_listed_once() -> None:
    for module in modules():
        listed = getattr(module, "__all__", [])
        assert len(listed) == len(set(listed)), module.__name__
        assert [name for name in listed if not is_there(module, name)] == [], module.__name__


def is_there(module: ModuleType, name: str) -> bool:
    try:
        return hasattr(module, name)
    except ModuleNotFoundError:  # it is, and needs an extra
        return True


# ------------------------------------------------------------------------------------------------ what an import loads


def test_importing_the_package_loads_nothing_but_a_bit_of_the_standard_library() -> None:
    loaded = loaded_by("import agentbench\nagentbench.__all__, agentbench.__version__, dir(agentbench)")
    assert "agentbench" in loaded
    assert loaded & {*HEAVY, "asyncio", "dataclasses", "inspect", "logging", "typing"} == set()


def test_the_engine_loads_no_heavy_package() -> None:
    # Two have a public pydantic model: what the agent that leads a group chat answers, and the judge of a loop.
    models = ("agentbench.orchestrations.patterns.group_chat_manager", "agentbench.agents.middleware.judge")
    above = ("agentbench.notebook", "agentbench.stategraph", *models)
    engine = [name for name, (home, _) in agentbench._door.homes.items() if not home.startswith(above)]
    assert loaded_by(f"import agentbench\nfor name in {engine!r}: getattr(agentbench, name)") & HEAVY == set()


def test_state_graphs_load_pydantic_and_no_other_heavy_package() -> None:
    assert loaded_by("from agentbench.stategraph import *") & HEAVY == {"pydantic", "typing_extensions"}


# ---------------------------------------------------------------------------------------------------------- the layers


def test_the_layers_hold() -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed (dependency group dev)")
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def named_views() -> Iterator[tuple[str, str]]:
    """Every `drawn_by("module:function")` and `call_view("module:function", ...)` of the library, with its file."""
    for path in sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / "_display.py"}):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("drawn_by", "call_view")
            ):
                assert isinstance(node.args[0], ast.Constant), (
                    f"{path.name}:{node.lineno} names a view in a way that hides it"
                )
                yield path.name, str(node.args[0].value)


def test_what_is_found_by_name_is_there() -> None:
    pytest.importorskip("ipywidgets", reason="ipywidgets is not installed (extra notebook)")
    views = list(named_views())
    assert views
    for path, view in views:
        module, _, function = view.partition(":")
        assert callable(getattr(importlib.import_module(module), function, None)), f"{path} names {view}"


def layer_contracts() -> list[dict[str, Any]]:
    """The contracts of import-linter that put modules in layers."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return [contract for contract in settings["contracts"] if contract["type"] == "layers"]


def test_imports_for_type_checkers_keep_the_layers_too() -> None:
    grimp = pytest.importorskip("grimp", reason="import-linter is not installed (dependency group dev)")
    graph = grimp.build_graph("agentbench", cache_dir=None, exclude_type_checking_imports=False)
    wrong = set()
    for contract in layer_contracts():
        layers = [
            grimp.Layer(*(name.strip(" ()") for name in re.split(r"[|:]", layer)), independent="|" in layer)
            for layer in contract["layers"]
        ]
        allowed = copy.deepcopy(graph)
        for ignored in contract.get("ignore_imports", ()):
            importer, _, imported = ignored.partition(" -> ")
            allowed.remove_import(importer=importer, imported=imported)
        found = allowed.find_illegal_dependencies_for_layers(layers=layers, containers=set(contract["containers"]))
        wrong |= {(each.importer, each.imported) for each in found}
    assert wrong == set()


# ----------------------------------------------------------------------------------------------------------- packaging


def test_every_dependency_says_why_it_is_there() -> None:
    required = importlib.metadata.requires("agentbench") or []
    names = {re.split(r"[^\w.-]", requirement)[0].replace("_", "-").lower() for requirement in required}
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Dependencies")[2]
    packages = ", ".join(re.findall(r"^\| ([^|]+) \|", table, flags=re.MULTILINE))
    explained = {package.replace("_", "-") for package in packages.split(", ")}
    assert names - {"agentbench"} - explained == set()


def test_threads_start_in_one_module() -> None:
    """Only the bridge knows whether there are threads."""
    starts = {"Thread", "Timer", "ThreadPool", "ThreadPoolExecutor", "ProcessPoolExecutor", "start_new_thread"}
    starts |= {"to_thread", "run_in_executor", "run_coroutine_threadsafe"}

    def starts_thread(path: Path) -> bool:
        calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        return any(getattr(call, "attr", getattr(call, "id", "")) in starts for call in calls)

    found = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if starts_thread(path)}
    assert found == {"_bridge.py"}
