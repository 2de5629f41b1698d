"""How a graph has changed since a checkpoint was made, by path and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.exceptions import GraphMismatchError

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.workflows.graph.graph import Graph

_MOST_NAMED = 8

_KINDS = {
    "SingleEdgeGroup": "edge",
    "FanOutEdgeGroup": "fan-out",
    "FanInEdgeGroup": "fan-in",
    "SwitchCaseEdgeGroup": "switch",
}

_NAMES = {"selection_func": "selection"}

Signature = Mapping[str, Any]


class Change(NamedTuple):
    """One difference between two signatures; None for a missing value, and for the text if it is obvious."""

    path: str
    before: Any
    after: Any
    text: str | None = None


def graph_mismatch(graph: Graph, checkpoint: WorkflowCheckpoint) -> GraphMismatchError | None:
    """Return the error for a checkpoint of a different graph; None if the graph fits."""
    if checkpoint.graph_signature_hash == graph.signature_hash:
        return None
    stored: Any = checkpoint.metadata.get("graph_signature")
    what = f"Checkpoint {checkpoint.checkpoint_id!r} was made by another graph than that of workflow {graph.name!r}"
    mend = (
        "Rebuild the graph as it was, migrate the checkpoint (await workflow.migrate(...), app.migrate(...) for a "
        "thread), or start a new run."
    )
    try:
        all_changes = graph_changes(stored, graph.signature)
    except (AttributeError, KeyError, TypeError):  # other software wrote the metadata, or none
        msg = f"{what}. The differences are unknown: the checkpoint has no readable signature of its graph. {mend}"
        return GraphMismatchError(msg)
    changes = [change.text for change in all_changes if change.text is not None]
    named = changes[:_MOST_NAMED] or [
        f"its hash is {checkpoint.graph_signature_hash!r}, not {graph.signature_hash!r}; the readable parts are equal"
    ]
    if len(changes) > len(named):
        named.append(f"and {len(changes) - len(named)} more")
    differences = [
        {"path": change.path, "before": change.before, "after": change.after}
        for change in sorted(all_changes, key=attrgetter("path"))
    ]
    return GraphMismatchError(f"{what}: {'; '.join(named)}. {mend}", differences=differences)


def require_fitting(graph: Graph, checkpoint: WorkflowCheckpoint) -> None:
    """Raise WorkflowCheckpointException or GraphMismatchError if this graph cannot continue from a checkpoint."""
    checkpoint.require_known_version()
    mismatch = graph_mismatch(graph, checkpoint)
    if mismatch is not None:
        raise mismatch


def graph_changes(old: Signature, new: Signature) -> list[Change]:
    """Return the changes from one graph to another: starts, executors, edges, and the rest."""
    listed = {"start_executor", "start_executors", "executors", "edge_groups"}
    before, after = ({key: value for key, value in s.items() if key not in listed} for s in (old, new))
    return [
        *_starts(old, new),
        *_executors(old["executors"], new["executors"]),
        *_groups(old["edge_groups"], new["edge_groups"], gone=old["executors"].keys() - new["executors"].keys()),
        *(
            Change(change.path, change.before, change.after, _describe_change(change.path, change.before, change.after))
            for change in Comparison().changes(before, after)
        ),
    ]


def _starts(old: Signature, new: Signature) -> Iterator[Change]:
    before, after = (s.get("start_executors") or [s.get("start_executor")] for s in (old, new))
    if [None] in (before, after):  # a runner driven by hand has no start
        return
    text: str | None = "the start is {}, was {}".format(*(" and ".join(map(repr, ids)) for ids in (after, before)))
    for key in ("start_executor", "start_executors"):
        if old.get(key) != new.get(key):
            yield Change(key, old.get(key), new.get(key), text)
            text = None


def _executors(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for executor_id in dict.fromkeys([*old, *new]):
        before, after, path = old.get(executor_id), new.get(executor_id), f"executors[{executor_id}]"
        if after is None:
            yield Change(path, before, None, f"executor {executor_id!r} is gone")
        elif before is None:
            yield Change(path, None, after, f"executor {executor_id!r} is new")
        elif before != after:
            yield from _executor(executor_id, path, before, after)


def _executor(executor_id: str, path: str, old: Any, new: Any) -> Iterator[Change]:
    before, after = (each["type"] if isinstance(each, Mapping) else each for each in (old, new))
    if before != after:
        (module, _, name), (module_now, _, name_now) = str(before).rpartition("."), str(after).rpartition(".")
        text = f"executor {executor_id!r} is of class {after} now, was of {before}"
        if name == name_now and module and module_now:
            text = (
                f"class {name} of executor {executor_id!r} moved from {module} to {module_now} "
                f"(signature_key = {before!r} in the class would pin it)"
            )
        yield Change(path, before, after, text)
    inner, inner_now = (each.get("sub_workflow") if isinstance(each, Mapping) else None for each in (old, new))
    path = f"{path}.sub_workflow"
    if isinstance(inner, Mapping) and isinstance(inner_now, Mapping):
        for change in graph_changes(inner, inner_now):
            inside = None if change.text is None else f"inside {executor_id!r}: {change.text}"
            yield Change(f"{path}.{change.path}", change.before, change.after, inside)
    elif inner != inner_now:
        which = "no" if inner_now is None else "a" if inner is None else "another"
        yield Change(path, inner, inner_now, f"executor {executor_id!r} runs {which} sub-workflow now")


def _groups(old: Sequence[Signature], new: Sequence[Signature], *, gone: set[str]) -> Iterator[Change]:
    removed, added = [g for g in old if g not in new], [g for g in new if g not in old]
    for group in removed:
        counterpart = next((candidate for candidate in added if _ends(candidate) == _ends(group)), None)
        if counterpart is not None:
            added.remove(counterpart)
            yield from _group(group, counterpart)
            continue
        is_clear = all(edge["source"] in gone or edge["target"] in gone for edge in group["edges"])
        yield Change(_path(group), group, None, None if is_clear else f"{_group_name(group)} is gone")
    for group in added:
        condition = group["edges"][0].get("condition") if len(group["edges"]) == 1 else None
        text = f"{_group_name(group)} is new{f', with the condition {condition!r}' if condition else ''}"
        yield Change(_path(group), None, group, text)


def _group(old: Signature, new: Signature) -> Iterator[Change]:
    kind, kind_now = (_KINDS.get(g["group_type"], g["group_type"]) for g in (old, new))
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if kind != kind_now:
            text = f"{_ends(new)} is a {kind_now} now, was a {kind}" if key == "group_type" else None
        elif key == "edges":
            text = "; ".join(_conditions(old["edges"], new["edges"]))
        else:
            # A fan-in that waits for all its sources does not name its mode.
            usual = "barrier" if key == "mode" else None
            text = _describe_change(f"{_NAMES.get(key, key)} of {_group_name(new)}", before or usual, after or usual)
        yield Change(f"{_path(new)}.{key}", before, after, text)


def _conditions(old: Sequence[Signature], new: Sequence[Signature]) -> Iterator[str]:
    before, after = ({f"{e['source']} -> {e['target']}": e.get("condition") for e in edges} for edges in (old, new))
    for pair in dict.fromkeys([*before, *after]):
        if before.get(pair) != after.get(pair):
            yield _describe_change(f"condition of {pair}", before.get(pair), after.get(pair))


def _describe_change(what: str, before: object, after: object) -> str:
    if before is None:
        return f"{what} is new: {after!r}"
    return f"{what} is gone" if after is None else f"{what} changed from {before!r} to {after!r}"


def _group_name(group: Signature) -> str:
    return f"{_KINDS.get(group['group_type'], group['group_type'])} {_ends(group)}"


def _ends(group: Signature) -> str:
    return f"{', '.join(group['sources'])} -> {', '.join(group['targets'])}"


def _path(group: Signature) -> str:
    return f"edge_groups[{'+'.join(group['sources'])}->{'+'.join(group['targets'])}]"
