"""The scripts and styles of all panels are small; they write no markup and load nothing."""

from pathlib import Path

import pytest

import agentbench.notebook

FILES = sorted(Path(str(agentbench.notebook.__file__)).parent.rglob("static/*.[cj]s*"))
#: It shows the HTML of ipywidgets, and loads the modules that its kernel sends.
HOST = "one_widget.js"
#: The most KiB that the scripts and styles of a folder may have.
LIMITS = {"batches": 32, "chat_panel": 12, "forms": 48, "look": 44, "run_list": 8, "runtime": 8, "stepping": 64}


@pytest.mark.parametrize("path", [path for path in FILES if path.name != HOST], ids=lambda path: path.name)
def test_a_script_or_style_writes_no_markup_and_loads_nothing(path: Path):
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")  # a name, no address
    for sign in ("http:", "https:", "//cdn", "@import url", "import(", "fetch(", "eval(", "document.write"):
        assert sign not in text
    for sign in ("innerHTML", "outerHTML", "insertAdjacentHTML"):
        assert sign not in text


def test_scripts_and_styles_stay_small():
    folders = {path.parent.parent.name for path in FILES}
    sizes = {name: sum(path.stat().st_size for path in FILES if path.parent.parent.name == name) for name in folders}
    assert {name: size // 1024 for name, size in sizes.items() if size > LIMITS[name] * 1024} == {}
