"""A workflow with something of everything that has to outlast its process, and a program that goes on with it."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any

from agentbench import (
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from agentbench.checkpoints import RedisCheckpointStorage


@dataclass
class Draft:
    texts: list[str]
    notes: dict[str, set[int]] = field(default_factory=dict)


@dataclass
class Verdict:
    good: bool


class Step(Executor):
    """Adds its id; keeps what it has seen in a field, and in shared state."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.seen: list[str] = []

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        self.seen.append(text)
        path = ctx.get_state("path", ())
        ctx.set_state("path", (*path, (self.id, len(self.seen))))
        await ctx.send_message(text + self.id)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"seen": self.seen}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


class Gather(Executor):
    """Waits for all, then asks about all of it and for a word."""

    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[str, Any]) -> None:
        await ctx.request_info(Draft(texts, {"lengths": set(map(len, texts))}), Verdict, request_id="verdict")
        await ctx.request_info("a word, please", str, request_id="word")

    @response_handler
    async def on_verdict(self, draft: Draft, verdict: Verdict, ctx: WorkflowContext[str, Any]) -> None:
        ctx.set_state("draft", draft)
        await ctx.yield_output([verdict.good, *draft.texts, sorted(draft.notes["lengths"])])

    @response_handler
    async def on_word(self, question: str, word: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.yield_output([question, word])


def lasting_flow(storage: Any = None, **settings: Any) -> Workflow:
    """A quick and a slow way from the start to a node that waits for both."""
    start, quick, slow, slower, gather = Step("s"), Step("q"), Step("w"), Step("v"), Gather("j")
    builder = WorkflowBuilder(start_executor=start, name="lasting", checkpoint_storage=storage, **settings)
    builder.add_fan_out_edges(start, [quick, slow]).add_edge(slow, slower)
    return builder.add_fan_in_edges([quick, slower], gather).build()


ANSWERS: dict[str, Any] = {"verdict": Verdict(good=True), "word": "please"}
OUTPUTS = [[True, "xsq", "xswv", [3, 4]], ["a word, please", "please"]]


def open_place(kind: str, place: str) -> Any:
    """A storage; of another object than before, if the place exists already."""
    if kind == "memory":
        return InMemoryCheckpointStorage()
    if kind == "file":
        return FileCheckpointStorage(place)
    if kind == "redis":
        return RedisCheckpointStorage(place)
    from agentbench.checkpoints.sql import SQLCheckpointStorage

    return SQLCheckpointStorage(place)


async def main(kind: str, place: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Do one thing with a new instance: start, resume or answer.

    Args:
        kind: Of the storage.
        place: Its path or URL.
        wanted: `message`; or `checkpoint_id` (None: the latest), with `answer` true to answer all requests.
    """
    storage = open_place(kind, place)
    workflow = lasting_flow(storage)
    options = RunOptions(metadata={"process": wanted.get("process", "")})
    if "message" in wanted:
        result = await workflow.run(wanted["message"], options=options)
    else:
        checkpoint_id = wanted["checkpoint_id"]
        if checkpoint_id is None:
            checkpoint_id = (await storage.get_latest(workflow_name="lasting")).checkpoint_id
        answers = ANSWERS if wanted.get("answer") else None
        result = await workflow.run(checkpoint_id=checkpoint_id, responses=answers, options=options)
    close = getattr(storage, "close", None)
    if close is not None:
        close()
    return {
        "outputs": result.outputs,
        "asked": [event.request_id for event in result.get_request_info_events()],
        "state": str(result.get_final_state()),
        "superstep": workflow.run_state.superstep,
    }


def program() -> None:
    """Read a JSON request, print a JSON answer."""
    print(json.dumps(asyncio.run(main(sys.argv[1], sys.argv[2], json.load(sys.stdin)))))
