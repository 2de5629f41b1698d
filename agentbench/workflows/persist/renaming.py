"""The names of an old graph and of a new one, and the content of a checkpoint under its new names."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import MigrationError
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WorkflowMessage, internal_source
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.routing import fan_in_key
from agentbench.workflows.persist.executor_content import Changes, Content, Messages
from agentbench.workflows.persist.snapshot import EXECUTOR_STATE, FAN_IN_BUFFERS


@dataclass
class Renaming:
    """A checkpoint, the graph that will continue from it, and what a person said about the two."""

    original: WorkflowCheckpoint
    graph: Graph
    changes: Changes

    # ---- names -------------------------------------------------------------------------------------------------------

    @cached_property
    def signature(self) -> Mapping[str, Any]:
        """The old graph; empty if other software wrote the checkpoint."""
        found = self.original.metadata.get(keys.GRAPH_SIGNATURE)
        is_readable = isinstance(found, Mapping) and {"executors", "edge_groups"} <= found.keys()
        return found if is_readable else {}  # type: ignore[return-value]

    @cached_property
    def old_executors(self) -> list[str]:
        """The executors of the old graph."""
        original = self.original
        requests = [event.source_executor_id for event in original.pending_request_info_events.values()]
        sources = [each for each in original.messages if each in self.graph.executors]
        found = [*self.signature.get("executors", ()), *original.state.get(EXECUTOR_STATE, ()), *requests, *sources]
        return list(dict.fromkeys(found))

    @cached_property
    def fields(self) -> list[str]:
        """The keys of the shared state."""
        return [key for key in self.original.state if key not in (EXECUTOR_STATE, FAN_IN_BUFFERS)]

    @cached_property
    def field_names(self) -> dict[str, str]:
        """The new names of the renamed fields."""
        renamed = {old: new for old, new in self.changes.renamed.items() if old not in self.old_executors}
        stay = [key for key in self.fields if key not in {*renamed, *self.changes.dropped}]
        taken = [*stay, *(new for old, new in renamed.items() if old in self.fields)]
        for old, new in renamed.items():
            if str(new) != new or new.startswith("_"):
                text = f"Field {old!r} cannot become {new!r}: expected a name that does not begin with an underscore."
                raise self.refusal(text, old)
            if old in self.fields and taken.count(new) > 1:
                text = f"Field {old!r} cannot become {new!r}: the state would have two fields of this name."
                raise self.refusal(text, new)
        return renamed

    @cached_property
    def field_keys(self) -> dict[str, str]:
        """The key of each field during the move; a dropped field makes room for one that takes its name."""
        taken, dropped = self.field_names.values(), self.changes.dropped
        return {
            key: f"{key} (old)" if key in dropped and key in taken else self.field_names.get(key, key)
            for key in self.fields
        }

    @cached_property
    def homes(self) -> dict[str, str | None]:
        """The new id of each old executor; `None` if the new graph lacks it."""
        changes, old = self.changes, self.old_executors
        known = [*old, *(key for key in self.fields if not key.startswith("_"))]
        for argument in ("renamed", "dropped", "functions"):
            for name in getattr(changes, argument):
                if name not in known and name not in changes.ignored:
                    what = "neither an executor of the checkpoint's graph nor a field of its state"
                    text = f"{argument} names {name!r}, which is {what}.{nearest(name, known)}"
                    raise self.refusal(text, name)
        for name in changes.renamed.keys() & changes.dropped:
            text = f"Both renamed and dropped name {name!r}. Pass it to one of them."
            raise self.refusal(text, name)
        homes: dict[str, str | None] = {}
        for each in old:
            new = changes.renamed.get(each, each)
            if each in changes.renamed and new not in self.graph.executors:
                what = f"which is not an executor of the new graph.{nearest(new, self.graph.executors)}"
                text = f"renamed maps {each!r} to {new!r}, {what}"
                raise self.refusal(text, new)
            homes[each] = new if new in self.graph.executors and each not in changes.dropped else None
            if homes[each] is not None and new in list(homes.values())[:-1]:
                rest = f"Rename only one, and hand the other over with functions={{{each!r}: function}}."
                text = f"Two executors would become {new!r}. {rest}"
                raise self.refusal(text, new)
        return homes

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each old executor during the move: its new id, or its old one if the new graph lacks it."""
        taken = {new for new in self.homes.values() if new is not None}
        return {old: new or (f"{old} (old)" if old in taken else old) for old, new in self.homes.items()}

    @cached_property
    def functions(self) -> dict[str, tuple[str, Callable[[Any], Any]]]:
        """The functions of executors, with the old id of each."""
        functions = self.changes.functions
        return {self.names[old]: (old, functions[old]) for old in self.old_executors if old in functions}

    @cached_property
    def gone(self) -> set[str]:
        """The old executors that the new graph lacks, by their names during the move."""
        return {self.names[old] for old, new in self.homes.items() if new is None}

    # ---- the same content under new names ----------------------------------------------------------------------------

    def renamed_content(self) -> Content:
        """Return the content with each executor under its new id; those that are gone keep theirs."""
        original, names = self.original, self.names
        sources = {**names, **{internal_source(old): internal_source(new) for old, new in names.items()}}
        state = {self.field_keys.get(key, key): value for key, value in original.state.items()}
        if EXECUTOR_STATE in state:
            state[EXECUTOR_STATE] = {names.get(each, each): value for each, value in state[EXECUTOR_STATE].items()}
        if FAN_IN_BUFFERS in state:
            barriers = self.barriers(names)
            state[FAN_IN_BUFFERS] = {
                barriers.get(key, key): self.renamed_messages(waiting, names, sources)
                for key, waiting in state[FAN_IN_BUFFERS].items()
            }
        requests = {
            each: request_from(event, names.get(event.source_executor_id, event.source_executor_id))
            for each, event in original.pending_request_info_events.items()
        }
        content = Content(self.renamed_messages(original.messages, names, sources), state, requests)
        if self.changes.rename is not None:
            self.changes.rename(content, names, self.field_names)
        return content

    def barriers(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the new keys of the fan-in buffers of the old graph."""
        found = {}
        for group in self.signature.get("edge_groups", ()):
            if "FanIn" in group["group_type"] and group["targets"]:
                ends = group["sources"], group["targets"][0]
                found[fan_in_key(*ends)] = fan_in_key([names.get(s, s) for s in ends[0]], names.get(ends[1], ends[1]))
        return found

    def renamed_messages(
        self, messages: Mapping[str, Sequence[WorkflowMessage]], names: Mapping[str, str], sources: Mapping[str, str]
    ) -> Messages:
        """Return messages with the new names of their sources and targets."""
        renamed: Messages = {}
        for source, queued in messages.items():
            renamed[sources.get(source, source)] = [
                replace(
                    message,
                    source_id=sources.get(message.source_id, message.source_id),
                    target_id=None if message.target_id is None else names.get(message.target_id, message.target_id),
                    original_request_info_event=(
                        None
                        if (event := message.original_request_info_event) is None
                        else request_from(event, names.get(event.source_executor_id, event.source_executor_id))
                    ),
                )
                for message in queued
            ]
        return renamed

    def refusal(self, text: str, name: str | None, cause: Exception | None = None) -> MigrationError:
        """Return the error that refuses the migration."""
        msg = f"Checkpoint {self.original.checkpoint_id!r} was not migrated: {text[:1].lower()}{text[1:]}"
        return MigrationError(msg, cause, checkpoint_id=self.original.checkpoint_id, name=name)


def request_from(event: WorkflowEvent[Any], executor_id: str) -> WorkflowEvent[Any]:
    """Return a request as one of another executor."""
    if event.source_executor_id == executor_id:
        return event
    renamed = copy.copy(event)
    renamed._request = (event.request_id, executor_id, event.request_type, event.response_type)  # noqa: SLF001
    if event.executor_id is not None:
        renamed.executor_id = executor_id
    return renamed


def nearest(name: object, known: Collection[str]) -> str:
    """Return a sentence that names the nearest known name, or all."""
    matches = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else f" Known: {', '.join(map(repr, known)) or 'none'}."
