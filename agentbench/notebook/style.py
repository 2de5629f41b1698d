"""The style sheets of graphs and views: rules from `static/*.css`, colours from here and from the table of states."""

import functools
import re
from pathlib import Path

from agentbench.notebook.states import INK, STATES, Scheme

__all__ = ["PALETTE", "live_style", "read_static", "static_style"]

PALETTE: dict[Scheme, dict[str, str]] = {
    "light": {
        "ground": "#FBFBFC",
        "rim": "#D0D7DE",
        "surface": "#FFFFFF",
        "line": "#57606A",
        "edge": "#6E7781",
        "text": "#1F2328",
        "muted": "#57606A",
        "accent": "#0B57D0",
        "break": "#C21A1A",
    },
    "dark": {
        "ground": "#1E1F22",
        "rim": "#3D4046",
        "surface": "#2B2D31",
        "line": "#A0A6AD",
        "edge": "#9198A1",
        "text": "#F0F0F0",
        "muted": "#B0B6BD",
        "accent": "#8AB4F8",
        "break": "#FF6B6B",
    },
}

# What a page says about its own colours, JupyterLab before VS Code; the value behind the last comma is ours.
_PAGE = {
    "ground": "var(--jp-layout-color0,var(--vscode-editor-background,{}))",
    "rim": "var(--jp-border-color2,var(--vscode-panel-border,{}))",
    "surface": "var(--jp-layout-color1,var(--vscode-editorWidget-background,{}))",
    "text": "var(--jp-ui-font-color1,var(--vscode-foreground,{}))",
}


def static_style(theme: str, *, states: bool = True) -> str:
    """Return the style of a picture that stands alone, where no style of the page reaches.

    Args:
        theme: `light`, `dark`, or `auto`: light, and dark where the reader's browser prefers it.
        states: Whether states are shown; without them the style is half as long.
    """
    first: Scheme = "dark" if theme == "dark" else "light"
    parts = [f".ab_svg{{{_variables(first)}}}"]
    if theme == "auto":
        parts.append(f"@media (prefers-color-scheme:dark){{.ab_svg{{{_variables('dark')}}}}}")
    parts.append(read_static("graph.css"))
    return "".join([*parts, _fills(), read_static("graph_states.css")] if states else parts)


@functools.cache
def live_style() -> str:
    """Return the style of a graph panel. It follows the page's theme: JupyterLab's, VS Code's, or the browser's."""
    light, dark = (_variables(scheme, page=True) for scheme in ("light", "dark"))
    return "".join(
        [
            f".ab_panel{{{light}}}",
            f"@media (prefers-color-scheme:dark){{.ab_panel{{{dark}}}}}",
            f"[data-jp-theme-light=true] .ab_panel,.vscode-light .ab_panel{{{light}}}",
            f"[data-jp-theme-light=false] .ab_panel,.vscode-dark .ab_panel{{{dark}}}",
            read_static("graph.css"),
            _fills(),
            read_static("graph_states.css"),
            read_static("graph_panel.css"),
        ]
    )


@functools.cache
def read_static(name: str) -> str:
    """Return one of this layer's own style sheets without comments and needless blanks."""
    text = (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s*([{};,>])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def _variables(scheme: Scheme, *, page: bool = False) -> str:
    colours = {
        name: _PAGE[name].format(colour) if page and name in _PAGE else colour
        for name, colour in PALETTE[scheme].items()
    }
    colours["ink"] = INK[scheme]
    for state in STATES.values():
        fill = state.light if scheme == "light" else state.dark
        if fill is not None:
            colours[state.name] = fill
    return "".join(f"--ab-{name}:{colour};" for name, colour in colours.items())


def _fills() -> str:
    """Rules that give each state its colour: the shape, its mark, its ring, and edges."""
    rules = []
    for name, state in STATES.items():
        if state.light is None:
            continue
        at = f".ab_svg .ab_s_{name}"
        rules += [
            f"{at}.ab_node>.ab_shape,{at} .ab_mark circle{{fill:var(--ab-{name})}}",
            f"{at}.ab_frame>.ab_shape{{stroke:var(--ab-{name})}}",
            f"{at}.ab_node>text{{fill:var(--ab-ink)}}",
            f"{at} .ab_mark path,{at} .ab_icon{{stroke:var(--ab-ink)}}",
            f"{at} .ab_wire,{at} .ab_tip{{stroke:var(--ab-{name})}}",
            f"{at} .ab_tip{{fill:var(--ab-{name})}}",
        ]
    return "".join(rules)
