"""Count how far a call travels through the package: `python -m tests.tools.hops [--files]`.

For each path it prints the calls, the functions and the files of the package in which they run; `--files` lists the
files. It shows how hard a path is to follow and is no target of its own. The second run of each path counts, because
the first one also imports and prepares.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Never

import agentbench
from agentbench import (
    Agent,
    Call,
    CheckpointID,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    ScriptedChatClient,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
    response_handler,
    run_sync,
    tool,
)

ROOT = Path(agentbench.__file__).parent
WAIT_S = 20.0  # only a limit for a path that never ends


class Trace:
    """Notes which functions of the package run, in every thread, within `with trace.on():`."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls = 0
        self.functions: set[tuple[str, str]] = set()
        sys.setprofile(self._note)
        threading.setprofile(self._note)  # of the threads that start from now on, such as that of the event loop

    def _note(self, frame: FrameType, event: str, arg: object) -> None:
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            self.calls += 1
            self.functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    @contextmanager
    def on(self) -> Any:
        self.calls, self.functions, self.is_on = 0, set(), True
        try:
            yield
        finally:
            self.is_on = False

    @property
    def files(self) -> list[str]:
        return sorted({str(Path(file).relative_to(ROOT)) for file, _ in self.functions})


# --- engine and agents ------------------------------------------------------------------------------------------------


class First(Executor):
    @handler
    async def pass_on(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)


class Last(Executor):
    @handler
    async def finish(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output(number)


def two_nodes(**settings: Any) -> Workflow:
    first = First(id="first")
    return WorkflowBuilder(start_executor=first, **settings).add_edge(first, Last(id="last")).build()


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def run_workflow(trace: Trace) -> None:
    workflow = two_nodes()
    for _ in range(2):
        with trace.on():
            asyncio.run(_await(workflow.run(1)))


def run_with_checkpoints(trace: Trace) -> None:
    workflow = two_nodes(checkpoint_storage=InMemoryCheckpointStorage(), name="saved")
    for _ in range(2):
        with trace.on():
            asyncio.run(_await(workflow.run(1)))


def run_agent(trace: Trace) -> None:
    for _ in range(2):
        agent = Agent(ScriptedChatClient([Call("add", {"a": 1, "b": 2}), "3"]), tools=[add])
        session = agent.create_session()
        with trace.on():
            asyncio.run(_await(agent.run("1 + 2?", session=session)))


def save_and_load(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        previous: CheckpointID | None = None
        for number in range(2):
            checkpoint = WorkflowCheckpoint(
                workflow_name="saved",
                graph_signature_hash="0",
                previous_checkpoint_id=previous,
                state={"numbers": [number]},
            )
            with trace.on():
                previous = asyncio.run(_await(FileCheckpointStorage(folder).save(checkpoint)))
                asyncio.run(_await(FileCheckpointStorage(folder).load(previous)))


# --- notebook ---------------------------------------------------------------------------------------------------------


def click_step(trace: Trace) -> None:
    from agentbench.notebook import stepper

    panel = stepper(two_nodes(), 1)
    parts = parts_of(panel.widget)
    for superstep in range(2):
        with trace.on(), waiting_for(parts["top"], "send", f"'superstep': 'superstep {superstep}'"):
            press(parts["top"], {"kind": "press", "name": "step"})
    panel.close()


class Review(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info("How many?", int)

    @response_handler
    async def answer(self, request: str, answer: int, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(str(answer))


def answer_question(trace: Trace) -> None:
    from agentbench.notebook import inbox

    for _ in range(2):
        run = WorkflowBuilder(start_executor=Review(id="review")).build().start("text")
        run_sync(run.result())
        with waiting_for(run, "send_response", off=trace):
            box = inbox(run)
            panel = box.form(box.requests[0].request_id).widget
            press(panel, {"kind": "ready"})
            with trace.on():
                press(panel, {"kind": "press", "action": "submit", "raw": {"value": {"text": "3"}}})


def parts_of(widget: Any) -> dict[str, Any]:
    """Return the parts of a panel, the widgets in it that have a part's name."""
    parts = {widget.part: widget} if hasattr(widget, "part") else {}
    for child in getattr(widget, "children", ()):
        parts |= parts_of(child)
    return parts


def press(widget: Any, message: dict[str, Any]) -> None:
    """Send a message to a widget, as the page does."""
    content = {"method": "custom", "content": {"view": "view-1", **message}}
    widget._handle_msg({"content": {"data": content}, "buffers": []})


@contextmanager
def waiting_for(target: Any, method: str, text: str = "", *, off: Trace | None = None) -> Any:
    """Wait at the end until a method of an object has been called with arguments that contain a text.

    This call ends the trace `off`.
    """
    done = threading.Event()
    call = getattr(target, method)

    def note(*arguments: Any) -> Any:
        if off is not None:
            off.is_on = False
        try:
            return call(*arguments)
        finally:
            if text in str(arguments):
                done.set()

    setattr(target, method, note)
    yield
    assert done.wait(WAIT_S), f"{method} was not called"
    setattr(target, method, call)


async def _await(awaitable: Any) -> Any:
    return await awaitable


PATHS: dict[str, Callable[[Trace], None]] = {
    "run of two nodes": run_workflow,
    "run of two nodes, checkpoints in memory": run_with_checkpoints,
    "agent turn with one tool call": run_agent,
    "save and load a checkpoint in files": save_and_load,
    "click on Step to redraw": click_step,
    "click on Send to the response of the run": answer_question,
}


def main() -> None:
    """Print each path."""
    trace = Trace()
    for name, walk in PATHS.items():
        walk(trace)
        views = sum(file.startswith("notebook") for file in trace.files)
        of_views = f", {views} of them in notebook" if views else ""
        print(f"{name}: {trace.calls} calls of {len(trace.functions)} functions in {len(trace.files)} files{of_views}")
        if "--files" in sys.argv:
            print(*(f"    {file}" for file in trace.files), sep="\n")


if __name__ == "__main__":
    main()
