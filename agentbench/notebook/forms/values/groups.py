"""Drafts with drafts below: groups of places, and one of several types."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import override

from agentbench.notebook.forms.fields.field import NO_VALUE, Raw
from agentbench.notebook.forms.fields.shapes import Group, OneOf, Part
from agentbench.notebook.forms.values.drafts import Draft, Reading, below, draft_of, drafted_by, items_of
from agentbench.notebook.forms.values.fit import fits

__all__ = ["GroupDraft", "OneOfDraft"]

# The type of the last answer, by the names of the types to choose from.
_last_picks: "OrderedDict[tuple[str, ...], int]" = OrderedDict()
_REMEMBERED = 128

_NOT_OPENED = "Open this and fill it in."


@drafted_by(Group)
class GroupDraft(Draft[Group]):
    """A group of places with names.

    Attributes:
        closed: Whether a person has to open it first, because its type contains itself.
        extra: Entries of the filled-in value that have no place.
    """

    def __init__(self, shape: Group, key: str, parent: Draft[Any] | None = None) -> None:
        super().__init__(shape, key, parent)
        around = [draft.shape.of for draft in self.ancestors if isinstance(draft, GroupDraft)]
        self.closed = shape.of is not None and any(each == shape.of for each in around)
        self.extra: dict[str, Any] = {}
        self._parts: list[tuple[Part, Draft[Any]]] | None = None

    @property
    def parts(self) -> list[tuple[Part, Draft[Any]]]:
        """The places, made at the first access."""
        if self._parts is None:
            self._parts = []
            for at, part in enumerate(self.shape.parts()):
                self._parts.append((part, draft_of(part.shape, below(self, _safe(part.name, at)), self)))
        return self._parts

    @override
    def children(self) -> Iterator[tuple[str, Draft[Any]]]:
        if self.closed or (self._parts is None and self.is_none):
            return iter(())
        return ((part.name, draft) for part, draft in self.parts)

    @override
    def child(self, name: str) -> Draft[Any] | None:
        return next((draft for part, draft in self.parts if part.name == name), None)

    @override
    def names(self) -> Iterator[str]:
        return (part.name for part, _ in self.parts)

    @override
    def step(self, part: object) -> Draft[Any] | None:
        return next(
            (draft for each, draft in self.parts if part in (each.key, each.name) or str(part) == each.key), None
        )

    @override
    def set_raw(self, text: Raw) -> None:
        super().set_raw(text)
        self.closed = self.closed and text is None

    @override
    def open_for(self, child: Draft[Any]) -> None:
        self.closed = False

    def _fill(self, value: object) -> None:
        self.closed = False
        rest = dict(items_of(value))
        for at, (part, draft) in enumerate(self.parts):
            found = rest.pop(part.name, rest.pop(part.key, NO_VALUE))
            if found is NO_VALUE and isinstance(value, (list, tuple)) and at < len(value):
                found = value[at]
            if found is NO_VALUE:
                found = getattr(value, part.name, NO_VALUE) if not isinstance(value, Mapping) else NO_VALUE
            if found is not NO_VALUE:
                draft.fill(found, as_answer=_was_set(value, part.name))
        self.extra = rest if self.shape.open_ended else {}

    def _read(self, reading: Reading) -> object:
        if self.closed:
            return reading.refuse(self, _NOT_OPENED) if self.shape.required else NO_VALUE
        whole = self.shape.check is None  # no type around makes the parts into values
        found = []
        for part, draft in self.parts:
            if not (draft.present or part.shape.required or draft.key in reading.overrides):
                continue
            item = draft.value(reading) if whole else draft.read(reading)
            if item is not NO_VALUE:
                found.append((part.key, item))
        if self.shape.makes != "dict":
            return (tuple if self.shape.makes == "tuple" else list)(item for _, item in found)
        return {**self.extra, **dict(found)}


@drafted_by(OneOf)
class OneOfDraft(Draft[OneOf]):
    """A value of one of several types; the typed texts of the other types stay.

    Attributes:
        picked: Position of the type.
    """

    def __init__(self, shape: OneOf, key: str, parent: Draft[Any] | None = None) -> None:
        super().__init__(shape, key, parent)
        self.picked = _last_picks.get(shape.labels, 0)
        self._members: dict[int, Draft[Any]] = {}

    def remember(self) -> None:
        """Make the type that is picked here the first choice of the next form with these types."""
        _last_picks[self.shape.labels] = self.picked
        _last_picks.move_to_end(self.shape.labels)
        while len(_last_picks) > _REMEMBERED:
            _last_picks.popitem(last=False)

    @property
    def member(self) -> Draft[Any]:
        """The draft of the type that is picked."""
        return self.at(self.picked)

    def at(self, position: int) -> Draft[Any]:
        """Return the draft of a member, made at the first access."""
        if position not in self._members:
            member = self.shape.members[position]
            self._members[position] = draft_of(member.shape(), below(self, _safe(member.label, position)), self)
        return self._members[position]

    @override
    def children(self) -> Iterator[tuple[str, Draft[Any]]]:
        if self.is_none and not self._members:
            return iter(())
        return iter([(self.shape.labels[self.picked], self.member)])

    @override
    def child(self, name: str) -> Draft[Any] | None:
        return self.at(self.shape.labels.index(name)) if name in self.shape.labels else None

    @override
    def names(self) -> Iterator[str]:
        return iter(self.shape.labels)

    @override
    def step(self, part: object) -> Draft[Any] | None:
        # Pydantic names the member by its type or tag, or not at all.
        return None if part == self.shape.labels[self.picked] else self.member.step(part)

    @override
    def open_for(self, child: Draft[Any]) -> None:
        self.picked = next((at for at, draft in self._members.items() if draft is child), self.picked)

    @override
    def raw(self) -> Any:
        if self.is_none:
            return None
        return self.shape.labels[self.picked] if self.present or self.touched else NO_VALUE

    @override
    def may_set(self, text: Raw) -> str:
        if text in (None, "") or text in self.shape.labels:
            return ""
        return f"It is one of {', '.join(map(repr, self.shape.labels))}; name one of them to type into it."

    @override
    def set_raw(self, text: Raw) -> None:
        super().set_raw(text)
        if text:
            self.picked = self.shape.labels.index(text)

    def _fill(self, value: object) -> None:
        shapes = [member.shape() for member in self.shape.members]
        self.picked = next((at for at, shape in enumerate(shapes) if fits(shape, value)), self.picked)
        self.member.fill(value)

    @override
    def clear(self) -> None:
        super().clear()
        for draft in self._members.values():
            draft.clear()

    def _read(self, reading: Reading) -> object:
        # A value, not its parts: the union around must not guess between members again.
        return self.member.value(reading)


def _safe(name: str, at: int) -> str:
    """Return a name as a part of a key; names of schemas may be any text, and keys travel to the page unescaped."""
    return name if name.isidentifier() else f"#{at}"


def _was_set(value: object, name: str) -> bool:
    """Whether this field of a model was set, not taken from its default; true if the class does not track it."""
    known = getattr(value, "__pydantic_fields_set__", None)
    return known is None or name in known
