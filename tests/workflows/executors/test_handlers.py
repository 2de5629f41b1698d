from __future__ import annotations

import asyncio
import functools
import logging
import threading
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler, response_handler
from tests.parts.errors import raises

T = TypeVar("T")


class Base: ...


class Sub(Base): ...


@dataclass
class Question:
    text: str


def single(executor, **settings):
    return WorkflowBuilder(start_executor=executor, **settings).build()


async def outputs(executor, message, **settings):
    return (await single(executor, **settings).run(message)).outputs


# ---- decoration ----------------------------------------------------------------------------------


def test_a_wrong_signature_is_refused_in_the_class_body():
    with raises(ValueError, "ctx"):

        class TooFew(Executor):
            @handler
            async def run(self, text: str) -> None: ...

    with raises(ValueError, "variable"):

        class Generic(Executor):
            @handler
            async def run(self, text: T, ctx: WorkflowContext) -> None: ...

    with raises(ValueError, "input"):
        handler(output=str)(lambda self, m, ctx: None)


def test_an_unknown_name_is_a_name_error_when_an_instance_is_made():
    class Late(Executor):
        @handler(input="Nope")
        async def run(self, m, ctx): ...

    with raises(NameError, "Nope"):
        Late("l")


def test_an_annotated_message_contradicts_explicit_types():
    with raises(ValueError, "annotat"):

        class Both(Executor):
            @handler(input=str)
            async def run(self, m: str, ctx) -> None: ...


# ---- dispatch ------------------------------------------------------------------------------------


class Named(Executor):
    """Yields the name of the handler that ran."""


def naming(name, message_type):
    @handler(input=message_type, workflow_output=str)
    async def method(self, message, ctx):
        await ctx.yield_output(name)

    return method


async def test_the_first_handler_in_order_of_definition_wins():
    class Ordered(Named):
        zz = naming("zz", Sub)
        aa = naming("aa", Base)

    assert await outputs(Ordered("o"), Sub()) == ["zz"]
    assert await outputs(Ordered("o"), Base()) == ["aa"]


async def test_handlers_of_the_most_derived_class_come_first():
    class Parent(Named):
        on_sub = naming("parent sub", Sub)

    class Child(Parent):
        on_base = naming("child base", Base)

    assert await outputs(Child("c"), Sub()) == ["child base"]


async def test_a_union_takes_each_of_its_members_and_nothing_else():
    class Either(Named):
        run = naming("either", str | int)

    assert await outputs(Either("e"), "a") == ["either"]
    assert await outputs(Either("e"), 3) == ["either"]
    for _ in range(2):  # judged by its class alone the second time
        with raises(RuntimeError, "handle"):
            await outputs(Either("e"), 3.0)


async def test_a_handler_for_any_takes_everything_and_one_for_a_literal_its_members():
    class Letters(Named):
        run = naming("a", Literal["a"])

    class Anything(Letters):
        other = naming("any", Any)

    assert [await outputs(Anything("a"), value) for value in ([1], int, object())] == [["any"]] * 3
    assert await outputs(Letters("l"), "a") == ["a"]
    with raises(RuntimeError, "handle"):
        await outputs(Letters("l"), "b")


async def test_the_same_class_of_value_is_judged_anew_where_the_class_does_not_decide():
    class Lists(Named):
        numbers = naming("numbers", list[int])
        texts = naming("texts", list[str])

    lists = Lists("l")
    assert [await outputs(lists, v) for v in ([1], ["a"], [], [2], ["b"])] == [
        ["numbers"],
        ["texts"],
        ["numbers"],
        ["numbers"],
        ["texts"],
    ]


def test_a_handler_that_is_never_reached_is_logged_once(caplog):
    class Shadowed(Named):
        wide = naming("wide", Base)
        narrow = naming("narrow", Sub)

    class Fine(Named):
        narrow = naming("narrow", Sub)
        wide = naming("wide", Base)

    with caplog.at_level(logging.WARNING, logger="agentbench"):
        Shadowed("one")
        Shadowed("two")
        Fine("fine")
    (warned,) = [r.getMessage() for r in caplog.records if Shadowed.__qualname__ in r.getMessage()]
    assert "'narrow' (Sub)" in warned
    assert "'wide' (Base)" in warned


# ---- postponed annotations (this module has them), plain methods, wrappers -------------------------


async def test_postponed_annotations_work_for_handlers_and_response_handlers():
    class Local:
        pass

    class Asks(Executor):
        @handler
        async def ask(self, start: Local, ctx: WorkflowContext) -> None:
            await ctx.request_info(Question("sure?"), bool, request_id="R")

        @response_handler
        async def on_answer(self, question: Question, answer: bool, ctx: WorkflowContext[Local, str]) -> None:
            await ctx.yield_output(f"{question.text} {answer}")

    workflow = single(Asks("a"))
    await workflow.run(Local())
    assert (await workflow.run(responses={"R": True})).outputs == ["sure? True"]
    assert Asks("a").output_types == [Local]


async def test_plain_handlers_run_in_a_worker_thread():
    class Plain(Executor):
        @handler
        def ask(self, text: str, ctx: WorkflowContext) -> None:
            ctx.request_info(text, bool, request_id="R")  # type: ignore[unused-coroutine]  # plain code does not await
            ctx.set_state("thread", threading.get_ident())

        @response_handler
        def on_answer(self, request: str, answer: bool, ctx: WorkflowContext[str, Any]) -> None:
            ctx.yield_output((request, answer, ctx.request_id, threading.get_ident()))

    workflow = single(Plain("p"))
    await workflow.run("x")
    ((request, answer, request_id, thread),) = (await workflow.run(responses={"R": False})).outputs
    assert (request, answer, request_id) == ("x", False, "R")
    assert threading.get_ident() not in (thread, workflow.state.get("thread"))


async def test_a_plain_wrapper_around_an_async_handler_is_awaited():
    def logged(method):
        @functools.wraps(method)
        def wrapper(*args):
            return method(*args)

        return wrapper

    class Wrapped(Executor):
        @handler
        @logged
        async def run(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await asyncio.sleep(0)
            await ctx.yield_output(text.upper())

    assert await outputs(Wrapped("w"), "x") == ["X"]


# ---- response handlers ---------------------------------------------------------------------------


def test_two_response_handlers_for_one_pair_are_refused():
    class Twice(Executor):
        start = naming("start", str)

        @response_handler
        async def one(self, request: str, answer: int, ctx: WorkflowContext) -> None: ...

        @response_handler
        async def two(self, request: str, answer: int, ctx: WorkflowContext) -> None: ...

    with raises(ValueError, "response"):
        Twice("t")


async def test_the_first_response_handler_whose_both_types_fit_wins():
    class Several(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext) -> None:
            await ctx.request_info(text, int | str, request_id="text")
            await ctx.request_info(5, int | str, request_id="number")

        @response_handler(request=str, response=int, workflow_output=str)
        async def text_number(self, request, answer, ctx):
            await ctx.yield_output("text, number")

        @response_handler
        async def text_text(self, request: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output("text, text")

        @response_handler(request=object, response=int | str, workflow_output=str)
        async def rest(self, request, answer, ctx):
            await ctx.yield_output("rest")

    async def answered(request_id, value):
        workflow = single(Several("s"))
        await workflow.run("x")
        return (await workflow.run(responses={request_id: value})).outputs

    assert await answered("text", 1) == ["text, number"]
    assert await answered("text", "a") == ["text, text"]
    assert await answered("number", 1) == ["rest"]
