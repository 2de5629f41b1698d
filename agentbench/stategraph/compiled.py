"""`CompiledGraph`: runs a state graph, one thread of conversation at a time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from agentbench._bridge import run_sync
from agentbench._clock import iso_utc, runtime_defaults
from agentbench.checkpoints.access import head_of, load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import GraphRecursionError, ThreadBusyError, WorkflowConvergenceException
from agentbench.stategraph.calls import CallRecord, GraphOptions
from agentbench.stategraph.command import Command
from agentbench.stategraph.executors import META, VALUES
from agentbench.stategraph.interrupts import Breakpoint, Continue, Interrupt
from agentbench.stategraph.plan import GraphPlan
from agentbench.stategraph.results import GraphResult, ResponseGranularity, graph_result
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.workflow import Workflow
from agentbench.workflows.engine.event_log import new_log
from agentbench.workflows.engine.run_state import RunState

_DEFAULTS: Mapping[str, Any] = {"recursion_limit": 25, "user_id": "anonymous", "tags": (), "metadata": {}}


@dataclass(slots=True)
class _Thread:
    """A thread as a call finds it: its configuration, the end of its chain, and what it waits for."""

    config: dict[str, Any]
    chain: str
    checkpoint: WorkflowCheckpoint | None
    meta: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, Any] = field(default_factory=dict)


class CompiledGraph:
    """A state graph that runs; made by `StateGraph.compile`.

    A call belongs to a thread, which it goes on with: `config={"thread_id": "order-7"}`. `workflow` is the same graph
    as a workflow of the engine, for steppers and drawings.

    Example:
        >>> app = graph.compile(interrupt_before=["judge"])
        >>> config = {"thread_id": "inc-7"}
        >>> await app.ainvoke({"messages": "The service is slow."}, config)  # pauses before `judge`
        >>> result = await app.ainvoke(None, config)
    """

    def __init__(
        self, plan: GraphPlan, workflow: Workflow, *, checkpointer: Any, store: Any, shutdown_timeout: float
    ) -> None:
        self.plan = plan
        self.workflow = workflow
        self.store = store
        self.storage = InMemoryCheckpointStorage() if checkpointer is None else checkpointer or None
        self.shutdown_timeout = shutdown_timeout
        self._running: dict[str, Execution] = {}

    # ---- running -----------------------------------------------------------------------------------------------------

    def invoke(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
    ) -> GraphResult:
        """Run the graph from code that is not async, also in a cell; see `ainvoke`."""
        return run_sync(self.ainvoke(input_data, config, response_granularity))

    async def ainvoke(
        self,
        input_data: Any,
        config: Mapping[str, Any] | None = None,
        response_granularity: ResponseGranularity | str = ResponseGranularity.LOW,
    ) -> GraphResult:
        """Run the graph until it is completed, pauses or fails.

        Args:
            input_data: `{"messages": ...}`, `{"state": {...}}`, fields, a state, messages, or text; `{"resume": answer}`
                or a `Command` answers an interrupt; `None` goes on with a thread that has paused or failed.
            config: `thread_id` and other settings, flat or under `configurable`.
            response_granularity: How much the result holds: `low`, `partial` or `full`.

        Raises:
            ValueError: There is nothing to go on with, or an answer is missing.
            GraphError: The graph failed; its thread stays at the last good state, and `None` tries again.
            ThreadBusyError: Another call runs on this thread.
        """
        thread = await self._thread(config)
        record = CallRecord(thread.checkpoint.state.get(VALUES, {}) if thread.checkpoint else {}, thread.meta)
        run_input = self._run_input(input_data, thread)
        execution = self._execution(thread, run_input, record)
        if thread.chain in self._running:
            message = f"Another call runs on thread {thread.config['thread_id']!r}. Await it, or use another thread."
            raise ThreadBusyError(message, thread_id=thread.config["thread_id"])
        self._running[thread.chain] = execution
        try:
            await execution.run_to_end()
        except WorkflowConvergenceException as error:
            limit = thread.config["recursion_limit"]
            message = (
                f"The run needs more than {limit} supersteps. What it has done is saved: invoke(None, config) goes on. "
                "Raise recursion_limit in the config, or look for a cycle without an end."
            )
            result = self._result(execution, record, response_granularity)
            raise GraphRecursionError(
                message, thread_id=thread.config["thread_id"], max_iterations=limit, result=result
            ) from error
        finally:
            del self._running[thread.chain]
        return self._result(execution, record, response_granularity)

    def _result(self, execution: Execution, record: CallRecord, granularity: ResponseGranularity | str) -> GraphResult:
        run_state = execution.run.run_state
        interrupts = [request.data for request in run_state.requests.values()]
        return graph_result(self.plan, record, granularity, interrupts, run_state.last_checkpoint_id)

    def _execution(self, thread: _Thread, run_input: RunInput, record: CallRecord) -> Execution:
        config = thread.config
        options = GraphOptions(
            chain=thread.chain,
            max_iterations=config["recursion_limit"]
            + (run_input.message is not ABSENT and thread.checkpoint is not None),
            observe=False,
            strict_checkpoints=True,
            metadata={key: config[key] for key in ("thread_id", "user_id", "tags")} | {**config["metadata"]},
            config=config,
            store=self.store,
            record=record,
        )
        return Execution(
            self.workflow.graph, RunState(), run_input, options,
            log=new_log(config["run_id"], runtime_defaults().clock, observe=False), run_id=config["run_id"],
        )  # fmt: skip

    # ---- threads -----------------------------------------------------------------------------------------------------

    async def _thread(self, config: Mapping[str, Any] | None) -> _Thread:
        given = dict(config or {})
        merged: dict[str, Any] = {**_DEFAULTS, **given.pop("configurable", {}), **given}
        defaults = runtime_defaults()
        merged.setdefault("run_id", defaults.ids.new_id("run"))
        merged.setdefault("timestamp", iso_utc(defaults.clock.time_ns()))
        if merged.get("thread_id") is None:
            merged["thread_id"] = defaults.ids.new_id("thread")
            warnings.warn(
                "The call has no thread_id, so nothing can go on from it: config={'thread_id': ...}.", stacklevel=3
            )
        chain = f"{quote(self.plan.name, safe='')}/{quote(str(merged['thread_id']), safe='')}"
        thread = _Thread(merged, chain, None)
        if self.storage is None:
            return thread
        checkpoint_id = merged.get("checkpoint_id")
        if checkpoint_id is None:
            head = await head_of(self.storage, chain)
            checkpoint_id = head and head.checkpoint_id
        if checkpoint_id is not None:
            thread.checkpoint = await load_checkpoint(self.storage, checkpoint_id)
            thread.meta = thread.checkpoint.state[META]
            thread.requests = thread.checkpoint.pending_request_info_events
        return thread

    def _run_input(self, data: Any, thread: _Thread) -> RunInput:
        """Return how the engine starts or goes on, by what the thread waits for."""
        checkpoint_id = thread.checkpoint.checkpoint_id if thread.checkpoint else None
        resume = data.resume if isinstance(data, Command) else data.get("resume") if isinstance(data, Mapping) else None
        is_answer = resume is not None or (isinstance(data, Mapping) and "resume" in data)
        questions = {key: event.data for key, event in thread.requests.items()}
        asked = [key for key, question in questions.items() if isinstance(question, Interrupt)]
        stopped_at = [key for key, question in questions.items() if isinstance(question, Breakpoint)]
        if is_answer:
            if not asked:
                message = f"Thread {thread.config['thread_id']!r} waits for no answer."
                raise ValueError(message)
            answers = resume if isinstance(resume, Mapping) and set(resume) <= set(asked) else None
            if answers is None:
                if len(asked) > 1:
                    message = (
                        f"Several questions are open: {', '.join(asked)}. Answer by id: {{'resume': {{id: answer}}}}."
                    )
                    raise ValueError(message)
                answers = {asked[0]: resume}
            return RunInput(responses=answers, checkpoint_id=checkpoint_id, storage=self.storage)
        has_input = data is not None and data != {}
        if asked:
            question = questions[asked[0]]
            message = (
                f"Thread {thread.config['thread_id']!r} waits for an answer of node {question.node!r}: "
                f"{question.message or question.value!r}. Answer it: app.invoke({{'resume': ...}}, config)."
            )
            raise ValueError(message)
        if stopped_at:
            answer = Continue(data if has_input else None)
            return RunInput(responses={stopped_at[0]: answer}, checkpoint_id=checkpoint_id, storage=self.storage)
        if has_input:
            return RunInput(message=data, checkpoint_id=checkpoint_id, storage=self.storage)
        if thread.checkpoint is None or not thread.checkpoint.messages:
            message = f"Thread {thread.config['thread_id']!r} has nothing to go on with. Give it an input."
            raise ValueError(message)
        return RunInput(checkpoint_id=checkpoint_id, storage=self.storage)
