"""The card of the notebook settings: all of them in a table."""

from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.runtime.settings import Settings


def settings_bundle(settings: Settings) -> dict[str, str]:
    """Return the views of the settings by media type."""
    rows = [
        (name, "auto" if value is None else repr(value).strip("'"), "changed" if name in settings.changed else "")
        for name, value in vars(settings).items()
    ]
    return Page("Settings", tables=[Table("configure()", ("setting", "value", ""), rows)]).bundle()
