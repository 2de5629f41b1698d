"""A placement without a cluster: handlers run in this process, and say that they ran on the workers that it names."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentbench import Executor
from agentbench.batch import CallRecord, HandlerCall, record_call


class Elsewhere:
    """Copies what it gets and what it returns, as a cluster would; every call is lost on all workers but the last."""

    def __init__(self, *workers: str) -> None:
        self.workers = workers or ("there",)
        self.prepared: list[str] = []
        self.calls: list[HandlerCall] = []
        self.ended: list[BaseException] = []

    async def prepare(self, executors: Sequence[Executor]) -> None:
        self.prepared += [executor.id for executor in executors]

    async def call(self, executor: Executor, call: HandlerCall) -> CallRecord:
        self.calls.append(call)
        try:
            await asyncio.sleep(0)
            sent: dict[str, Any] = {"data": copy.deepcopy(call.data), "state": copy.deepcopy(dict(call.state))}
            record = copy.deepcopy(await record_call(executor, replace(call, **sent)))
            record.worker, record.attempts = self.workers[-1], len(self.workers)
            return record
        except asyncio.CancelledError as error:
            self.ended.append(error)
            raise
