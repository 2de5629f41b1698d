import asyncio
import logging
import subprocess
import sys
import threading
from typing import Any

import pytest

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.executors.options import RunOptions

OBSERVED = RunOptions(observe=True)


def node(act, key="node"):
    return FunctionExecutor(act, key, input=Any, output=Any, workflow_output=Any)


def single(act):
    return WorkflowBuilder(start_executor=node(act)).build()


def texts(events):
    return [(e.executor_id, e.data) for e in events if e.type == "log"]


async def observed(workflow):
    return await workflow.run("x", options=OBSERVED)


async def talks(message, ctx):
    print("one")
    print("two", "words", sep="-", end=".")
    print(" and more")
    print("\n\nlast", end="")


LINES = ["one", "two-words. and more", "", "", "last"]


def talks_plainly(message, ctx):
    asyncio.run(talks(message, ctx))


# ---- print ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", [talks, talks_plainly])
async def test_printed_lines_become_events_of_their_delivery_and_are_printed_all_the_same(act, capsys):
    result = await observed(single(act))
    assert [e.type for e in result[:7]] == ["executor_invoked", *["log"] * 5, "executor_completed"]
    assert texts(result) == [("node", line) for line in LINES]
    assert {(e.task_id, e.order, e.superstep) for e in result if e.type == "log"} == {("0:node:0", 0, 0)}
    assert capsys.readouterr().out == "\n".join(LINES)


@pytest.mark.parametrize("act", [talks, talks_plainly])
async def test_a_plain_run_captures_nothing_and_does_not_touch_standard_output(act, capsys):
    streams = []

    async def look(message, ctx):
        streams.append(sys.stdout)

    assert texts(await single(act).run("x")) == []
    before = sys.stdout
    await single(look).run("x")
    assert streams == [before]
    assert capsys.readouterr().out == "\n".join(LINES)


async def test_text_of_tasks_and_threads_of_a_handler_is_captured():
    async def deep(message, ctx):
        async def inner():
            print("in a task")

        await asyncio.gather(inner(), asyncio.to_thread(print, "in a thread"))

    assert sorted(texts(await observed(single(deep)))) == [("node", "in a task"), ("node", "in a thread")]


async def test_text_of_other_code_is_not_captured(capsys):
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def waits(message, ctx):
        print("mine")
        entered.set()
        await go_on.wait()

    run = asyncio.ensure_future(observed(single(waits)))
    await entered.wait()
    print("not mine")
    other = threading.Thread(target=print, args=("nor mine",))
    other.start()
    other.join()
    logging.getLogger("shop").warning("nor mine")
    go_on.set()
    assert texts(await run) == [("node", "mine")]
    assert "not mine\nnor mine\n" in capsys.readouterr().out


async def test_text_streams_while_the_handler_runs():
    go_on = asyncio.Event()

    async def waits(message, ctx):
        print("half way")
        await go_on.wait()

    async for event in single(waits).run("x", stream=True, options=OBSERVED):
        if event.type == "log":
            assert not go_on.is_set()
            go_on.set()
    assert go_on.is_set()


# ---- logging -------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
async def test_log_records_become_events_too(plain):
    log = logging.getLogger("shop.orders")
    log.setLevel(logging.INFO)

    def say(message, ctx):
        log.info("order %d", 7)
        log.debug("too quiet")
        log.warning("two\nlines")

    async def say_async(message, ctx):
        say(message, ctx)

    result = await observed(single(say if plain else say_async))
    assert texts(result) == [("node", "INFO shop.orders: order 7"), ("node", "WARNING shop.orders: two\nlines")]


async def test_the_root_logger_has_its_handlers_back_after_a_run():
    before = list(logging.getLogger().handlers)

    async def look(message, ctx):
        assert len(logging.getLogger().handlers) == len(before) + 1

    await observed(single(look))
    assert logging.getLogger().handlers == before


# ---- standard output is given back -----------------------------------------------------------------


async def test_two_observed_runs_at_once_capture_their_own_text():
    async def meet(key, mine, theirs):
        async def act(message, ctx):
            print(f"{key} begins")
            mine.set()
            await theirs.wait()
            print(f"{key} ends")

        return texts(await observed(single(act)))

    before = sys.stdout
    a, b = asyncio.Event(), asyncio.Event()
    first, second = await asyncio.gather(meet("a", a, b), meet("b", b, a))
    assert first == [("node", "a begins"), ("node", "a ends")]
    assert second == [("node", "b begins"), ("node", "b ends")]
    assert sys.stdout is before


# ---- text that comes too late ----------------------------------------------------------------------


async def test_text_of_a_task_after_its_handler_ended_is_not_captured():
    tasks = []

    async def leaves_a_task(message, ctx):
        async def later():
            await asyncio.sleep(0)
            print("late")

        tasks.append(asyncio.ensure_future(later()))
        await ctx.send_message(message)

    async def next_one(message, ctx):
        await tasks[0]

    first, second = node(leaves_a_task, "first"), node(next_one, "second")
    result = await observed(WorkflowBuilder(start_executor=first).add_edge(first, second).build())
    assert texts(result) == []


# ---- a thread that prints while the run ends -------------------------------------------------------

PRINTS_WHILE_A_RUN_ENDS = """
import sys, threading
from typing import Any
from agentbench import FunctionExecutor, RunOptions, WorkflowBuilder, run_sync

class Slow:
    def __init__(self):
        self.is_reached, self.may_go_on = threading.Event(), threading.Event()

    def write(self, text):
        self.is_reached.set()
        self.may_go_on.wait(10)

slow, before = Slow(), sys.stdout
printing = threading.Thread(target=lambda: print("a", "b"))

async def begins_to_print(message, ctx):
    printing.start()
    slow.is_reached.wait(10)

sys.stdout = slow
node = FunctionExecutor(begins_to_print, "node", input=Any, output=Any)
run_sync(WorkflowBuilder(start_executor=node).build().run("x", options=RunOptions(observe=True)))
slow.may_go_on.set()
printing.join()
sys.stdout = before
print("survived")
"""


def test_a_process_survives_a_print_of_another_thread_during_the_end_of_a_run():
    ended = subprocess.run([sys.executable, "-c", PRINTS_WHILE_A_RUN_ENDS], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "survived\n")
