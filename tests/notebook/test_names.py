"""The lazy front of the notebook layer."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import agentbench.notebook as front

HEAVY = ["IPython", "ipywidgets", "anywidget", "pandas", "numpy", "graphviz", "matplotlib", "altair", "traitlets"]
NEST = ["nest_asyncio", "nest_asyncio2"]


def loaded_after(code: str) -> set[str]:
    """Names of the heavy packages that a fresh process holds after some code."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY + NEST} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def test_both_tables_name_the_same_things():
    tree = ast.parse(Path(str(front.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed: dict[str, str] = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        module = str(statement.module).removeprefix("agentbench.notebook.")
        for alias in statement.names:
            assert alias.asname == alias.name
            typed[alias.name] = module
    assert typed == front._MODULE_OF
    assert list(front._MODULE_OF) == sorted(front._MODULE_OF)


@pytest.mark.parametrize("name", sorted(front._MODULE_OF))
def test_every_name_is_there(name: str):
    assert getattr(front, name) is not None
    assert name in dir(front)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        front.nothing  # noqa: B018 - reading it is the test


def test_the_front_alone_loads_nothing_heavy():
    assert loaded_after("import agentbench.notebook") == set()


def test_settings_load_nothing_heavy():
    assert loaded_after("from agentbench.notebook import configure; configure(deterministic=True)") == set()


def test_drawing_loads_graphviz_only():
    code = (
        "from agentbench.notebook import draw\n"
        "from tests.notebook.graphs import research\n"
        "assert '<svg' in draw(research()).svg"
    )
    assert loaded_after(code) == {"graphviz"}


def test_a_star_import_brings_every_name():
    namespace: dict[str, object] = {}
    exec("from agentbench.notebook import *", namespace)
    assert front._MODULE_OF.keys() <= namespace.keys()
