"""Names of places in a form: `title`, `address.city`, `tags.0`, `limits.1.key`, `value.int`; `value` is the whole."""

from collections.abc import Iterator
from typing import Any

from agentbench.notebook.form_drafts import Draft, LeafDraft
from agentbench.notebook.form_fields import ROOT
from agentbench.notebook.form_groups import GroupDraft

__all__ = ["find", "paths_of"]


def paths_of(root: Draft[Any]) -> Iterator[tuple[str, Draft[Any]]]:
    """All places that are there now, with their names; the whole comes last."""
    for name, draft in root.named():
        yield from _walk(draft, _first(root, name))
    yield ROOT, root


def _walk(draft: Draft[Any], path: str) -> Iterator[tuple[str, Draft[Any]]]:
    yield path, draft
    for name, below in draft.named():
        yield from _walk(below, f"{path}.{name}")


def _first(root: Draft[Any], name: str) -> str:
    """The name of a place right below the whole. Fields of a box stand alone, unless both would be `value`."""
    alone = isinstance(root, GroupDraft) and root.shape.makes == "dict" and (name != ROOT or _is_plain(root))
    return name if alone else f"{ROOT}.{name}"


def _is_plain(root: Draft[Any]) -> bool:
    """Whether the whole has no text of its own, so that its name is free."""
    return isinstance(root, GroupDraft) and not root.shape.nullable


def find(root: Draft[Any], path: str) -> Draft[Any]:
    """The place of that name. Rows right after the last are added, members of unions made.

    Raises:
        KeyError: If there is none; it names those there are.
    """
    if path == ROOT and (isinstance(root, LeafDraft) or not _is_plain(root) or root.child(ROOT) is None):
        return root
    found = _below(root, path) or (_below(root, path[len(ROOT) + 1 :]) if path.startswith(f"{ROOT}.") else None)
    if found is None:
        named = [repr(each) for each, draft in paths_of(root) if draft is not root or not _is_plain(root)]
        shown = ", ".join(named[:20]) + (", …" if len(named) > 20 else "")
        msg = f"No field {path!r}. The fields are: {shown}."
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
