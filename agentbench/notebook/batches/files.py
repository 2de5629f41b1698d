"""The scripts and styles of this room, as text."""

from __future__ import annotations

from pathlib import Path

from agentbench.notebook.look.style import live_style, read_script

_STATIC = Path(__file__).parent / "static"


def read_files(*names: str) -> str:
    """Return some of the files of this room, concatenated."""
    return "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in names)


def explore_script() -> str:
    """Return the script of a map: a module, in which the script of graphs is one value."""
    graph = read_script("svg.js", "graph_panel.js").replace("export default", "return")
    return f"const graph = (() => {{\n{graph}\n}})();\n{read_script('dom.js')}{read_files('rows.js', 'explore.js')}"


def explore_style() -> str:
    """Return the style of a map."""
    return live_style() + read_files("batch.css", "weights.css", "explore.css")
