"""Common parts of the SVG plots: the frame, colours, small signs.

Signs are drawn as shapes, because many systems have no font with a pause sign.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agentbench._text.escape import esc
from agentbench.notebook.look.states import Scheme
from agentbench.notebook.look.style import css_variables
from agentbench.notebook.runtime import settings

FONT_SIZE = 13.0
SMALL = 12.0

# Removed and added words: the hues of failed and done, readable as text.
_WORDS: dict[Scheme, dict[str, str]] = {
    "light": {"gone": "#A63D00", "new": "#00614A"},
    "dark": {"gone": "#FF9D5C", "new": "#4FD1A5"},
}


def picture(
    parts: Iterable[str], *, width: float, height: float, title: str, description: str, rules: Sequence[str] = ()
) -> str:
    """Return a standalone SVG of escaped elements, light or dark by the reader's preference or `configure(theme=...)`.

    `rules` are additional CSS rules; colours are variables such as `var(--text)` and `var(--done)`.
    """
    theme = settings.current().theme
    first: Scheme = "dark" if theme == "dark" else "light"
    dark = f"@media (prefers-color-scheme:dark){{.ab_plot{{{css_variables('dark', _WORDS['dark'])}}}}}"
    style = (
        f".ab_plot{{{css_variables(first, _WORDS[first])}font-size:{FONT_SIZE:g}px;"
        "font-family:Helvetica,Arial,sans-serif;"
        f"font-variant-numeric:tabular-nums;max-width:100%;height:auto}}{dark if theme == 'auto' else ''}"
        ".ab_plot text{fill:var(--text)}.ab_plot .ab_soft{fill:var(--muted)}"
        f".ab_plot .ab_small{{font-size:{SMALL:g}px}}.ab_plot .ab_strong{{font-weight:bold}}"
        ".ab_plot .ab_ground{fill:var(--ground);stroke:var(--rim)}" + "".join(rules)
    )
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ab_plot" {size} role="img">'
        f"<title>{esc(title, into='svg', limit=200)}</title><desc>{esc(description, into='svg', limit=4000)}</desc>"
        f"<style>{style}</style>"
        f'<rect class="ab_ground" x="0.5" y="0.5" width="{number(width - 1)}" height="{number(height - 1)}" rx="8"/>'
        + "".join(parts)
        + "</svg>\n"
    )


def text(x: float, y: float, content: object, *, anchor: str = "start", classes: str = "") -> str:
    """Return a line of text, escaped; `y` is its middle."""
    at = f'x="{number(x)}" y="{number(y + 4.5)}"'
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    kind = f' class="{classes}"' if classes else ""
    return f"<text {at}{side}{kind}>{esc(content, into='svg', limit=300)}</text>"


def rect(classes: str, x: float, y: float, width: float, height: float, *, title: str = "") -> str:
    """Return a rectangle with a tooltip; empty if it has no size."""
    if width <= 0 or height <= 0:
        return ""
    inside = f"><title>{esc(title, into='svg', limit=400)}</title></rect>" if title else "/>"
    return f'<rect class="{classes}" {_place(x, y, width, height)}{inside}'


def _place(x: float, y: float, width: float, height: float) -> str:
    return f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'


def hatch_pattern(name: str, size: float) -> str:
    """Return the pattern that `hatch` fills rectangles with; its class has the same name."""
    line = f'<line class="{name}" x1="0" y1="0" x2="0" y2="{number(size)}"/>'
    box = f'width="{number(size)}" height="{number(size)}" patternUnits="userSpaceOnUse"'
    return f'<defs><pattern id="{name}" {box} patternTransform="rotate(45)">{line}</pattern></defs>'


def hatch(name: str, x: float, y: float, width: float, height: float) -> str:
    """Hatch an already drawn rectangle."""
    return f'<rect {_place(x, y, width, height)} fill="url(#{name})" pointer-events="none"/>'


def pause_sign(x: float, y: float, size: float) -> str:
    """Return two bars on a filled square, centred at (x, y)."""
    half, bar = size / 2, size * 0.16
    bars = [rect("ab_ink", x + side * size * 0.17 - bar / 2, y - size / 4, bar, half) for side in (-1, 1)]
    return f'<rect {_place(x - half, y - half, size, size)} rx="3" class="ab_wait"/>{"".join(bars)}'


def legend(x: float, y: float, signs: Mapping[str, Callable[[float, float], str]]) -> Iterator[str]:
    """Yield signs with their names, from left to right; each is 18 by 12 points, drawn from its upper left corner."""
    for name, sign in signs.items():
        yield sign(x, y - 6) + text(x + 24, y, name, classes="ab_soft ab_small")
        x += 24 + room_for(name, SMALL) + 16


def cut_to_width(content: str, room: float, size: float = FONT_SIZE) -> str:
    """Return the part of a text that fits, with `…` if it was cut."""
    # No letter is narrower than this, so the rest of a long text need not be measured.
    most = max(1, int(room / (0.25 * size)))
    if len(content) <= most and room_for(content, size) <= room:
        return content
    fitting = (end for end in range(min(len(content), most), 1, -1) if room_for(content[:end] + "…", size) <= room)
    return content[: next(fitting, 1)] + "…"


def round_up(value: float) -> int:
    """Return the next larger of 1, 2, 5, 10, 20, 50 …, for axes."""
    power = 1
    while 5 * power < value:
        power *= 10
    return next(factor * power for factor in (1, 2, 5) if factor * power >= value)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal place."""
    return f"{value:.1f}".removesuffix(".0")


def room_for(text: str, size: float) -> float:
    """Return the width of a line of text in the widest common font (DejaVu Sans), in points."""
    return 1.13 * text_width(text, size)


def text_width(text: str, size: float) -> float:
    """Estimate the width of a line of Helvetica text, in points."""
    units = 0.0
    for char in text:
        if char in "fijlrtI.,:;'|!()[] ":
            units += 0.3
        elif unicodedata.east_asian_width(char) in "WF":
            units += 1.0
        else:
            units += 0.85 if char in "mwMW@%" else 0.67 if char.isupper() else 0.56
    return units * size
