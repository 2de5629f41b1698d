"""The static content of a form, without the typed texts: titles, fields and buttons, in the page's format.

Every text goes through `esc`, and the page writes it with `textContent`: nothing here becomes markup.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentbench._text.escape import PREVIEW_LIMIT, esc
from agentbench._text.redact import preview
from agentbench.notebook.forms.fields import NO_VALUE, Raw
from agentbench.notebook.forms.text_values import FILE_LIMIT
from agentbench.notebook.forms.values import ValuePlace
from agentbench.notebook.runtime.bundles import display_of

# Up to four options are a row of buttons; more than thirty are searched, not listed.
BUTTONS = 4
_LISTED = 30
# Groups below this depth are folded at first.
_DEEP = 3

Node = dict[str, Any]


@dataclass(frozen=True)
class Action:
    """A button that ends a form."""

    name: str
    label: str
    sets: Mapping[str, Raw]
    """Raw texts by path that replace those of the fields when it is pressed; the fields do not change."""
    tone: str = "plain"
    reveals: str | None = None
    """A field that stays hidden until this button is pressed; then the button disappears."""
    if_changed: str = ""
    """The label once a revealed field was changed."""


@dataclass(frozen=True)
class FormContent:
    """Everything on a form except the typed texts; its name contains no values."""

    name: str
    title: str
    actions: tuple[Action, ...]
    prompt: str = ""
    context: str = ""
    objects: tuple[tuple[str, object], ...] = ()
    """Displays below the context, as in a cell, by name."""
    deadline: datetime | None = None
    hidden: frozenset[str] = frozenset()
    """Fields that only buttons set."""
    waits: bool = False
    """Whether a run waits for the answer."""
    chooses: bool = False
    """Whether the whole answer is one of several options."""
    as_json: bool = False
    as_message: bool = False
    """Whether the answer is a message, or several."""

    @property
    def deadline_text(self) -> str | None:
        """The deadline as readable text."""
        return None if self.deadline is None else f"{self.deadline:%Y-%m-%d %H:%M:%S} UTC"

    def page(self) -> dict[str, Any]:
        """Return the content of the page without the fields, as JSON values."""
        displays = [(name, value, display_of(value)) for name, value in self.objects]
        texts = [self.context, *(object_text(name, value) for name, value, found in displays if found is None)]
        return {
            "title": line(self.title),
            "prompt": esc(self.prompt, into="text"),
            "context": esc("\n".join(filter(None, texts)), into="text"),
            "displays": [(line(name), *found) for name, _, found in displays if found],
            "cut": [part for part in ("prompt", "context") if len(getattr(self, part)) > PREVIEW_LIMIT],
            "deadline": None if self.deadline is None else self.deadline.timestamp(),
            "deadlineText": self.deadline_text,
            "waits": self.waits,
            "json": self.as_json,
            "actions": [{"name": each.name, "tone": each.tone, "reveals": each.reveals} for each in self.actions],
        }

    def labels(self, root: ValuePlace) -> list[str]:
        """Return the labels of the buttons; they reflect whether a value was changed."""
        edited = next((root.find(each.reveals) for each in self.actions if each.reveals), None)
        changed = edited is not None and edited.touched and edited.text != edited.field.suggestion
        return [line(each.if_changed if changed and each.if_changed else each.label, 60) for each in self.actions]

    def nodes(self, root: ValuePlace) -> list[Node]:
        """Return the fields in the page's format; an outermost plain group has no frame."""
        places = [root] if root.key else root.children
        return [self._node(place, 1) for place in places if place.key not in self.hidden]

    def _node(self, place: ValuePlace, depth: int, label: str = "") -> Node:
        """Return the node of one place and all below it; `label` is for places without a name of their own."""
        field = place.field
        label = field.label or label
        reveals = any(each.reveals == place.key for each in self.actions) and not place.touched
        # An empty number is omitted, so it needs no checkbox.
        by_button = any(place.path in each.sets and each.sets[place.path] is None for each in self.actions)
        has_none = not by_button and (field.nullable or (field.omits and (not field.is_leaf or field.kind == "text")))
        node: Node = {
            "kind": field.kind,
            "path": place.key,
            "label": line(label),
            "help": line(field.help, 300),
            "optional": not field.required and field.default is NO_VALUE and not reveals,
            "none": {"label": "none" if field.nullable else "not set", "on": place.is_none} if has_none else None,
            "hiddenAtFirst": reveals,
        }
        if field.is_leaf or field.kind == "const":
            return {**node, **self._leaf(place)}
        inside = [] if field.kind == "union" and place.is_none else place.children
        if field.kind == "group":
            inside = [each for each in inside if not _repeats_its_tag(place, each)]
            node |= {"closed": place.is_closed, "folded": depth > _DEEP and not place.touched}
        elif field.kind == "union":
            control = "toggle" if len(field.labels) <= BUTTONS else "select"
            labels = [line(each, 80) for each in field.labels]
            node |= {"kind": "oneof", "options": labels, "picked": field.labels.index(place.picked), "control": control}
        elif field.item is not None:
            item = field.item()
            lines = item.kind == "text" and not item.secret
            node |= {"kind": "rows", "most": field.most, "lines": lines}
        children = []
        for at, each in enumerate(inside, 1):
            name = f"{label} {at}" if field.item else each.name.capitalize() if field.kind == "pair" else each.name
            children.append(self._node(each, depth + (field.kind != "union"), name))
        return {**node, "children": children}

    def _leaf(self, place: ValuePlace) -> Node:
        field = place.field
        return {
            "kind": "leaf",
            "control": self._control(place),
            "inputmode": ("numeric" if field.makes is int else "decimal") if field.kind == "number" else None,
            # The page sends back the position, because a label may be shortened here.
            "options": [line(option.label) for option in field.options],
            "other": field.allow_other,
            "maxLength": field.max_length,
            "counts": field.kind == "text" and (field.multiline or field.max_length is not None),
            "suggestion": field.suggestion,
            "zone": field.zone,
            "limit": FILE_LIMIT if field.kind == "file" else None,
            "kept": place.is_unchanged and place.text is NO_VALUE,
        }

    def _control(self, place: ValuePlace) -> str:
        field = place.field
        if field.kind == "choice":
            if len(field.options) > _LISTED:
                return "combo"
            if self.chooses:
                return "radio"
            if place.value is not NO_VALUE and not field.nullable and [o.value for o in field.options] == [True, False]:
                return "check"
            return "select" if len(field.options) > BUTTONS else "toggle"
        if field.secret:
            return "password"
        if field.kind not in ("text", "number"):
            return field.kind
        # A single-line field would drop line breaks.
        texts = (place.text, place.value) if field.kind == "text" else ()
        tall = any(isinstance(text, str) and not {"\n", "\r"}.isdisjoint(text) for text in texts)
        return "area" if field.multiline or tall else "line"


def object_text(name: str, value: object) -> str:
    """Return an object of a question as text, where it is not displayed."""
    return f"{name}: {preview(value)}" if name else preview(value)


def line(text: str, limit: int = 200) -> str:
    """Return a text as one line for the page."""
    return esc(text, into="line", limit=limit)


def _repeats_its_tag(group: ValuePlace, below: ValuePlace) -> bool:
    """Whether a constant repeats the chosen type of a union."""
    is_member = group.parent is not None and group.parent.field.kind == "union"
    return is_member and below.field.kind == "const" and below.field.options[0].label in (group.name, f'"{group.name}"')
