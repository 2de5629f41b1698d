"""Pictures as PNG and PDF, for untrusted notebooks, for pages that do not support SVG, and for print."""

import functools
import html
import importlib.util
import io
import re
from pathlib import Path

from agentbench._extras import not_in_browser, require
from agentbench.exceptions import MissingExtraError
from agentbench.notebook.runtime import settings

# Limits the cost of storing the picture twice to about 50 ms and 60 KB.
_MOST_PIXELS = 400_000

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_DARK_BLOCK = re.compile(r"@media[^{]*\{[^{}]*\{[^{}]*\}\}")
_STATE = re.compile(r"\.(ab_s_\w+)\{(--ab-now:[^}]*)\}")
_ANY_STATE = '[class*=" ab_s_"]'
_COLOUR = re.compile(r"--([\w-]+):([^;}]+);?")
_USE = re.compile(r"var\(--([\w-]+)(?:,([^()]*))?\)")


def small_png(svg: str) -> bytes | None:
    """Return a small picture as PNG, to save it with its SVG; None if it is large or `static_png=False`."""
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    pixels = float(size[1]) * float(size[2]) if size else 0
    if not settings.current().static_png or not 0 < pixels <= _MOST_PIXELS:
        return None
    try:
        return svg_to_png(svg, 1)  # pages display it pixel by pixel
    except (MissingExtraError, ValueError):
        return None  # the SVG is sufficient


@functools.lru_cache(maxsize=32)  # many cells show the same picture
def svg_to_png(svg: str, scale: float) -> bytes:
    """Convert one of our pictures to PNG, in the colours of its theme; `ValueError` for an invalid scale."""
    not_in_browser("PNG and PDF", reason="resvg_py has no version for browsers", instead="Save the picture as SVG.")
    resvg = require("resvg_py", extra="notebook", purpose="write a PNG")
    matplotlib = importlib.util.find_spec("matplotlib")  # provides a font, so that pictures are the same everywhere
    fonts = Path(str(matplotlib.origin)).parent / "mpl-data" / "fonts" / "ttf" if matplotlib else None
    files = [str(fonts / f"DejaVuSans{weight}.ttf") for weight in ("", "-Bold")] if fonts else []
    family = dict.fromkeys(("font_family", "sans_serif_family"), "DejaVu Sans") if files else {}
    plain = _STYLE.sub(lambda match: f"<style>{html.escape(_resolve(html.unescape(match[1])))}</style>", svg)
    return bytes(resvg.svg_to_bytes(plain, zoom=scale, skip_system_fonts=bool(files), font_files=files, **family))


def png_to_pdf(png: bytes) -> bytes:
    """Convert a PNG of scale 4 to a PDF with one page of the size of the picture."""
    image, page = require("PIL.Image", extra="notebook", purpose="write a PDF"), io.BytesIO()
    image.open(io.BytesIO(png)).convert("RGB").save(page, "PDF", resolution=4 * 72, quality=95)
    return page.getvalue()


def _resolve(css: str) -> str:
    """Return a style sheet without variables and attribute selectors, which resvg does not support."""
    css = _DARK_BLOCK.sub("", css)
    own = {name: dict(_COLOUR.findall(colours)) for name, colours in _STATE.findall(css)}
    common = dict(_COLOUR.findall(_STATE.sub("", css)))
    rules = []
    for rule in _COLOUR.sub("", _STATE.sub("", css)).split("}"):
        for name in dict.fromkeys(re.findall(r"ab_s_\w+", css)) if _ANY_STATE in rule else [""]:
            changed, colours = rule.replace(_ANY_STATE, f".{name}"), common | own.get(name, {})
            while _USE.search(changed):
                changed = _USE.sub(lambda use, known=colours: known.get(use[1], use[2] or "none"), changed)  # type: ignore[misc]
            rules.append(changed)
    return "}".join(rules)
