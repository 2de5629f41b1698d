"""A workflow whose checkpoints hold a little of everything, and `write`, which made the files of `data/before_rooms`.

Checkpoints name the classes of this module: neither they nor the module may be renamed.
"""

from __future__ import annotations

import datetime
import enum
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentbench import (
    Agent,
    AgentSession,
    Approval,
    Content,
    Executor,
    FileCheckpointStorage,
    FileHistoryProvider,
    Message,
    RunOptions,
    ScriptedChatClient,
    SQLCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRunState,
    executor,
    handler,
    response_handler,
)

CHAIN = "before the rooms"
#: What pickles of these checkpoints name besides the library's data classes.
PICKLED = {
    *(f"{__name__}:{name}" for name in ("Colour", "Draft", "Question")),
    "agentbench.agents.sessions.session:AgentSession",
}


class Colour(enum.StrEnum):
    RED = "red"


@dataclass
class Draft:
    """A message inside a message of the workflow."""

    message: Message
    colour: Colour = Colour.RED
    notes: list[Content] = field(default_factory=list)


@dataclass
class Question:
    text: str
    draft: Draft


@executor(id="begin")
async def begin(topic: str, ctx: WorkflowContext[Draft]) -> None:
    session = AgentSession(session_id="s1")
    session.state["turns"] = [Message("user", [Content.from_text("Hello?")])]
    ctx.set_state("session", session)
    ctx.set_state("status", [WorkflowRunState.IN_PROGRESS, Approval(True)])
    ctx.set_state("types", [Message, WorkflowRunState, list[Content]])
    ctx.set_state("plain", {"at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), 1: {2, 3}, "t": (1, b"x")})
    call = Content.from_function_call("c1", "search", arguments={"topic": topic})
    await ctx.send_message(
        Draft(Message("assistant", [Content.from_text(topic), call]), notes=[Content.from_text("n")])
    )


class Count(Executor):
    """Has state of its own, with an array and a table in it."""

    def __init__(self, id: str, *, tables: bool) -> None:  # noqa: A002 - the name of the base class
        super().__init__(id=id)
        self.tables = tables
        self.drafts: list[Draft] = []
        self.counts = [0, 0, 0]

    @handler
    async def count(self, draft: Draft, ctx: WorkflowContext[Draft]) -> None:
        self.drafts.append(draft)
        self.counts[len(self.drafts)] += 1
        await ctx.send_message(draft)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        if not self.tables:  # pickles of these are those of one version of numpy and pandas
            return {"drafts": self.drafts, "counts": self.counts}
        import numpy as np
        import pandas as pd

        table = pd.DataFrame({"n": [1, 2], "at": pd.to_datetime(["2026-01-01", "2026-01-02"])}, index=["a", "b"])
        counts = np.array(self.counts, dtype=np.int32)
        return {"drafts": self.drafts, "counts": counts, "table": table, "mean": np.float64(0.5)}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.drafts, self.counts = state["drafts"], list(state["counts"])
        assert not self.tables or (list(state["table"]["n"]), state["mean"]) == ([1, 2], 0.5)


class Review(Executor):
    """Asks a person."""

    @handler
    async def ask(self, draft: Draft, ctx: WorkflowContext) -> None:
        await ctx.request_info(Question("Publish it?", draft), Approval)

    @response_handler
    async def decide(self, question: Question, answer: Approval, ctx: WorkflowContext[Draft]) -> None:
        await ctx.send_message(question.draft if answer.approved else Draft(Message("assistant", ["withdrawn"])))


class Join(Executor):
    """Waits for both ways; the one over the person is longer."""

    @handler
    async def join(self, drafts: list[Draft], ctx: WorkflowContext[Any, str]) -> None:
        texts = " | ".join(sorted(draft.message.text for draft in drafts))
        session = ctx.get_state("session")
        await ctx.yield_output(f"{texts} | {session.session_id}: {session.state['turns'][0].text}")


def build(storage: Any = None, *, tables: bool = True) -> Workflow:
    """`begin` to `count` and `review`, both to `join`."""
    count, review, join = Count("count", tables=tables), Review(id="review"), Join(id="join")
    builder = WorkflowBuilder(start_executor=begin, name=CHAIN, checkpoint_storage=storage)
    return builder.add_fan_out_edges(begin, [count, review]).add_fan_in_edges([count, review], join).build()


async def write(folder: Path) -> None:
    """Write everything, with the library as it is installed."""
    storages = {
        "files": FileCheckpointStorage(folder / "files"),
        "pickled": FileCheckpointStorage(folder / "pickled", codec="pickle", allowed_checkpoint_types=PICKLED),
        "database": SQLCheckpointStorage(folder / "checkpoints.db"),
    }
    for name, storage in storages.items():
        workflow = build(storage, tables=name != "pickled")
        paused = await workflow.run("tea", options=RunOptions(metadata={"tags": ["old"]}))
        (request,) = paused.get_request_info_events()
        await workflow.run(responses={request.request_id: Approval(True)})
    storages["database"].close()
    checkpoints = await storages["files"].list_checkpoints(workflow_name=CHAIN)
    (folder / "checkpoints.jsonl").write_text("".join(f"{each.to_json()}\n" for each in checkpoints))
    history = FileHistoryProvider(folder / "history")
    agent = Agent(ScriptedChatClient(["Good day.", "Green."]), context_providers=[history], name="host")
    session = agent.create_session(session_id="s2")
    await agent.run("Hello?", session=session)
    await agent.run("Which tea?", session=session)
    session.state["mine"] = {"message": Message("user", ["kept"]), "pair": (1, 2)}
    (folder / "session.json").write_text(json.dumps(session.to_dict()))
