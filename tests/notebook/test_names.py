"""The lazy front of the notebook layer."""

import inspect
import subprocess
import sys

import pytest

import agentbench.notebook as front

HEAVY = ["IPython", "ipywidgets", "anywidget", "pandas", "numpy", "graphviz", "matplotlib", "altair", "traitlets"]
NEST = ["nest_asyncio", "nest_asyncio2"]


def loaded_after(code: str) -> set[str]:
    """Names of the heavy packages that a fresh process holds after some code."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY + NEST} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.splitlines()[-1].split())


def test_completion_lists_public_functions_and_classes_only():
    for name in front.__all__:
        getattr(front, name)
    shown = [name for name in dir(front) if not name.startswith("__")]
    assert shown == front.__all__
    assert not [name for name in shown if inspect.ismodule(getattr(front, name))]


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
    assert set(front.__all__) <= namespace.keys()
