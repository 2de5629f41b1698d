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
    return set(done.stdout.splitlines()[-1].split())


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


GRAPHS = "import agentbench.notebook as front; from tests.notebook.graphs import chain, research;"
LIGHT = """
front.configure(deterministic=True)
front.to_python(research())
front.progress(chain("ab").start("x")).wait()
front.stepper(chain("ab"), "x").run()
"""
WIDGETS = {"IPython", "anywidget", "ipywidgets", "traitlets"}


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import agentbench; import agentbench.notebook", set()),
        (f"{GRAPHS} {LIGHT}", set()),
        (f"{GRAPHS} assert '<svg' in front.draw(research()).svg", {"graphviz"}),
        (f"{GRAPHS} front.checkpoints_frame(research().start('x'))", {"pandas", "numpy"}),
        (f"{GRAPHS} front.form(int)._repr_mimebundle_()", WIDGETS),
        (f"{GRAPHS} front.stepper(chain('ab'), 'x')._repr_mimebundle_()", WIDGETS | {"graphviz"}),
    ],
)
def test_only_what_is_used_is_loaded(code: str, loaded: set[str]):
    assert loaded_after(code) == loaded


def test_a_star_import_brings_every_name():
    namespace: dict[str, object] = {}
    exec("from agentbench.notebook import *", namespace)
    assert front._MODULE_OF.keys() <= namespace.keys()
