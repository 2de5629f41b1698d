"""The variants of a what-if as the caller names them, checked, and what each means for the start of a branch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from agentbench._display import shorten
from agentbench.agents.arguments import check_instructions
from agentbench.exceptions import VariantError
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.workflows.executors.message import WORKFLOW_SOURCE
from agentbench.workflows.run.definition import WorkflowDefinition

if TYPE_CHECKING:
    from collections.abc import Iterable

AS_IT_WAS: Final = "as it was"
_ENTRIES: Final = ("state", "messages", "client", "instructions", "answers", "workflow")


@dataclass(frozen=True)
class Variant:
    """One variant.

    Attributes:
        name: Its name.
        changes: The changed values of its checkpoint, as in `Start`.
        workflow: The workflow of its branches; None for that of the run.
        answers: Answers by request id, or by id of the executor that asks.
    """

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    workflow: Any = None
    answers: Mapping[str, Any] = field(default_factory=dict)


def read_variants(variants: Any, runnable: Any) -> list[Variant]:
    """Return the variants, the unchanged one first.

    Args:
        variants: Entries by the name of the variant, as in `WorkflowRun.what_if`.
        runnable: The workflow or compiled state graph of the run. It is not changed.

    Raises:
        TypeError: The variants or their entries are not mappings.
        VariantError: A name, an entry or an id is not known, or cannot be changed.
    """
    if not isinstance(variants, Mapping):
        msg = f'variants is {shorten(variants)}; expected a dictionary such as {{"shorter": {{"state": {{...}}}}}}.'
        raise TypeError(msg)
    return [Variant(AS_IT_WAS), *(_read_variant(name, entries, runnable) for name, entries in variants.items())]


def _read_variant(name: Any, entries: Any, runnable: Any) -> Variant:
    if not isinstance(name, str) or not name.strip():
        msg = f"The name of a variant is {shorten(name)}; expected a text."
        raise TypeError(msg)
    if name == AS_IT_WAS:
        msg = f"The variant {AS_IT_WAS!r} is always included, unchanged. Choose another name."
        raise VariantError(msg, variant=name)
    for entry, given in {"": entries, **(entries if isinstance(entries, Mapping) else {})}.items():
        if entry:
            _require_known(name, "entry of a variant", entry, _ENTRIES)
        if not isinstance(given, Mapping) and entry != "workflow":
            place = f"{entry} of variant {shorten(name)}" if entry else f"Variant {shorten(name)}"
            msg = f"{place} is {shorten(given)}; expected a dictionary."
            raise TypeError(msg)
    workflow = entries.get("workflow")
    if workflow is not None:
        _require_same_graph(name, workflow, runnable)
    agents = {"client": entries.get("client", {}), "instructions": entries.get("instructions", {})}
    if any(agents.values()):
        workflow = _with_agents(name, runnable if workflow is None else workflow, agents)
    engine = engine_of(runnable)
    answers = {str(getattr(key, "request_id", key)): value for key, value in entries.get("answers", {}).items()}
    changes = {entry: dict(entries[entry]) for entry in ("state", "messages") if entry in entries}
    _require_known_all(name, "source of messages", changes.get("messages", {}), [*engine.executors, WORKFLOW_SOURCE])
    return Variant(name, changes, workflow, answers)


def _with_agents(name: str, runnable: Any, changes: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return a workflow in which some nodes have copies of their agents, with another client or other instructions."""
    if isinstance(runnable, CompiledGraph):
        msg = (
            f"Variant {shorten(name)} changes a client or instructions, but the nodes of a state graph call their "
            "models themselves. Pass another compiled graph: {'workflow': app}."
        )
        raise VariantError(msg, variant=name, entry="client")
    # Other agents, such as those of other libraries, have no client that could be replaced.
    nodes = {
        key: node
        for key, node in runnable.executors.items()
        if isinstance(node, AgentNode) and hasattr(node.agent, "client") and hasattr(node.agent, "default_options")
    }
    executors = dict(runnable.executors)
    for entry, by_id in changes.items():
        _require_known_all(name, f"agent node whose {entry!r} could change", by_id, nodes)
        for key, value in by_id.items():
            node = copy.copy(executors[key])
            node.agent = copy.copy(node.agent)
            if entry == "client":
                if not hasattr(value, "get_response"):
                    msg = (
                        f"The client of {key!r} in variant {shorten(name)} is {shorten(value)}; expected a chat client."
                    )
                    raise VariantError(msg, variant=name, entry=entry)
                node.agent.client = value
            else:
                check_instructions(f"instructions of {key!r} in variant {shorten(name)}", value)
                node.agent.default_options = {**node.agent.default_options, "instructions": value}
            executors[key] = node
    return type(runnable).from_graph(runnable.graph.with_executors(executors), runnable.storage)


def engine_of(runnable: Any) -> WorkflowDefinition:
    """Return the workflow of the engine."""
    found: WorkflowDefinition = runnable.workflow if isinstance(runnable, CompiledGraph) else runnable
    return found


def _require_same_graph(name: str, workflow: Any, runnable: Any) -> None:
    if type(workflow) is not type(runnable):
        msg = f"workflow of variant {shorten(name)} is {shorten(workflow)}; expected a {type(runnable).__name__}."
        raise TypeError(msg)
    if engine_of(workflow).graph_signature_hash != engine_of(runnable).graph_signature_hash:
        msg = (
            f"The workflow of variant {shorten(name)} has another graph than the run: other executors or edges, so "
            "that its branches could not begin at the run's checkpoint. Change functions, tools or models only."
        )
        raise VariantError(msg, variant=name, entry="workflow")


def _require_known_all(variant: str, kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    for each in given:
        _require_known(variant, kind, each, names)


def _require_known(variant: str, kind: str, given: Any, known: Iterable[str]) -> None:
    """Raise an error that names the nearest known name, unless `given` is one."""
    names = list(known)
    if given in names:
        return
    nearest = next(iter(get_close_matches(str(given), names, 1, 0.5)), "")
    hint = f" Did you mean {nearest!r}?" if nearest else ""
    expected = f"Expected one of {', '.join(map(repr, names[:10]))}." if names else "The workflow has none."
    msg = f"Variant {shorten(variant)} names {shorten(given)}, which is not a known {kind}.{hint} {expected}"
    raise VariantError(msg, variant=variant, entry=str(given), nearest=nearest)


def match_answers(variant: Variant, requests: Mapping[str, Any], engine: WorkflowDefinition) -> dict[str, Any]:
    """Return the answers to open requests by request id; an answer by executor id is for each of its requests.

    Raises:
        VariantError: An answer fits neither an open request nor an executor that asks.
    """
    asking = [key for key, executor in engine.executors.items() if executor.is_request_response_capable]
    askers = {event.source_executor_id for event in requests.values()}
    known = dict.fromkeys([*requests, *asking, *askers])
    _require_known_all(variant.name, "open request and no executor that asks", variant.answers, known)
    found = {}
    for request_id, event in requests.items():
        for key in (request_id, event.source_executor_id):
            if key in variant.answers:
                found[request_id] = variant.answers[key]
                break
    return found
