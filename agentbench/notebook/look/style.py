"""The style sheets of graphs and views: rules from `static/*.css`, colours from here and from the table of states."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from agentbench.notebook.look.states import INK, STATES, Scheme, line_colour

_COLOURS = {  # in light and dark
    "ground": ("#FBFBFC", "#1E1F22"),
    "rim": ("#D0D7DE", "#3D4046"),
    "surface": ("#FFFFFF", "#2B2D31"),
    "line": ("#57606A", "#A0A6AD"),
    "edge": ("#6E7781", "#9198A1"),
    "text": ("#1F2328", "#F0F0F0"),
    "muted": ("#57606A", "#B0B6BD"),
    "accent": ("#0B57D0", "#8AB4F8"),
    "break": ("#C21A1A", "#FF6B6B"),
}
PALETTE: dict[Scheme, dict[str, str]] = {
    "light": {name: light for name, (light, _) in _COLOURS.items()},
    "dark": {name: dark for name, (_, dark) in _COLOURS.items()},
}

# Colour variables of the page, JupyterLab's before VS Code's; ours are the fallback.
_PAGE = {
    "ground": ("--jp-layout-color0", "--vscode-editor-background"),
    "rim": ("--jp-border-color2", "--vscode-panel-border"),
    "surface": ("--jp-layout-color1", "--vscode-editorWidget-background"),
    "text": ("--jp-ui-font-color1", "--vscode-foreground"),
}


def static_style(theme: str, *, states: bool = True) -> str:
    """Return the style of a standalone picture, which page styles do not affect.

    `auto` follows the reader's browser. Without states the style is half as long.
    """
    first: Scheme = "dark" if theme == "dark" else "light"
    parts = [f".ab_{theme}{{{_variables(first)}}}"]
    if theme == "auto":
        parts.append(f"@media (prefers-color-scheme:dark){{.ab_auto{{{_variables('dark')}}}}}")
    parts.append(read_static("graph.css"))
    return "".join([*parts, _fills(), read_static("graph_states.css")] if states else parts)


@functools.cache
def live_style() -> str:
    """Return the style of a graph panel. It follows the page's theme: JupyterLab's, VS Code's, or the browser's."""
    light, dark = _colours("light", _lines("light")), _colours("dark", _lines("dark"))
    colours = {name: f"light-dark({light[name]},{dark[name]})" for name in light}
    colours |= {name: f"var({lab},var({code},{colours[name]}))" for name, (lab, code) in _PAGE.items()}
    rules = read_static("graph.css") + _fills() + read_static("graph_states.css") + read_static("graph_panel.css")
    panel = ".ab_panel{" + "".join(f"--ab-{name}:{colour};" for name, colour in colours.items()) + "}"
    return (read_static("theme.css") + panel + rules).replace(": ", ":").replace(";}", "}")


@functools.cache
def read_static(name: str) -> str:
    """Return one of this layer's style sheets without comments and unnecessary whitespace."""
    text = re.sub(r"/\*.*?\*/", "", read_script(name), flags=re.DOTALL)
    return re.sub(r"\s*([{};,>])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def read_script(*names: str) -> str:
    """Return some of this layer's files, concatenated: all scripts form one module of a page."""
    return "\n".join((Path(__file__).parent / "static" / name).read_text(encoding="utf-8") for name in names)


def css_variables(scheme: Scheme, more: Mapping[str, str]) -> str:
    """Return the declarations of the colours of a scheme, and of `more`, as CSS variables."""
    return "".join(f"--{name}:{colour};" for name, colour in _colours(scheme, more).items())


def _colours(scheme: Scheme, more: Mapping[str, str]) -> dict[str, str]:
    filled = [state for state in STATES.values() if state.light]
    fills = {state.name: str(state.light if scheme == "light" else state.dark) for state in filled}
    return {**PALETTE[scheme], **more, **fills, "ink": INK[scheme]}


def _lines(scheme: Scheme) -> dict[str, str]:
    return {f"{name}-line": line_colour(state, scheme) for name, state in STATES.items() if state.light}


def _variables(scheme: Scheme) -> str:
    """Return the colours of graphs as variables with the prefix `ab`."""
    return css_variables(scheme, _lines(scheme)).replace("--", "--ab-")


def _fills() -> str:
    """Return each state's colours as `--ab-now` and `--ab-far`, used by the rules of `graph_states.css`."""
    filled = [name for name, state in STATES.items() if state.light is not None]
    return "".join(f".ab_s_{name}{{--ab-now:var(--ab-{name});--ab-far:var(--ab-{name}-line)}}" for name in filled)
