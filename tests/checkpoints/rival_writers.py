"""Two processes that write to one chain at once: `python -m tests.checkpoints.rival_writers STORAGE`, a folder or URL.

One warm process forks the writers. Both wait before they save for the first time, until the other one is there, too.
"""

from __future__ import annotations

import asyncio
import json
import operator
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any

from agentbench import (
    Executor,
    FileCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from agentbench.checkpoints import fork_checkpoint
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.stategraph import AgentState, CompiledGraph, StateGraph, interrupt


class Log(AgentState):
    log: Annotated[list[str], operator.add] = []


async def ask_once(state: Log) -> dict[str, Any]:
    """A node that waits for an answer, and adds it."""
    return {"log": [interrupt("what?")]}


def make_graph(storage: Any) -> CompiledGraph[Log]:
    """A graph of one question."""
    return StateGraph(Log, name="g").add_node("ask", ask_once).set_entry_point("ask").compile(storage)


class Asks(Executor):
    """Adds the answer to its question to the log."""

    signature_key = "Asks"  # this module is `__main__` to the writers

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("log", [text])
        await ctx.request_info(text, str, request_id="what")

    @response_handler
    async def on_answer(self, request: str, answer: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("log", [*(ctx.get_state("log") or ()), answer])


class Begins(Executor):
    """Passes a text on."""

    signature_key = "Begins"

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)


def make_workflow(storage: Any) -> Workflow:
    """A workflow of one question."""
    begins = Begins("begins")
    builder = WorkflowBuilder(start_executor=begins, name="w", checkpoint_storage=storage)
    return builder.add_edge(begins, Asks("asks")).build()


THREAD = {"thread_id": "t"}

#: What each of two writers does: `(storage, first checkpoint, newest checkpoint, name of the writer)`.
Operation = Callable[[Any, str, str, str], Awaitable[Any]]


async def _fork(storage: Any, first: str, newest: str, name: str) -> Any:
    run = make_workflow(storage).start(resume_from=newest)
    return await run.fork(first, state_updates={"log": [name]})


OPERATIONS: dict[str, Operation] = {
    "graph edit": lambda s, first, newest, name: make_graph(s).aupdate_state(THREAD, {"log": [name]}),
    "graph answer": lambda s, first, newest, name: make_graph(s).ainvoke({"resume": name}, THREAD),
    "graph replay": lambda s, first, newest, name: make_graph(s).ainvoke(None, {**THREAD, "checkpoint_id": first}),
    "graph fork": lambda s, first, newest, name: make_graph(s).afork(
        {**THREAD, "checkpoint_id": first}, thread_id="t", values={"log": [name]}
    ),
    "workflow edit": lambda s, first, newest, name: fork_checkpoint(s, newest, state_updates={"log": [name]}),
    "workflow answer": lambda s, first, newest, name: make_workflow(s).run(
        checkpoint_id=newest, responses={"what": name}
    ),
    "workflow replay": lambda s, first, newest, name: make_workflow(s).run(checkpoint_id=first),
    "workflow fork": _fork,
}


def open_storage(where: str) -> Any:
    """A storage of files or in a database."""
    return SQLCheckpointStorage(where) if "://" in where else FileCheckpointStorage(where)


def wait_for_the_other(storage: Any, ready: int, go: int) -> None:
    """Let the first save of a storage wait."""
    waiting = [True]

    def after_waiting(save: Callable[..., Any]) -> Callable[..., Any]:
        def wait_and_save(*args: Any, **kwargs: Any) -> Any:
            if waiting:
                waiting.clear()
                os.write(ready, b".")
                os.read(go, 1)
            return save(*args, **kwargs)

        return wait_and_save

    storage.save, storage.save_if_head = after_waiting(storage.save), after_waiting(storage.save_if_head)


CHAINS = {"graph": "g/t", "workflow": "w"}


async def begin(where: str, kind: str) -> tuple[str, str]:
    """Run up to the question; returns the ids of the first and the newest checkpoint."""
    storage = open_storage(where)
    await storage.delete_chain(CHAINS[kind])
    if kind == "graph":
        await make_graph(storage).ainvoke({"log": ["in"]}, THREAD)
    else:
        await make_workflow(storage).run("in")
    infos = await storage.list_infos(workflow_name=CHAINS[kind])
    storage.close()
    return infos[0].checkpoint_id, infos[-1].checkpoint_id


async def write(where: str, operation: str, points: tuple[str, str], name: str, ready: int, go: int) -> str:
    """Do one operation, and return how it ended."""
    storage = open_storage(where)
    wait_for_the_other(storage, ready, go)
    try:
        await OPERATIONS[operation](storage, *points, name)
    except Exception as error:  # noqa: BLE001 - it is what the test is about
        return f"{type(error).__name__} {getattr(error, 'thread_id', '')}".strip()
    finally:
        storage.close()
    return "saved"


async def read(where: str, kind: str) -> dict[str, Any]:
    """Return the log at the head of the chain, and the numbers of its checkpoints."""
    storage = open_storage(where)
    infos = await storage.list_infos(workflow_name=CHAINS[kind])
    latest = await storage.get_latest(workflow_name=CHAINS[kind])
    storage.close()
    return {"log": latest.state.get("log"), "seqs": [info.seq for info in infos]}


def in_a_fork(function: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> tuple[int, int]:
    """Await a function in a process of its own, which writes the result as JSON; returns its id, and the pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(asyncio.run(function(*args))).encode())
        except BaseException:  # noqa: BLE001 - it would go on in the process that forked
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    return child, reading


def result_of(child: tuple[int, int]) -> Any:
    """Wait for such a process, and return its result."""
    with os.fdopen(child[1], "rb") as pipe:
        text = pipe.read()
    os.waitpid(child[0], 0)
    return json.loads(text)


def main(where: str) -> None:
    """Let two writers do each operation at once; print one line of JSON for each."""
    for kind in CHAINS:
        asyncio.run(begin(where, kind))  # loads what the writers need, once for all of them
    for operation in OPERATIONS:
        kind = operation.split()[0]
        points = result_of(in_a_fork(begin, where, kind))
        (ready, is_ready), (go, goes) = os.pipe(), os.pipe()
        writers = [in_a_fork(write, where, operation, points, name, is_ready, go) for name in "AB"]
        for _ in writers:
            os.read(ready, 1)
        os.write(goes, b"..")
        outcomes = dict(zip("AB", map(result_of, writers), strict=True))
        after = result_of(in_a_fork(read, where, kind))
        print(json.dumps({"operation": operation, "outcomes": outcomes, **after}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
