"""The states of graph elements and their appearance: a colour and always a sign."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Scheme = Literal["light", "dark"]


@dataclass(frozen=True)
class StateStyle:
    """The appearance of one state: its key, words for screen readers, and fills in light and dark themes, if any.

    In addition to the colour there is always the `sign` in text, the same sign as `icon` (a stroked SVG path around the
    origin, 8 units wide, because fonts lack some signs), and the `border`, described in words.
    """

    name: str
    words: str
    light: str | None
    dark: str | None
    sign: str
    icon: str
    border: str


PAUSE = "M-1.9-2.8V2.8M1.9-2.8V2.8"

# Okabe and Ito's palette: people with the usual colour vision deficiencies can distinguish it. Dark fills: same hues.
STATES: dict[str, StateStyle] = {
    style.name: style
    for style in (
        StateStyle("idle", "idle", None, None, "", "", "thin"),
        StateStyle("queued", "queued", "#56B4E9", "#1F6F9E", "…", "M-3.2 0h0M0 0h0M3.2 0h0", "dotted"),
        StateStyle("running", "running", "#E69F00", "#8A5F00", "▶", "M-1.6-2.7 2.8 0-1.6 2.7z", "thick, slow pulse"),
        StateStyle("done", "done", "#009E73", "#00785A", "✓", "M-3.4.4-1 2.8 3.4-2.6", "solid"),
        StateStyle("ran", "ran before", "#BFE3D6", "#2C5B4C", "·", "M0 0h0", "thin, coloured"),
        StateStyle("waiting", "waiting", "#CC79A7", "#9B4F7C", "‖", PAUSE, "double"),
        StateStyle("failed", "failed", "#D55E00", "#B04A00", "✗", "M-2.7-2.7 2.7 2.7M2.7-2.7-2.7 2.7", "thick dashed"),
        StateStyle("skipped", "skipped", None, None, "\u2013", "M-3 0H3", "grey dashed"),
    )
}

# Text colour on the filled states.
INK: dict[Scheme, str] = {"light": "#111111", "dark": "#FFFFFF"}

# The state of a folded group whose members differ: the most urgent one.
PRECEDENCE = ("failed", "waiting", "running", "queued", "done", "ran", "skipped", "idle")


def strongest(states: Iterable[str]) -> str:
    """Return the strongest of several states, `idle` for none."""
    return min(states, key=PRECEDENCE.index, default="idle")


def line_colour(style: StateStyle, scheme: Scheme) -> str:
    """Return the colour of thin lines in a state that has a fill: the fill of the other scheme.

    Fills are chosen for the text on them; a line of the same colour on the background would be too faint.
    """
    return str(style.dark if scheme == "light" else style.light)
