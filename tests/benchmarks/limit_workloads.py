"""Calls to a service that rejects too many at once: how many it rejects, and the time against the best fixed limit."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from agentbench._call_limiter import CallLimiter, in_force
from agentbench.agents.model.settings import service_key
from agentbench.openai import OpenAIChatCompletionClient
from tests.servers.busy_server import BusyServer


class LimitedCalls(NamedTuple):
    """What it took to get all answers; the shares are those of all requests and of their second half."""

    seconds: float
    rejected: float
    rejected_late: float


def limited_calls(
    *, calls: int = 2_000, allowed: int = 20, seconds: float = 0.2, retry_after: float | None = 1, fixed: bool = False
) -> LimitedCalls:
    """Make all calls at once, under one limiter: adaptive, or `fixed` at what the service allows."""

    async def run(server: BusyServer) -> LimitedCalls:
        client = OpenAIChatCompletionClient("m", base_url=server.url, api_key="k")
        limiter = CallLimiter(limits={service_key(client): allowed} if fixed else {})
        in_force.set(limiter)
        async with client:
            began = time.perf_counter()
            answers = await asyncio.gather(*(client.get_response("Is it so?") for _ in range(calls)))
            took = time.perf_counter() - began
        assert [answer.text for answer in answers] == ["yes"] * calls
        admitted = server.admitted
        assert sum(admitted) == calls
        assert limiter.rejected == len(admitted) - calls
        late = admitted[len(admitted) // 2 :]
        return LimitedCalls(took, 1 - calls / len(admitted), 1 - sum(late) / len(late))

    with BusyServer(allowed=allowed, seconds=seconds, retry_after=retry_after) as server:
        return asyncio.run(run(server))
