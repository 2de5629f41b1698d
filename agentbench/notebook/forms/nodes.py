"""Fields as the page needs them: plain JSON values about each place of a form, without the typed texts.

Every text goes through `esc`, and the page writes it with `textContent`: nothing here becomes markup.
"""

from dataclasses import dataclass
from typing import Any

from agentbench.notebook.forms.fields.field import NO_VALUE, FormField
from agentbench.notebook.forms.text_values.special import FILE_LIMIT
from agentbench.notebook.forms.values.drafts import ConstDraft, Draft, LeafDraft
from agentbench.notebook.forms.values.groups import GroupDraft, OneOfDraft
from agentbench.notebook.forms.values.rows import ManyDraft, PairDraft
from agentbench.notebook.text.escape import esc

__all__ = ["Nodes"]

# Up to four options are a row of buttons; more than thirty are searched, not listed.
BUTTONS = 4
LISTED = 30
_DEEP = 3

Node = dict[str, Any]


@dataclass(frozen=True)
class Nodes:
    """Makes the page's description of drafts.

    Attributes:
        radio: Whether the whole form is one choice of many, displayed as a list.
        revealed: Keys of the places that a button opens.
        hidden: Keys of the places that only buttons set.
    """

    radio: bool = False
    revealed: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    def top(self, root: Draft[Any]) -> list[Node]:
        """Return the nodes of the form, from top to bottom; a plain group around all needs no frame."""
        if isinstance(root, GroupDraft) and not root.shape.nullable:
            return [self.node(draft, 1) for _, draft in root.children() if draft.key not in self.hidden]
        return [] if root.key in self.hidden else [self.node(root, 1)]

    def node(self, draft: Draft[Any], depth: int, label: str = "") -> Node:
        """Return the node of one place and all below it; `label` is for places without a name of their own."""
        shape = draft.shape
        # The shape of a pair is that of all pairs.
        label = label if isinstance(draft, PairDraft) else shape.label or label
        node: Node = {
            "path": draft.key,
            "label": esc(label, into="line", limit=200),
            "help": esc(shape.help, into="line", limit=300),
            "optional": not shape.required and shape.default is NO_VALUE and draft.key not in self.revealed,
            "none": None if isinstance(draft, PairDraft) else self._none(draft),
            "hiddenAtFirst": draft.key in self.revealed,
        }
        if isinstance(draft, LeafDraft):
            return {**node, **self._leaf(draft, label)}
        if isinstance(draft, ConstDraft):
            return {**node, "kind": "const", "text": esc(draft.shape.text, into="line", limit=200)}
        if isinstance(draft, GroupDraft):
            inside = [self.node(each, depth + 1) for _, each in draft.children() if not _repeats_its_tag(draft, each)]
            folded = depth > _DEEP and not draft.touched
            return {**node, "kind": "group", "closed": draft.closed, "folded": folded, "children": inside}
        if isinstance(draft, OneOfDraft):
            return {**node, **self._one_of(draft, depth, label)}
        if isinstance(draft, PairDraft):
            pair = [self.node(draft.name, depth + 1, "Key"), self.node(draft.item, depth + 1, "Value")]
            return {**node, "kind": "pair", "help": "", "children": pair}
        assert isinstance(draft, ManyDraft)
        return {**node, **self._many(draft, depth, label)}

    def _none(self, draft: Draft[Any]) -> Node | None:
        """Return the checkbox for no value at all, `None` if a value is needed."""
        shape = draft.shape
        if not (shape.nullable or shape.omits):
            return None
        if isinstance(draft, LeafDraft) and not shape.nullable and draft.field.kind != "text":
            return None  # an empty number is left out anyway
        return {"label": "none" if shape.nullable else "not set", "on": draft.is_none}

    def _one_of(self, draft: OneOfDraft, depth: int, label: str) -> Node:
        inside = [] if draft.is_none else [self.node(each, depth, name) for name, each in draft.children()]
        labels = [esc(label, into="line", limit=80) for label in draft.shape.labels]
        control = "toggle" if len(labels) <= BUTTONS else "select"
        return {"kind": "oneof", "options": labels, "picked": draft.picked, "control": control, "children": inside}

    def _many(self, draft: ManyDraft[Any], depth: int, label: str) -> Node:
        inside = [self.node(each, depth + 1, f"{label} {at}") for at, each in enumerate(draft.rows, 1)]
        item = draft.rows[0] if draft.rows else draft.make()
        lines = isinstance(item, LeafDraft) and item.field.kind == "text" and not item.field.secret
        shape = draft.shape
        return {"kind": "rows", "children": inside, "least": shape.least, "most": shape.most, "lines": lines}

    def _leaf(self, draft: LeafDraft, label: str) -> Node:
        field = draft.field
        return {
            "kind": "leaf",
            "label": esc(draft.shape.label or field.label or label, into="line", limit=200),
            "help": esc(field.help, into="line", limit=300),
            "control": self._control(draft),
            "inputmode": ("numeric" if field.whole else "decimal") if field.kind == "number" else None,
            # The page sends back the position, since a label may be cut here.
            "options": [esc(option.label, into="line", limit=200) for option in field.options],
            "other": field.allow_other,
            "maxLength": field.max_length,
            "counts": field.kind == "text" and (field.multiline or field.max_length is not None),
            "suggestion": field.suggestion,
            "zone": field.zone,
            "limit": FILE_LIMIT if field.kind == "file" else None,
            "kept": draft.original is not NO_VALUE and draft.text is NO_VALUE,
        }

    def _control(self, draft: LeafDraft) -> str:
        field = draft.field
        if field.kind == "choice":
            return self._choice(draft, field)
        if field.secret:
            return "password"
        if field.kind in ("date", "datetime", "time", "file", "json"):
            return field.kind
        # A field of one line would drop the ends of others.
        return "area" if field.multiline or (field.kind == "text" and draft.tall) else "line"

    def _choice(self, draft: LeafDraft, field: FormField) -> str:
        if len(field.options) > LISTED:
            return "combo"
        if self.radio:
            return "radio"
        if draft.preset and not draft.shape.nullable and [option.value for option in field.options] == [True, False]:
            return "check"
        return "select" if len(field.options) > BUTTONS else "toggle"


def _repeats_its_tag(draft: GroupDraft, below: Draft[Any]) -> bool:
    """Whether a constant repeats the type of a union that was chosen."""
    union = draft.parent
    if not (isinstance(below, ConstDraft) and isinstance(union, OneOfDraft)):
        return False
    tag = union.shape.labels[union.picked]
    return below.shape.text in (tag, f'"{tag}"')
