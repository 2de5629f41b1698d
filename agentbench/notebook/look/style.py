"""The style sheets of graphs and views: rules from `static/*.css`, colours from here and from the table of states."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from agentbench.notebook.look.states import INK, STATES, Scheme, line_colour

__all__ = ["PALETTE", "css_variables", "live_style", "read_script", "read_static", "static_style"]

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

# What a page says about its own colours, JupyterLab before VS Code; ours where it says nothing.
_PAGE = {
    "ground": ("--jp-layout-color0", "--vscode-editor-background"),
    "rim": ("--jp-border-color2", "--vscode-panel-border"),
    "surface": ("--jp-layout-color1", "--vscode-editorWidget-background"),
    "text": ("--jp-ui-font-color1", "--vscode-foreground"),
}

# Pages that say their theme themselves; elsewhere the browser's preference counts.
_LIGHT = "[data-jp-theme-light=true],.vscode-light"
_DARK = "[data-jp-theme-light=false],.vscode-dark"


def static_style(theme: str, *, states: bool = True) -> str:
    """Return the style of a standalone picture, where no style of the page reaches.

    `auto` is light, and dark where the reader's browser prefers it. Without states the style is half as long.
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
    light, dark = _variables("light", own=True), _variables("dark", own=True)
    page = "".join(f"--ab-{name}:var({lab},var({code},var(--ab-{name}-own)));" for name, (lab, code) in _PAGE.items())
    colours = (
        f".ab_panel{{{light}}}@media (prefers-color-scheme:dark){{:root:not(:has({_LIGHT})) .ab_panel{{{dark}}}}}"
        f":is({_DARK}) .ab_panel{{{dark}}}.ab_panel{{{page}}}"
    )
    rules = read_static("graph.css") + _fills() + read_static("graph_states.css") + read_static("graph_panel.css")
    return (colours + rules).replace(": ", ":").replace(";}", "}")


@functools.cache
def read_static(name: str) -> str:
    """Return one of this layer's own style sheets without comments and needless blanks."""
    text = re.sub(r"/\*.*?\*/", "", read_script(name), flags=re.DOTALL)
    return re.sub(r"\s*([{};,>])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def read_script(*names: str) -> str:
    """Return this layer's own files as they are, one after another."""
    return "\n".join((Path(__file__).parent / "static" / name).read_text(encoding="utf-8") for name in names)


def css_variables(scheme: Scheme, colours: Mapping[str, str]) -> str:
    """Return the declarations of the colours of a scheme, as CSS variables; `colours` are further ones."""
    fills = {name: state.light if scheme == "light" else state.dark for name, state in STATES.items() if state.light}
    every = {**PALETTE[scheme], **colours, **fills, "ink": INK[scheme]}
    return "".join(f"--{name}:{colour};" for name, colour in every.items())


def _variables(scheme: Scheme, *, own: bool = False) -> str:
    """Return the colours as variables that begin with `ab`; with `own` those that pages have too end with that."""
    lines = {f"{name}-line": line_colour(state, scheme) for name, state in STATES.items() if state.light}
    text = css_variables(scheme, lines).replace("--", "--ab-")
    return re.sub(rf"--ab-({'|'.join(_PAGE)}):", r"--ab-\1-own:", text) if own else text


def _fills() -> str:
    """Each state's colours as `--ab-now` and `--ab-far`, which the rules of `graph_states.css` use."""
    filled = [name for name, state in STATES.items() if state.light is not None]
    return "".join(f".ab_s_{name}{{--ab-now:var(--ab-{name});--ab-far:var(--ab-{name}-line)}}" for name in filled)
