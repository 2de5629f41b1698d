"""What has become of a graph since a checkpoint was made, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from agentbench.exceptions import GraphMismatchError
from agentbench.workflows.graph.signature import signature_differences

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

Signature = Mapping[str, Any]


def graph_mismatch(graph: Graph, checkpoint: WorkflowCheckpoint) -> GraphMismatchError | None:
    """The error for a checkpoint that belongs to another graph, to be raised or reported; None where the graph fits."""
    if checkpoint.graph_signature_hash == graph.signature_hash:
        return None
    stored = checkpoint.metadata.get("graph_signature")
    now = graph.signature
    what = f"Checkpoint {checkpoint.checkpoint_id!r} was made by another graph than that of workflow {graph.name!r}"
    mend = "Rebuild the graph as it was, or start a new run."
    if not _is_readable(stored):
        msg = f"{what}. What differs is not known: the checkpoint holds no readable signature of its graph. {mend}"
        return GraphMismatchError(msg)
    changes = describe_changes(stored, now) or ["its hash is another one, although nothing readable differs"]
    named = changes[:_MOST_NAMED]
    if len(changes) > len(named):
        named.append(f"and {len(changes) - len(named)} more")
    return GraphMismatchError(f"{what}: {'; '.join(named)}. {mend}", differences=signature_differences(stored, now))


def describe_changes(old: Signature, new: Signature) -> list[str]:
    """Tell how one graph became another, a short phrase per change.

    Edges that went together with their executor are not told on their own.

    Args:
        old: a signature, as `graph_signature` makes it.
        new: likewise.

    Returns:
        Such as `executor 'b' is gone` or `edge a -> c is new`: starts, then executors, then edges, then the rest.
    """
    return [
        *_starts(old, new),
        *_executors(old["executors"], new["executors"]),
        *_groups(old["edge_groups"], new["edge_groups"], gone=old["executors"].keys() - new["executors"].keys()),
        *_rest(old, new),
    ]


def _is_readable(signature: object) -> TypeGuard[Signature]:
    if not isinstance(signature, Mapping):
        return False
    executors, groups = signature.get("executors"), signature.get("edge_groups")
    if not isinstance(executors, Mapping) or not isinstance(groups, list):
        return False
    inner = [value.get("sub_workflow") for value in executors.values() if isinstance(value, Mapping)]
    return all(map(_is_readable_group, groups)) and all(s == "recursive" or _is_readable(s) for s in inner)


def _is_readable_group(group: object) -> bool:
    if not isinstance(group, Mapping):
        return False
    lists = [group.get(key) for key in ("sources", "targets", "edges")]
    if not isinstance(group.get("group_type"), str) or not all(isinstance(each, list) for each in lists):
        return False
    ids = [*group["sources"], *group["targets"]]
    return all(isinstance(each, str) for each in ids) and all(
        isinstance(edge, Mapping) and isinstance(edge.get("source"), str) and isinstance(edge.get("target"), str)
        for edge in group["edges"]
    )


# ---- starts, executors, the rest -------------------------------------------------------------------


def _starts(old: Signature, new: Signature) -> Iterator[str]:
    before, after = (s.get("start_executors") or [s.get("start_executor")] for s in (old, new))
    if before != after:
        yield f"the start is {_quoted(after)}, was {_quoted(before)}"


def _executors(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for executor_id in dict.fromkeys([*old, *new]):
        if executor_id not in new:
            yield f"executor {executor_id!r} is gone"
        elif executor_id not in old:
            yield f"executor {executor_id!r} is new"
        elif old[executor_id] != new[executor_id]:
            yield from _executor(executor_id, old[executor_id], new[executor_id])


def _executor(executor_id: str, old: Any, new: Any) -> Iterator[str]:
    before, after = (each["type"] if isinstance(each, Mapping) else each for each in (old, new))
    if before != after:
        (module, _, name), (module_now, _, name_now) = str(before).rpartition("."), str(after).rpartition(".")
        if name == name_now and module and module_now:
            yield (
                f"class {name} of executor {executor_id!r} moved from {module} to {module_now} "
                f"(signature_key = {before!r} in the class would pin it)"
            )
        else:
            yield f"executor {executor_id!r} is a {after} now, was a {before}"
    inner, inner_now = (each.get("sub_workflow") if isinstance(each, Mapping) else None for each in (old, new))
    if isinstance(inner, Mapping) and isinstance(inner_now, Mapping):
        yield from (f"inside {executor_id!r}: {change}" for change in describe_changes(inner, inner_now))
    elif inner != inner_now:
        which = "no" if inner_now is None else "a" if inner is None else "another"
        yield f"executor {executor_id!r} runs {which} sub-workflow now"


def _rest(old: Signature, new: Signature) -> Iterator[str]:
    told = {"start_executor", "start_executors", "executors", "edge_groups"}
    before, after = ({key: value for key, value in s.items() if key not in told} for s in (old, new))
    for found in signature_differences(before, after):
        yield _changed(found["path"], found["before"], found["after"])


def _changed(what: str, before: object, after: object) -> str:
    if before is None:
        return f"{what} is new: {after!r}"
    return f"{what} is gone" if after is None else f"{what} changed from {before!r} to {after!r}"


def _quoted(ids: Sequence[Any]) -> str:
    return " and ".join(map(repr, ids))


# ---- edges -----------------------------------------------------------------------------------------


def _groups(old: Sequence[Signature], new: Sequence[Signature], *, gone: set[str]) -> Iterator[str]:
    left, come = [g for g in old if g not in new], [g for g in new if g not in old]
    for group in left:
        twin = next((each for each in come if _ends(each) == _ends(group)), None)
        if twin is not None:
            come.remove(twin)
            yield from _group(group, twin)
        elif not all(edge["source"] in gone or edge["target"] in gone for edge in group["edges"]):
            yield f"{_named(group)} is gone"
    for group in come:
        yield f"{_named(group)} is new{_under(group)}"


def _group(old: Signature, new: Signature) -> Iterator[str]:
    if old["group_type"] != new["group_type"]:
        yield f"{_path(new)} is a {_kind(new)} now, was a {_kind(old)}"
        return
    conditions, conditions_now = ({_pair(e): e.get("condition") for e in g["edges"]} for g in (old, new))
    for pair in dict.fromkeys([*conditions, *conditions_now]):
        before, after = conditions.get(pair), conditions_now.get(pair)
        if before != after:
            yield _changed(f"condition of {pair}", before, after)
    for key, what in (("selection_func", "selection"), ("cases", "cases"), ("default", "default"), ("mode", "mode")):
        # A fan-in that waits for all its sources does not name its mode.
        before, after = (g.get(key, "barrier" if key == "mode" else None) for g in (old, new))
        if before != after:
            yield _changed(f"{what} of {_named(new)}", before, after)


def _named(group: Signature) -> str:
    return f"{_kind(group)} {_path(group)}"


def _kind(group: Signature) -> str:
    kind: str = group["group_type"]
    return _KINDS.get(kind, kind)


def _path(group: Signature) -> str:
    return f"{', '.join(group['sources'])} -> {', '.join(group['targets'])}"


def _ends(group: Signature) -> tuple[list[str], list[str]]:
    return group["sources"], group["targets"]


def _pair(edge: Mapping[str, Any]) -> str:
    return f"{edge['source']} -> {edge['target']}"


def _under(group: Signature) -> str:
    conditions = [edge.get("condition") for edge in group["edges"]]
    return f", with the condition {conditions[0]!r}" if len(conditions) == 1 and conditions[0] else ""
