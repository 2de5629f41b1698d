from typing import Any, Never

import pytest

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.options import RunOptions
from tests.parts.errors import raises


class Careless(Executor):
    """Declares numbers, and sends and yields what it is told to."""

    def __init__(self, sends, yields):
        super().__init__("careless")
        self.values = (sends, yields)

    @handler
    async def run(self, text: str, ctx: WorkflowContext[int | float, list[str]]) -> None:
        sends, yields = self.values
        await ctx.send_message(sends)
        await ctx.yield_output(yields)


@executor
async def anything(value: Any, ctx: WorkflowContext[Never, Any]) -> None:
    await ctx.yield_output(("arrived", value))


def flow(sends, yields, **settings):
    careless = Careless(sends, yields)
    return WorkflowBuilder(start_executor=careless, **settings).add_edge(careless, anything).build()


def warnings(result):
    return [e.data for e in result if e.type == "warning"]


WRONG = [
    ("text", ["y"], "'careless' sends data of type str but declares int | float. Change the value or the declaration."),
    (1, [5], "'careless' yields data of type list but declares list[str]. Change the value or the declaration."),
]


@pytest.mark.parametrize("settings", [{}, {"check_types": "off"}])
async def test_types_are_not_checked_by_default(settings):
    result = await flow("text", [5], **settings).run("x")
    assert result.outputs == [[5], ("arrived", "text")]
    assert warnings(result) == []


@pytest.mark.parametrize(("sends", "yields", "text"), WRONG)
async def test_a_value_of_another_type_is_warned_of_and_passes(sends, yields, text):
    result = await flow(sends, yields, check_types="warn").run("x")
    assert warnings(result) == [f"Executor {text}"]
    assert result.outputs == [yields, ("arrived", sends)]


@pytest.mark.parametrize(("sends", "yields", "text"), WRONG)
async def test_a_value_of_another_type_is_an_error_on_request(sends, yields, text):
    with pytest.raises(TypeError) as caught:
        await flow(sends, yields, check_types="error").run("x")
    assert str(caught.value) == f"Executor {text}"


async def test_a_warning_belongs_to_the_delivery_that_caused_it():
    result = await flow("text", ["y"], check_types="warn").run("x", options=RunOptions(observe=True))
    (warning,) = [e for e in result if e.type == "warning"]
    assert warning.task_id == "0:careless:0"


async def test_a_handler_that_declares_nothing_is_not_checked():
    @executor
    async def ported(text: str, ctx: WorkflowContext) -> None:
        everything: Any = ctx
        await everything.yield_output(text)

    workflow = WorkflowBuilder(start_executor=ported, strict_context=False, check_types="error").build()
    assert (await workflow.run("x")).outputs == ["x"]


async def test_response_handlers_and_plain_functions_are_checked_too():
    class Asks(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info(text, int, request_id="R")

        @response_handler
        def on_answer(self, asked: str, answer: int, ctx: WorkflowContext[str]) -> None:
            ctx.send_message(answer)  # type: ignore[arg-type]  # which is the point

    workflow = WorkflowBuilder(start_executor=Asks("asks"), check_types="error").build()
    await workflow.run("x")
    with raises(TypeError, "'asks'"):
        await workflow.run(responses={"R": 1})
