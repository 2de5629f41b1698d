"""What a run that ends well warns of: messages that no handler takes, and values that handlers return."""

from typing import Any, Never

import pytest

from agentbench import Executor, FunctionExecutor, WorkflowBuilder, WorkflowContext, handler
from agentbench.workflows.executors.options import RunOptions

pytestmark = pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")


class Sends(Executor):
    """Sends its input as it is, whatever it declares, to all targets or to the one named."""

    target: str | None = None

    @handler
    async def send(self, values: list[Any], ctx: WorkflowContext[Any]) -> None:
        for value in values:
            await ctx.send_message(value, self.target)


class Yields(Sends):
    """The same, with outputs declared."""

    @handler
    async def send(self, values: list[Any], ctx: WorkflowContext[Any, Any]) -> None:
        await super().send(values, ctx)


class Texts(Executor):
    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text)


class Lists(Executor):
    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext) -> None: ...


class Numbers(Executor):
    @handler
    async def on_number(self, number: int, ctx: WorkflowContext) -> None: ...


HELD = "No condition or selection let a message of executor 'a' (str) pass."


def untaken(value_type: str, why: str) -> str:
    return f"Executor 'a' sent a value ({value_type}) that no handler took: {why}."


@pytest.mark.parametrize(
    ("connect", "values", "warnings"),
    [
        (lambda b, a: b.add_edge(a, Texts("b")), ["x"], []),
        (
            lambda b, a: b.add_edge(a, Texts("b")),
            [1, 2, 3.0],
            [untaken("int", "'b' takes str"), untaken("float", "'b' takes str")],
        ),
        (
            lambda b, a: b.add_fan_out_edges(a, [Texts("b"), Numbers("c")]),
            ["x", 1, None],
            [untaken("NoneType", "'b' takes str, 'c' takes int")],
        ),
        (lambda b, a: b.add_edge(a, Texts("b")).add_edge(a, Numbers("c")), ["x", 1], []),
        (lambda b, a: b.add_edge(a, Texts("b"), condition=lambda text: False), ["x"], [HELD]),
        (lambda b, a: b.add_multi_selection_edge_group(a, [Texts("b"), Texts("c")], lambda *_: []), ["x"], [HELD]),
        (lambda b, a: b, ["x"], [untaken("str", "no edge leads from it")]),
    ],
    ids=["taken", "wrong type", "fan-out", "by type", "condition", "nothing selected", "no edge"],
)
async def test_messages_that_no_handler_takes_are_warned_of_once_for_each_type(connect, values, warnings):
    a = Sends("a")
    result = await connect(WorkflowBuilder(start_executor=a), a).build().run(values)
    assert result.warnings == warnings
    assert [e.executor_id for e in result if e.type == "warning"] == ["a"] * len(warnings)
    assert all(text in repr(result) for text in warnings)


async def test_a_message_for_a_target_without_an_edge_is_warned_of():
    a = Sends("a")
    a.target = "elsewhere"
    result = await WorkflowBuilder(start_executor=a).add_edge(a, Texts("b")).build().run(["x"])
    assert result.warnings == [untaken("str", "no edge leads from it to 'elsewhere'")]


async def test_what_waits_in_a_fan_in_is_taken():
    a, b = Sends("a"), Sends("b")
    builder = WorkflowBuilder(start_executor=a).add_edge(a, b).add_fan_in_edges([a, b], Lists("c"))
    assert (await builder.build().run([["x"], "y"])).warnings == []


async def test_an_executor_that_sends_and_yields_may_stand_at_the_end_of_a_graph():
    assert (await WorkflowBuilder(start_executor=Yields("a")).build().run(["x"])).warnings == []


@pytest.mark.parametrize("observe", [False, True])
async def test_returned_values_are_warned_of_once_for_each_type(observe):
    class Returns(Executor):
        @handler
        async def on_number(self, number: int, ctx: WorkflowContext[int]) -> object:
            if number:
                await ctx.send_message(number - 1)
            return [None, "text", "again", 1.0][number]

    a = Returns("a")
    workflow = WorkflowBuilder(start_executor=a).add_edge(a, a).build()
    result = await workflow.run(3, options=RunOptions(observe=observe))
    use = "use ctx.send_message() or ctx.yield_output(), or @executor(send_result=True) on a function without ctx."
    assert result.warnings == [
        f"Executor 'a' returned a value (float), which is ignored: {use}",
        f"Executor 'a' returned a value (str), which is ignored: {use}",
    ]


async def returns_awaited(text: str):
    return text


@pytest.mark.parametrize("function", [returns_awaited, lambda text: text, lambda text: returns_awaited(text)])
async def test_a_function_whose_result_is_sent_or_none_is_not_warned_of(function):
    first, last = FunctionExecutor(function, "f", input=str, send_result=True, output=str), Texts("last")
    assert (await WorkflowBuilder(start_executor=first).add_edge(first, last).build().run("x")).warnings == []
    dropped = await WorkflowBuilder(start_executor=FunctionExecutor(function, "f", input=str)).build().run("x")
    assert "returned a value (str)" in dropped.warnings[0]
