"""The runs of an evaluation: rows of a batch."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from agentbench._limits import require_limit
from agentbench._workers import run_in_thread
from agentbench.batch.driving.driver import DriveRules, LocalDriver
from agentbench.batch.inputs import InputReader
from agentbench.batch.rows import BatchRow, RowStatus
from agentbench.batch.running.meter import MeteredLog
from agentbench.batch.running.run_one import RowRunner, RunRules
from agentbench.batch.running.targets import Target
from agentbench.batch.store.database import BatchDatabase
from agentbench.batch.store.store import BatchStore
from agentbench.evaluation.local import progress_bar
from agentbench.evaluation.turns import agents_of, read_run
from agentbench.messages.message import Message
from agentbench.serialization.plain import to_plain
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler
from agentbench.workflows.executors.message import Delivery, WorkflowMessage
from agentbench.workflows.run.execution import Execution
from agentbench.workflows.run.result import WorkflowRunResult


class _Asking(Executor):
    """Asks an agent, each time without a session."""

    def __init__(self, agent: Any) -> None:
        super().__init__("agent")
        self.agent = agent

    @handler
    async def ask(self, query: Any, ctx: WorkflowContext[Any, Any]) -> None:
        response = await self.agent.run(query)
        await ctx.yield_output(list(response.messages))


class AgentTarget(Target):
    """An agent. The output of a run is the messages of its answer."""

    is_resumable = False  # there is one superstep, so that a checkpoint would save nothing

    def __init__(self, agent: Any, batch_name: str) -> None:
        super().__init__(WorkflowBuilder(start_executor=_Asking(agent)).build(), batch_name, {})


class _TurnLog(MeteredLog):
    """Also keeps what each executor gets and sends."""

    def record_invoked(self, delivery: Delivery) -> None:
        """Keep and count a call."""
        EventLog.record_invoked(self, delivery)
        super().record_invoked(delivery)

    def record_completed(self, delivery: Delivery, sent: Sequence[WorkflowMessage], yielded: Sequence[Any]) -> None:
        """Keep and count the end of a call."""
        EventLog.record_completed(self, delivery, sent, yielded)
        super().record_completed(delivery, sent, yielded)


class WorkflowTarget(Target):
    """A workflow. The output of a run is its answer, the turns of its agents and its final state."""

    is_resumable = False  # the turns before a checkpoint would be missing
    log_class = _TurnLog

    def output(self, execution: Execution, outputs: list[Any]) -> Any:
        """Return the scored parts."""
        result = WorkflowRunResult.from_log(execution.log)
        run = read_run(result, "", agents_of(self.workflow))
        return [run.answer, run.turns, str(result.get_final_state())]


async def run_queries(
    target: Target,
    queries: list[Any],
    read: Callable[[Any], list[Message]],
    into: Any,
    *,
    times: int,
    limit: int,
    progress: bool | None,
) -> list[BatchRow]:
    """Run queries as the batch of a target, on the running event loop, and return their rows in order.

    Finished rows of an earlier call are kept, unless they are of other code, whose answers say nothing about this one.

    Args:
        target: What is run.
        queries: The inputs of the runs. Equal queries have a row each.
        read: Returns the messages of a query, which identify it.
        into: Where the rows are kept.
        times: How often the queries are run.
        limit: The maximum number of concurrent runs.
        progress: Whether to show a progress bar; by default only in notebooks.
    """
    require_limit("max_concurrency", limit, least=1)
    require_limit("num_repetitions", times, least=1)
    queries = queries * times
    seen: Counter[str] = Counter()
    keys = []
    for query in queries:
        text = json.dumps(to_plain([message.to_dict() for message in read(query)]), sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        seen[digest] += 1
        keys.append(f"{digest}-{seen[digest]}")
    store = BatchStore(BatchDatabase(into), target.batch_name)
    try:
        if store.other_graphs(target.graph_hash):
            rows = store.rows(RowStatus.FINISHED, with_values=False)
            changed = {row.key for row in rows if row.graph_hash != target.graph_hash}
            store.reopen(RowStatus.FINISHED, [key for key in keys if key in changed])
        store.note_graph(target.graph_hash, target.parts)
        runner = RowRunner(target, store, RunRules(retry=0, checkpoints="none", concurrency=limit))
        with progress_bar(f"{target.batch_name}: runs", len(queries), progress) as advance:
            # Driven here and not by a `Batch`, which in a notebook would run on the thread of the engine.
            await LocalDriver(store, InputReader(queries, keys), DriveRules(), lambda row: advance(), runner).drive()
        by_key = {row.key: row for row in await run_in_thread(store.rows)}
    finally:
        store.close()
    return [by_key[key] for key in keys]
