"""The first page of a site, and the list of its notebooks."""

from __future__ import annotations

import html
import shutil
from pathlib import Path
from string import Template
from urllib.parse import quote

from agentbench.cli.site.tour import live_link, page_name

_FOLDER = Path(__file__).parent


def write_index(site: Path, titles: dict[str, str]) -> None:
    """Write the pages that lead to everything else.

    Args:
        site: The folder of the site.
        titles: The titles of the notebooks by name; the first one is opened from the first page.
    """
    first = next(iter(titles))
    rows = "\n".join(
        f'<li><a href="{quote(page_name(name))}">{html.escape(title)}</a>'
        f' <a class="live" href="{html.escape(live_link(name, start="../"))}">open it live</a></li>'
        for name, title in sorted(titles.items())
    )
    style = (_FOLDER / "index.css").read_text(encoding="utf-8")
    for template, target, facts in (
        ("index.html", "index.html", {"live": html.escape(live_link(first)), "count": str(len(titles))}),
        ("tour.html", "tour/index.html", {"rows": rows}),
    ):
        text = (_FOLDER / template).read_text(encoding="utf-8")
        (site / target).write_text(Template(text).substitute(facts, style=style), encoding="utf-8")
    shutil.copyfile(_FOLDER / "stepper.png", site / "stepper.png")
