"""Storages that also read and write the state of a thread without a graph."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, cast
from urllib.parse import quote, unquote

from agentbench._bridge import blocking
from agentbench._display import shorten
from agentbench.checkpoints.access import delete_chain, list_workflow_names, save_at_head
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.exceptions import GraphError
from agentbench.stategraph.merging.state_fields import is_state_class, state_fields
from agentbench.stategraph.merging.updates import merge, read_return
from agentbench.stategraph.reducers import Overwrite
from agentbench.stategraph.running.executors import META
from agentbench.stategraph.running.plan import GraphPlan
from agentbench.stategraph.state import END, START, AgentState, StateT
from agentbench.stategraph.threads.thread_call import thread_config
from agentbench.stategraph.threads.threads import Threads, thread_errors


class ThreadStates(Generic[StateT]):
    """The states of threads in a storage; each method exists twice, `aget_state` and `get_state`.

    A state that is written begins a thread, or becomes the newest checkpoint of an existing one. A thread that begins
    so belongs to the graph that is named after the class of the state, as graphs are by default.
    """

    _ab_classes: Mapping[str, type] = MappingProxyType({})
    """The classes of the states that were written here, by the name of the graph."""

    async def asetup(self) -> None:
        """Open the storage, and create its tables or folders."""
        await list_workflow_names(cast("Any", self))

    setup = blocking(asetup)

    async def aput_state(self, config: Mapping[str, Any], state: StateT) -> StateT:
        """Save a state as the newest one of a thread, and return it.

        Args:
            config: Identifies the thread.
            state: An instance of the state class, all of whose values are written. For a state class that is not an
                `AgentState`, a dictionary of its fields will do.

        Raises:
            TypeError: It is not an instance of a state class, or not of the class with which this class was
                subscripted.
            GraphError: A value does not fit, or several graphs have a thread of this name.
        """
        config = thread_config(config)
        cls = self._ab_class_of(state)
        thread_id = config["thread_id"]
        name = await self._ab_graph_of(thread_id) or quote(cls.__name__, safe="")
        threads = self._ab_threads(cls, name)
        values = {name: Overwrite(value) for name, value in threads.plan.fields.read(state).items()}
        if await threads.head_seq(thread_id):
            await threads.update(config, values)
        else:
            await _begin_thread(threads, config, values)
        self._ab_classes = {**self._ab_classes, name: cls}
        return state

    put_state = blocking(aput_state)

    async def aget_state(self, config: Mapping[str, Any]) -> StateT | None:
        """Return the state of a thread, or of its checkpoint `checkpoint_id`; `None` if there is no such thread.

        Raises:
            GraphError: The state has fields that its class lacks; or several graphs have a thread of this name.
        """
        config = thread_config(config)
        name = await self._ab_graph_of(config["thread_id"])
        if name is None:
            return None
        cls = self._ab_state_class or self._ab_classes.get(name, AgentState)
        snapshot = await self._ab_threads(cls, name).snapshot(config)
        unknown = [field for field in snapshot.extra if not field.startswith("_")]
        if unknown:
            message = (
                f"The state of thread {config['thread_id']!r} has fields that {cls.__name__} lacks: "
                f"{', '.join(unknown)}. Name its class: {type(self).__name__}[MyState](...)."
            )
            raise GraphError(message, thread_id=config["thread_id"])
        return cast("StateT", snapshot.values)

    get_state = blocking(aget_state)

    async def aclear_state(self, config: Mapping[str, Any]) -> int:
        """Delete a thread and return its number of checkpoints."""
        thread_id = thread_config(config)["thread_id"]
        name = await self._ab_graph_of(thread_id)
        return 0 if name is None else await delete_chain(cast("Any", self), f"{name}/{quote(str(thread_id), safe='')}")

    clear_state = blocking(aclear_state)

    async def alist_threads(self) -> list[str]:
        """Return the ids of the threads of all graphs, sorted."""
        chains = await list_workflow_names(cast("Any", self))
        return sorted({unquote(chain.rpartition("/")[2]) for chain in chains if "/" in chain})

    list_threads = blocking(alist_threads)

    @property
    def _ab_state_class(self) -> type | None:
        """The class with which this class was subscripted."""
        (cls,) = getattr(getattr(self, "__orig_class__", None), "__args__", (None,))
        return cls if is_state_class(cls) else None

    def _ab_class_of(self, state: Any) -> type:
        """Return the class as which a state is written; `TypeError` if it is not one of this class."""
        named, cls = self._ab_state_class, type(state)
        if named is None:
            if is_state_class(cls):
                return cls
            message = f"state is {shorten(state)}; expected an instance of AgentState, or of another state class."
            raise TypeError(message)
        # A cell of a notebook that is run again defines its class again, under the same name.
        if is_state_class(cls) and (named in cls.__mro__ or named.__qualname__ == cls.__qualname__):
            return cls
        takes_dictionaries = AgentState not in named.__mro__
        if takes_dictionaries and isinstance(state, Mapping) and state.keys() <= {*state_fields(named).names}:
            return named
        or_fields = ", or a dictionary of its fields" if takes_dictionaries else ""
        message = f"state is {shorten(state)}; expected an instance of {named.__name__}{or_fields}."
        raise TypeError(message)

    async def _ab_graph_of(self, thread_id: Any) -> str | None:
        """Return the quoted name of the graph that has a thread."""
        thread = quote(str(thread_id), safe="")
        chains = await list_workflow_names(cast("Any", self))
        names = [chain.rpartition("/")[0] for chain in chains if chain.rpartition("/")[1:] == ("/", thread)]
        if len(names) > 1 and self._ab_state_class is not None and self._ab_state_class.__name__ in names:
            return self._ab_state_class.__name__
        if len(names) > 1:
            message = (
                f"Several graphs have a thread {thread_id!r}: {', '.join(map(unquote, names))}. Read it with one of "
                "them: app.get_state(config)."
            )
            raise GraphError(message, thread_id=thread_id)
        return names[0] if names else None

    def _ab_threads(self, cls: Any, quoted_name: str) -> Threads:
        plan = GraphPlan(
            name=unquote(quoted_name), fields=state_fields(cls), template=None, nodes={}, edges={}, conditions={},
            joins=(), interrupt_before=frozenset(), interrupt_after=frozenset(),
            context_schema=None,
        )  # fmt: skip
        return Threads(plan, self)


class InMemoryCheckpointer(ThreadStates[StateT], InMemoryCheckpointStorage):
    """A storage in memory for the threads of state graphs.

    A subscript names the class of the state, for type checkers and for reading states.

    Args:
        keep_last: How many checkpoints of each thread to keep; `None` keeps all.

    Example:
        >>> checkpointer = InMemoryCheckpointer[AgentState]()
        >>> app = graph.compile(checkpointer=checkpointer)
        >>> await checkpointer.aput_state({"thread_id": "t1"}, AgentState(context_summary="A new customer."))
    """


class SqliteCheckpointer(ThreadStates[StateT], SQLCheckpointStorage):
    """A storage in an SQLite file for the threads of state graphs.

    A subscript names the class of the state, for type checkers and for reading states.

    Args:
        path_or_url: The path of the file; or any other address that `SQLCheckpointStorage` takes.
        keep_last: How many checkpoints of each thread to keep; `None` keeps all.

    Raises: The errors of `SQLCheckpointStorage`.

    Example:
        >>> checkpointer = SqliteCheckpointer[AgentState]("threads.db")
        >>> await checkpointer.asetup()
        >>> app = graph.compile(checkpointer=checkpointer)
    """


async def _begin_thread(threads: Threads, config: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    fields, thread_id = threads.plan.fields, config["thread_id"]
    writes = read_return(dict(values), fields, START)
    merged = merge(fields, fields.initial(None), [writes])
    meta = {"step": 0, "status": "completed", "current_node": END, "thread_id": thread_id}
    facts = {key: config[key] for key in ("user_id", "tags") if key in config}
    checkpoint = WorkflowCheckpoint(
        threads.chain(thread_id),
        graph_signature_hash="",
        state={**merged.values, META: meta},
        metadata={**facts, "source": "update", "thread_id": thread_id, "changed": merged.writers},
    )
    with thread_errors(thread_id):
        await save_at_head(threads.storage, checkpoint, 0)


def __getattr__(name: str) -> Any:
    """Say what to use instead of a name that other libraries have here."""
    instead = import_module("agentbench.stategraph")._door.instead  # noqa: SLF001 - its own package
    message = f"cannot import name {name!r} from {__name__!r}. {instead.get(name, '')}"
    raise ImportError(message, name=__name__) if name in instead else AttributeError(message)
