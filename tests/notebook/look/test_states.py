import re

import pytest

from agentbench.notebook.look.states import INK, STATES, line_colour
from agentbench.notebook.look.style import PALETTE, live_style, static_style

FILLED = [style for style in STATES.values() if style.light is not None]


@pytest.mark.parametrize("style", FILLED, ids=lambda style: style.name)
def test_text_on_a_state_can_be_read_in_both_schemes(style):
    assert contrast(style.light, INK["light"]) >= 4.5
    assert contrast(style.dark, INK["dark"]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_rings_stand_out_from_the_ground(scheme):
    colours = PALETTE[scheme]
    for line in ("line", "edge", "accent", "break"):
        assert contrast(colours[line], colours["ground"]) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("style", FILLED, ids=lambda style: style.name)
def test_lines_in_the_colour_of_a_state_stand_out_from_the_ground(style, scheme):
    assert contrast(line_colour(style, scheme), PALETTE[scheme]["ground"]) >= 3


def test_no_two_states_differ_by_colour_alone():
    signs = [(style.sign, style.border) for style in STATES.values()]
    assert len({style.border for style in STATES.values()}) == len(STATES)
    assert len(set(signs)) == len(STATES)
    assert all(bool(style.sign) == bool(style.icon) for style in STATES.values())
    assert [name for name, style in STATES.items() if not style.sign] == ["idle"]


def test_the_style_sheets_hold_every_colour_of_the_table():
    for sheet in (static_style("auto"), live_style()):
        assert all(str(style.light) in sheet and str(style.dark) in sheet for style in FILLED)
        assert not re.search(r"https?:|url\(|@import|expression", sheet)


def test_only_the_panel_moves_and_only_for_those_who_like_it():
    assert "@media (prefers-reduced-motion:reduce)" in live_style()
    for moving in ("animation", "transition", "@keyframes"):
        assert moving in live_style()
        assert moving not in static_style("auto")


def test_a_picture_for_one_theme_holds_no_other():
    assert "prefers-color-scheme" not in static_style("light")
    assert PALETTE["dark"]["ground"] in static_style("dark")
    assert PALETTE["light"]["ground"] not in static_style("dark")


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two six-digit hex colours, from 1 to 21.

    Source: WCAG 2.2, relative luminance and contrast ratio.
    """
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
