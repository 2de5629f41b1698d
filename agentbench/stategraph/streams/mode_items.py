"""The items of a streamed call, by mode, for states that are not an `AgentState`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from typing import Any

from agentbench._clock import iso_utc, runtime_defaults
from agentbench.messages.message import Message
from agentbench.messages.whole_copies import copy_whole
from agentbench.serialization.plain import are_equal
from agentbench.stategraph.interrupts import BreakpointRequest, Interrupt
from agentbench.stategraph.running.executors import TaskResult
from agentbench.stategraph.running.plan import StateChanges
from agentbench.stategraph.running.routing import Activation
from agentbench.stategraph.snapshots import StateSnapshot
from agentbench.stategraph.streams.writer import TaskStep
from agentbench.stategraph.threads.positions import positions
from agentbench.stategraph.threads.thread_call import ThreadCall
from agentbench.stategraph.threads.threads import Threads
from agentbench.workflows.events.events import WorkflowEvent

MODES = ("updates", "values", "messages", "custom", "tasks", "checkpoints", "debug", "events")

Path = tuple[str, ...]
Item = tuple[Path, str, Any]


class ModeItems:
    """Converts the events of one call to items: the path to the graph, empty for the outer one, the mode, the item."""

    def __init__(self, threads: Threads, call: ThreadCall, modes: Collection[str], *, subgraphs: bool) -> None:
        self.threads = threads
        self.config, self.record = call.config, call.record
        self.modes = modes
        self.subgraphs = subgraphs
        self.values: dict[Path, Mapping[str, Any]] = {(): call.record.values}
        """The fields of each graph at its last boundary."""
        self.steps: dict[Path, int] = {(): call.record.meta.get("step", 0)}
        self.shown: set[Any] = set()
        """Ids of the messages that were yielded."""
        self._from_inside: tuple[int, Any] = 0, None
        """The last data that code sent to the stream, and its graph's depth: the node around the graph sends a copy."""
        self._is_paused = False
        """Whether the call pauses at a breakpoint, which the engine reports before the superstep's changes."""
        self._has_asked = False
        """Whether the call pauses because nodes of the outer graph ask questions."""

    def first(self) -> Iterator[Item]:
        """Yield the item at the start of a call that continues a thread."""
        if "values" in self.modes:
            yield (), "values", copy_whole(self.values[()])

    def last(self) -> Iterator[Item]:
        """Yield the items after all events if the call pauses.

        At a question, the values then include the writes of the nodes that have finished.
        """
        if self._is_paused and "updates" in self.modes:
            yield (), "updates", {"__interrupt__": ()}
        if self._has_asked and "values" in self.modes:
            values = self.threads.plan.values_in(self.record.values)
            if not are_equal(values, self.values[()]):
                yield (), "values", copy_whole(values)

    async def of(self, event: WorkflowEvent[Any]) -> AsyncIterator[Item]:
        """Yield the items of an event."""
        if "events" in self.modes:
            yield (), "events", event
        path: Path = ()
        if event.type == "sub_workflow":
            path, event = event.data.path or (), event.data
        depth, inner = self._from_inside
        self._from_inside = len(path), event.data if event.type == "custom" else None
        if event.type == "custom" and event.data is inner and len(path) < depth:  # the node's copy
            return
        if path and not self.subgraphs:
            return
        if event.type == "checkpoint_saved" and not path and not {"checkpoints", "debug"}.isdisjoint(self.modes):
            for position in reversed(positions([event.data])):  # after an input also the one before it
                config = {"thread_id": self.config["thread_id"], "checkpoint_id": position.checkpoint_id}
                snapshot = await self.threads.snapshot(config)
                for item in self._both("checkpoints", "checkpoint", snapshot.step, checkpoint_item(snapshot)):
                    yield (path, *item)
        for mode, found in self._items(path, event):
            if mode in self.modes:
                yield path, mode, copy_whole(found)

    def _items(self, path: Path, event: WorkflowEvent[Any]) -> Iterator[tuple[str, Any]]:
        data = event.data
        if isinstance(data, StateChanges):
            yield from self._changes(path, data)
        elif event.type == "custom":
            yield from self._custom(path, event)
        elif event.type == "request_info" and isinstance(data, Interrupt):
            self._has_asked = self._has_asked or not path
            yield "updates", {"__interrupt__": (data,)}
            yield "values", {**self.values.get(path, {}), "__interrupt__": (data,)}
        elif event.type == "request_info" and isinstance(data, BreakpointRequest):
            self._is_paused = True
        elif event.type in ("executor_invoked", "executor_completed"):
            yield from self._tasks(path, event)

    def _changes(self, path: Path, changes: StateChanges) -> Iterator[tuple[str, Any]]:
        self.steps[path] = changes.meta["step"]
        for node, writes in changes.updates:
            yield "updates", {node: writes}
            if "messages" in self.modes:
                for value in (writes or {}).values():
                    for message in value if isinstance(value, list) else [value]:
                        yield from self._message(path, node, message, changes.meta["step"])
        self.values[path] = changes.values_after
        if changes:
            yield "values", changes.values_after

    def _custom(self, path: Path, event: WorkflowEvent[Any]) -> Iterator[tuple[str, Any]]:
        data = event.data
        if isinstance(data, Message):
            yield from self._message(path, str(event.executor_id), data, self.steps.get(path, 0) + 1)
        elif not isinstance(data, TaskStep):
            yield "custom", data
        elif not data.is_ended:
            started = {"id": data.id, "name": data.name, "input": (data.args, data.kwargs), "triggers": ()}
            yield from self._both("tasks", "task", self.steps.get(path, 0) + 1, started)
        else:
            if data.error is None:
                yield "updates", {data.name: data.result}
            item: dict[str, Any] = {"id": data.id, "name": data.name, "error": data.error, "interrupts": []}
            item["result"] = {} if data.error is not None else {"__return__": data.result}
            yield from self._both("tasks", "task_result", self.steps.get(path, 0) + 1, item)

    def _message(self, path: Path, node: str, message: Any, step: int) -> Iterator[tuple[str, Any]]:
        """Yield a message, or a piece of one; nothing for a whole message of which there were pieces."""
        if not isinstance(message, Message) or (not message.delta and message.message_id in self.shown):
            return
        if message.message_id is not None:
            self.shown.add(message.message_id)
        facts = {name: self.config[name] for name in ("thread_id", "run_id", "tags")}
        yield (
            "messages",
            (message, {"langgraph_node": node, "langgraph_step": step, **facts, **self.config["metadata"]}),
        )

    def _tasks(self, path: Path, event: WorkflowEvent[Any]) -> Iterator[tuple[str, Any]]:
        data = event.data[0] if isinstance(event.data, list) and event.data else event.data
        step = self.steps.get(path, 0) + 1
        if isinstance(data, Activation):
            given = self.values.get(path, {}) if data.arg is None else data.arg
            item = {"id": data.task_id, "name": event.executor_id, "input": given, "triggers": data.via}
            yield from self._both("tasks", "task", step, item)
        elif isinstance(data, TaskResult):
            item = {
                "id": data.activation.task_id, "name": event.executor_id, "error": None,
                "result": dict(data.writes.writes),
                "interrupts": [{"value": each.value, "id": each.id} for each in data.interrupts],
            }  # fmt: skip
            yield from self._both("tasks", "task_result", step, item)

    def _both(self, mode: str, kind: str, step: int, item: Any) -> Iterator[tuple[str, Any]]:
        """Yield an item of a mode, and the same for the mode `debug`."""
        if mode in self.modes:
            yield mode, item
        if "debug" in self.modes:
            now = iso_utc(runtime_defaults().clock.time_ns())
            yield "debug", {"step": step, "timestamp": now, "type": kind, "payload": item}


def checkpoint_item(snapshot: StateSnapshot[Any]) -> dict[str, Any]:
    """Return a snapshot as an item of the mode `checkpoints`."""
    return {
        "config": snapshot.config,
        "parent_config": snapshot.parent_config,
        "values": snapshot.values,
        "metadata": snapshot.metadata,
        "next": [*snapshot.next],
        "tasks": [{"id": task.id, "name": task.name, "interrupts": task.interrupts} for task in snapshot.tasks],
    }
