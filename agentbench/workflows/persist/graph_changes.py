"""How a graph changed since a checkpoint was made, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    """Return the error for a checkpoint that belongs to another graph; None where the graph fits."""
    if checkpoint.graph_signature_hash == graph.signature_hash:
        return None
    stored: Any = checkpoint.metadata.get("graph_signature")
    what = f"Checkpoint {checkpoint.checkpoint_id!r} was made by another graph than that of workflow {graph.name!r}"
    mend = "Rebuild the graph as it was, or start a new run."
    try:
        changes = describe_changes(stored, graph.signature)
        differences = signature_differences(stored, graph.signature)
    except (AttributeError, KeyError, TypeError):  # other software wrote the metadata, or none
        msg = f"{what}. What differs is not known: the checkpoint holds no readable signature of its graph. {mend}"
        return GraphMismatchError(msg)
    changes = changes or ["its hash is another one, although nothing readable differs"]
    named = changes[:_MOST_NAMED]
    if len(changes) > len(named):
        named.append(f"and {len(changes) - len(named)} more")
    return GraphMismatchError(f"{what}: {'; '.join(named)}. {mend}", differences=differences)


def require_fitting(graph: Graph, checkpoint: WorkflowCheckpoint) -> None:
    """Raise WorkflowCheckpointException or GraphMismatchError for a checkpoint that this graph cannot go on from."""
    checkpoint.require_known_version()
    mismatch = graph_mismatch(graph, checkpoint)
    if mismatch is not None:
        raise mismatch


def describe_changes(old: Signature, new: Signature) -> list[str]:
    """Return how one graph became another: starts, executors, edges, the rest; `edge a -> c is new` is one phrase.

    Edges that went together with their executor are not listed.
    """
    return [
        *_starts(old, new),
        *_executors(old["executors"], new["executors"]),
        *_groups(old["edge_groups"], new["edge_groups"], gone=old["executors"].keys() - new["executors"].keys()),
        *_rest(old, new),
    ]


# ---- starts, executors, the rest -------------------------------------------------------------------


def _starts(old: Signature, new: Signature) -> Iterator[str]:
    before, after = (s.get("start_executors") or [s.get("start_executor")] for s in (old, new))
    if before != after:
        yield "the start is {}, was {}".format(*(" and ".join(map(repr, ids)) for ids in (after, before)))


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
    listed = {"start_executor", "start_executors", "executors", "edge_groups"}
    before, after = ({key: value for key, value in s.items() if key not in listed} for s in (old, new))
    for found in signature_differences(before, after):
        yield _changed(found["path"], found["before"], found["after"])


def _changed(what: str, before: object, after: object) -> str:
    if before is None:
        return f"{what} is new: {after!r}"
    return f"{what} is gone" if after is None else f"{what} changed from {before!r} to {after!r}"


# ---- edges -----------------------------------------------------------------------------------------


def _groups(old: Sequence[Signature], new: Sequence[Signature], *, gone: set[str]) -> Iterator[str]:
    left, come = [g for g in old if g not in new], [g for g in new if g not in old]
    for group in left:
        twin = next((each for each in come if _path(each) == _path(group)), None)
        if twin is not None:
            come.remove(twin)
            yield from _group(group, twin)
        elif not all(edge["source"] in gone or edge["target"] in gone for edge in group["edges"]):
            yield f"{_named(group)} is gone"
    for group in come:
        condition = group["edges"][0].get("condition") if len(group["edges"]) == 1 else None
        yield f"{_named(group)} is new{f', with the condition {condition!r}' if condition else ''}"


def _group(old: Signature, new: Signature) -> Iterator[str]:
    if old["group_type"] != new["group_type"]:
        now, was = (_KINDS.get(g["group_type"], g["group_type"]) for g in (new, old))
        yield f"{_path(new)} is a {now} now, was a {was}"
        return
    conditions, conditions_now = (
        {f"{e['source']} -> {e['target']}": e.get("condition") for e in g["edges"]} for g in (old, new)
    )
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
    return f"{_KINDS.get(group['group_type'], group['group_type'])} {_path(group)}"


def _path(group: Signature) -> str:
    return f"{', '.join(group['sources'])} -> {', '.join(group['targets'])}"
