"""Paths of places in a form: `title`, `address.city`, `tags.0`, `limits.1.key`, `value.int`; `value` is all of it."""

from collections.abc import Iterator
from typing import Any

from agentbench.notebook.forms.fields.field import ROOT
from agentbench.notebook.forms.values.drafts import Draft, LeafDraft
from agentbench.notebook.forms.values.groups import GroupDraft

__all__ = ["find", "paths_of"]


def paths_of(root: Draft[Any]) -> Iterator[tuple[str, Draft[Any]]]:
    """Return all current places with their paths; the whole form comes last."""
    for name, draft in root.children():
        yield from _walk(draft, _first(root, name))
    yield ROOT, root


def _walk(draft: Draft[Any], path: str) -> Iterator[tuple[str, Draft[Any]]]:
    yield path, draft
    for name, below in draft.children():
        yield from _walk(below, f"{path}.{name}")


def _first(root: Draft[Any], name: str) -> str:
    """Return the path of a place right below the whole form: its name, or `value.NAME` if that is ambiguous."""
    alone = isinstance(root, GroupDraft) and root.shape.makes == "dict" and (name != ROOT or _is_plain(root))
    return name if alone else f"{ROOT}.{name}"


def _is_plain(root: Draft[Any]) -> bool:
    """Whether the whole form has no text of its own, so that its path is free."""
    return isinstance(root, GroupDraft) and not root.shape.nullable


def find(root: Draft[Any], path: str) -> Draft[Any]:
    """Return the place of a path. A row right after the last one is added, a member of a union is made.

    Raises:
        KeyError: There is no such place; the message lists those that there are.
    """
    if path == ROOT and (isinstance(root, LeafDraft) or not _is_plain(root) or root.child(ROOT) is None):
        return root
    found = _below(root, path) or (_below(root, path[len(ROOT) + 1 :]) if path.startswith(f"{ROOT}.") else None)
    if found is None:
        paths = [repr(each) for each, draft in paths_of(root) if draft is not root or not _is_plain(root)]
        listed = ", ".join(paths[:20]) + (", …" if len(paths) > 20 else "")
        msg = f"No field {path!r}. The fields are: {listed}."
        raise KeyError(msg)
    return found


def _below(draft: Draft[Any], path: str) -> Draft[Any] | None:
    # Names may hold points themselves, as `dict[str, a.B]`: the longest that fits comes first.
    fitting = [name for name in draft.names() if path == name or path.startswith(f"{name}.")]
    for name in sorted(fitting, key=len, reverse=True):
        child = draft.child(name)
        if child is None:
            continue
        found = child if path == name else _below(child, path[len(name) + 1 :])
        if found is not None:
            return found
    return None
