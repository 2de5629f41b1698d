"""Moves the content of a checkpoint to another graph: pure functions, which read no storage and write nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import iscoroutine
from typing import Any, Final

from agentbench._copying import isolate
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import MigrationError, UnstorableValueError
from agentbench.serialization.json_text import to_json
from agentbench.workflows.executors.message import WORKFLOW_SOURCE, MessageType, WorkflowMessage, internal_source
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.routing import buffer_key
from agentbench.workflows.persist.executor_content import Changes, Content, ExecutorContent, Messages
from agentbench.workflows.persist.renaming import Renaming, nearest, request_from
from agentbench.workflows.persist.snapshot import EXECUTOR_STATE, FAN_IN_BUFFERS, RUNS_INSIDE

_ALWAYS: Final = ("SingleEdgeGroup", "FanOutEdgeGroup")
"""Kinds of edges that deliver every message, if they have no condition and no selection."""


@dataclass(slots=True)
class Moved:
    """The result: the content under its new names alone (`before`), and the content for the new graph (`after`)."""

    before: Content
    after: Content
    unchanged: tuple[str, ...]
    renamed: dict[str, str]
    dropped: tuple[str, ...]
    new: tuple[str, ...]


def move(original: WorkflowCheckpoint, graph: Graph, changes: Changes) -> Moved:
    """Return the content of a checkpoint for another graph; `MigrationError` if that cannot work."""
    return _Move(original, graph, changes).move()


def known_names(checkpoint: WorkflowCheckpoint, graph: Graph) -> set[str]:
    """Return the names of the executors and fields of a checkpoint."""
    parts = _Move(checkpoint, graph, Changes())
    return {*parts.old_executors, *parts.fields}


@dataclass
class _Move(Renaming):
    """One checkpoint on its way to another graph."""

    dropped: list[str] = field(default_factory=list)

    def move(self) -> Moved:
        executors, fields, homes = self.old_executors, self.fields, self.homes
        self.require_same_sub_workflows()
        before = self.renamed_content()
        after = Content({}, dict(before.state), dict(before.requests))
        self.drop(after)
        contents = self.contents_of(before)
        for source, queued in before.messages.items():
            for message in queued:
                self.distribute(message, source, contents, after.messages)
        self.distribute_waiting(before.state.get(FAN_IN_BUFFERS) or {}, contents, after)
        self.call_functions(contents, after)
        for name, function in self.changes.functions.items():
            if name not in executors and (key := self.field_names.get(name, name)) in after.state:
                value = after.state[key]
                after.state[key] = self.call_function(name, function, value)
                self.require_storable(name, after.state[key], value)
        if self.changes.settle is not None:
            self.changes.settle(after, self.names, self.original.checkpoint_id)
        arrived = set(homes.values())
        return Moved(
            before,
            after,
            unchanged=tuple(each for each in executors if homes[each] == each),
            renamed={
                **{old: new for old, new in homes.items() if new not in (None, old)},
                **{name: new for name, new in self.field_names.items() if name in fields},
            },
            dropped=tuple(self.dropped),
            new=tuple(each for each in self.graph.executors if each not in arrived),
        )

    def require_same_sub_workflows(self) -> None:
        """Refuse a sub-workflow that is in the middle of a run and has another graph, because its run would be lost."""
        states, old = self.original.state.get(EXECUTOR_STATE) or {}, self.signature.get("executors") or {}
        asking = {event.source_executor_id for event in self.original.pending_request_info_events.values()}
        for each, home in self.homes.items():
            is_running = each in asking or bool((states.get(each) or {}).get(RUNS_INSIDE))
            if home is None or each in self.changes.functions or not is_running:
                continue
            now = self.graph.signature["executors"][home]
            if each in old and _sub_workflow(old[each]) != _sub_workflow(now):
                text = (
                    f"The sub-workflow of {each!r} has another graph, and its run has not ended. Pass "
                    f"functions={{{each!r}: function}}, which converts its state or returns it as it is, or finish the "
                    "run with the old graph first."
                )
                raise self.refusal(text, each)

    # ---- dropping ----------------------------------------------------------------------------------------------------

    def drop(self, content: Content) -> None:
        """Remove the state and the requests of executors that are gone, and dropped fields."""
        for key in self.fields:
            if key in self.changes.dropped and key not in self.old_executors:
                del content.state[self.field_keys[key]]
                self.dropped.append(f"field {key!r}")
        if EXECUTOR_STATE in content.state:
            kept = {each: value for each, value in content.state[EXECUTOR_STATE].items() if each not in self.gone}
            content.state[EXECUTOR_STATE] = {each: value for each, value in kept.items() if each not in self.functions}
        gone = [old for old, name in self.names.items() if name in self.gone and name not in self.functions]
        self.dropped += [f"executor {old!r}" for old in gone]
        for request_id, event in [*content.requests.items()]:
            source = event.source_executor_id
            if source in self.functions:
                del content.requests[request_id]
            elif source not in self.graph.executors:
                del content.requests[request_id]
                self.dropped.append(f"request {request_id!r} of {source!r}")

    # ---- messages ----------------------------------------------------------------------------------------------------

    @cached_property
    def old_targets(self) -> dict[str, dict[str, bool]]:
        """The executors after each source in the old graph, under their new names; true if they get every message."""
        names = self.names
        starts = self.signature.get("start_executors") or [self.signature.get("start_executor")]
        found: dict[str, dict[str, bool]] = {WORKFLOW_SOURCE: {names.get(each, each): True for each in starts if each}}
        for group in self.signature.get("edge_groups", ()):
            is_certain = group["group_type"] in _ALWAYS and not group.get("selection_func")
            for edge in group["edges"]:
                source, target = (names.get(edge[end], edge[end]) for end in ("source", "target"))
                targets = found.setdefault(source, {})
                targets[target] = targets.get(target, False) or (is_certain and not edge.get("condition"))
        return found

    @cached_property
    def new_targets(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {WORKFLOW_SOURCE: set(self.graph.start_executor_ids)}
        found |= {internal_source(each): {each} for each in self.graph.executors}
        for group in self.graph.edge_groups:
            for edge in group.edges:
                found.setdefault(edge.source_id, set()).add(edge.target_id)
        return found

    def distribute(
        self, message: WorkflowMessage, source: str, contents: dict[str, ExecutorContent], queue: Messages
    ) -> None:
        """Give a message to the functions of its receivers and sender, and queue it for its other receivers."""
        targets = self.targets_of(message, source)
        for target in targets:
            if target in self.functions:
                contents[target].received.append(replace(message, target_id=target))
        rest = [target for target in targets if target in self.graph.executors and target not in self.functions]
        if targets and not rest:
            return
        if not targets and source not in self.new_targets:
            return  # the last executor sent it, and it is gone: nobody was going to get it
        pieces = [message] if len(rest) == len(targets) else [replace(message, target_id=each) for each in rest]
        if source in self.functions:
            contents[source].sent += pieces
            return
        for piece in pieces:
            self.queue(piece, source, rest if piece.target_id is None else [piece.target_id], queue)

    def targets_of(self, message: WorkflowMessage, source: str) -> list[str]:
        """Return the receivers of a message in the old graph; it must not be certain that it gets lost."""
        old = self.old_targets.get(source, {})
        targets = [message.target_id] if message.target_id is not None else [*old]
        if not targets and not self.signature:  # other software wrote it: the edges of the new graph decide
            return [*self.new_targets.get(source, ())]
        lost = [target for target in targets if target not in self.graph.executors and target not in self.functions]
        for target in lost:
            if len(lost) == len(targets) or old.get(target):
                raise self.undeliverable(message, source, target)
        return targets

    def queue(self, message: WorkflowMessage, source: str, targets: Sequence[str], queue: Messages) -> None:
        """Queue a message by the edges of the new graph, or directly to its receivers where there is no edge left."""
        after = self.new_targets.get(source, set())
        after = after if message.target_id is None else after & {message.target_id}
        if not targets or after:
            if targets and not self.is_taken(message, after):
                raise self.undeliverable(message, source, min(after))
            queue.setdefault(source, []).append(message)
            return
        for target in targets:
            if not self.old_targets.get(source, {}).get(target, source not in self.old_targets):
                raise self.undeliverable(message, source, target)  # a condition or a barrier would have decided
            direct = replace(message, source_id=internal_source(target), target_id=target)
            if not self.is_taken(direct, {target}):
                raise self.undeliverable(message, source, target)
            queue.setdefault(direct.source_id, []).append(direct)

    def is_taken(self, message: WorkflowMessage, targets: Iterable[str]) -> bool:
        """Whether one of the executors has a handler for a message."""
        if message.type is not MessageType.STANDARD:
            return True
        executors = [self.graph.executors[each] for each in targets]
        return any(each.find_handler(form) is not None for each in executors for form in (message.data, [message.data]))

    def distribute_waiting(
        self, buffers: Mapping[str, Mapping[str, list[WorkflowMessage]]], contents: Any, after: Content
    ) -> None:
        """Leave messages at the fan-ins that the new graph has too; send the others over the new edges again."""
        after.state.pop(FAN_IN_BUFFERS, None)
        groups = [group for group in self.graph.edge_groups if isinstance(group, FanInEdgeGroup)]
        kept = {buffer_key(group): group.target_executor_ids[0] for group in groups}
        for key, waiting in buffers.items():
            if key in kept and kept[key] not in self.functions:
                after.state.setdefault(FAN_IN_BUFFERS, {})[key] = waiting
                continue
            target = key.rpartition("->")[2]
            for source, queued in waiting.items():
                for message in queued:
                    self.distribute(replace(message, target_id=target), source, contents, after.messages)

    # ---- functions ---------------------------------------------------------------------------------------------------

    def contents_of(self, before: Content) -> dict[str, ExecutorContent]:
        """Return the content of each executor that has a function, without messages."""
        states = before.state.get(EXECUTOR_STATE) or {}
        return {
            each: ExecutorContent(
                each,
                states.get(each) or {},
                requests={key: event for key, event in before.requests.items() if event.source_executor_id == each},
            )
            for each in self.functions
        }

    def call_functions(self, contents: Mapping[str, ExecutorContent], after: Content) -> None:
        for each, (name, function) in self.functions.items():
            returned = self.call_function(name, function, contents[each])
            parts = [returned] if isinstance(returned, ExecutorContent) else returned
            if not isinstance(parts, (list, tuple)) or not all(isinstance(part, ExecutorContent) for part in parts):
                text = (
                    f"The function of {name!r} returned a {type(returned).__name__}; expected an ExecutorContent, or a "
                    "list of them."
                )
                raise self.refusal(text, name)
            for part in parts:
                self.add(part, name, after)
            self.require_storable(name, [*map(_storable, parts)], _storable(contents[each]))

    def add(self, part: ExecutorContent, name: str, after: Content) -> None:
        """Add what a function returned for one executor."""
        executor_id = part.executor_id
        if executor_id not in self.graph.executors:
            text = f"The function of {name!r} returned content of {executor_id!r}, which the new graph lacks."
            text += nearest(executor_id, self.graph.executors)
            raise self.refusal(text, executor_id)
        if not all(isinstance(key, str) for key in part.state):
            text = f"The function of {name!r} returned a state that is not a dict with text keys."
            raise self.refusal(text, name)
        states = after.state.setdefault(EXECUTOR_STATE, {})
        if part.state and states.get(executor_id):
            text = (
                f"The function of {name!r} returned a state of {executor_id!r}, which has one already. Return no state "
                f"for it, or pass dropped=[{executor_id!r}], so that its old state is dropped."
            )
            raise self.refusal(text, executor_id)
        if part.state or executor_id not in states:
            states[executor_id] = part.state
        for value in part.received:
            message = value if isinstance(value, WorkflowMessage) else WorkflowMessage(value, "")
            has_edge = executor_id in self.new_targets.get(message.source_id, ())
            source = message.source_id if has_edge else internal_source(executor_id)
            message = replace(message, source_id=source, target_id=executor_id)
            self.queue(message, source, [executor_id], after.messages)
        for value in part.sent:
            message = value if isinstance(value, WorkflowMessage) else WorkflowMessage(value, "")
            old = [*self.new_targets.get(executor_id, ())] if message.target_id is None else [message.target_id]
            message = replace(message, source_id=executor_id)
            if not self.new_targets.get(executor_id):
                raise self.undeliverable(message, executor_id, "the executors after it")
            self.queue(message, executor_id, old, after.messages)
        after.requests.update({key: request_from(event, executor_id) for key, event in part.requests.items()})

    def call_function(self, name: str, function: Callable[[Any], Any], value: Any) -> Any:
        """Call a function with a copy, so that the preview can show the difference."""
        try:
            returned = function(isolate(value))
        except Exception as error:
            text = f"The function of {name!r} raised {type(error).__name__}: {str(error).rstrip('.')}."
            raise self.refusal(text, name, error) from error
        if iscoroutine(returned):
            returned.close()
            text = f"The function of {name!r} is async; pass a plain function."
            raise self.refusal(text, name)
        return returned

    def require_storable(self, name: str, value: Any, before: Any) -> None:
        """Refuse a value without a stored form, unless the storage already held one (it may be in memory)."""
        try:
            to_json(value)
        except UnstorableValueError as error:
            try:
                to_json(before)
            except UnstorableValueError:
                return
            text = f"The function of {name!r} returned a value that cannot be stored: {error}"
            raise self.refusal(text, name, error) from error

    # ---- errors ------------------------------------------------------------------------------------------------------

    def undeliverable(self, message: WorkflowMessage, source: str, target: str) -> MigrationError:
        name = target if target in self.gone or source not in self.gone else source
        old = next((each for each, moved in self.names.items() if moved == name), name)
        text = (
            f"A message of type {type(message.data).__name__} from {source!r} waits for {target!r}, and the new graph "
            "cannot deliver it. Pass renamed= for another id of the same executor, or functions="
            f"{{{old!r}: function}}, which hands the message over, or finish the superstep with the old graph first."
        )
        return self.refusal(text, old)


def _sub_workflow(signature: Any) -> Any:
    return signature.get("sub_workflow") if isinstance(signature, Mapping) else None


def _storable(part: ExecutorContent) -> list[Any]:
    return [part.state, part.received, part.sent]
