"""What a type checker knows of a context; read by mypy, never run. An ignore that is not needed is an error there."""

from typing import Any, Never, assert_type

from agentbench import Executor, WorkflowBuilder, WorkflowContext, executor, handler
from agentbench.workflows.run.workflow import Workflow


async def a_declared_context_sends_and_yields_what_it_declares(
    sends: WorkflowContext[str], both: WorkflowContext[str, int], yields: WorkflowContext[Never, int]
) -> None:
    await sends.send_message("text")
    await sends.send_message(1)  # type: ignore[arg-type]
    await sends.yield_output(1)  # type: ignore[arg-type]
    await both.send_message("text")
    await both.yield_output(1)
    await both.yield_output("text")  # type: ignore[arg-type]
    await yields.yield_output(1)
    await yields.send_message("text")  # type: ignore[arg-type]


async def a_bare_context_does_neither(ctx: WorkflowContext) -> None:
    assert_type(ctx, WorkflowContext[Never, Never])
    await ctx.send_message("text")  # type: ignore[arg-type]
    await ctx.request_info("really?", bool)
    ctx.set_state("seen", 1)


@executor
async def upper(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text.upper())


class Show(Executor):
    @handler
    async def show(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text)


async def what_is_built_is_a_workflow_whose_outputs_are_a_list() -> None:
    workflow = WorkflowBuilder(name="w").connect(upper, Show(id="show")).build()
    assert_type(workflow, Workflow)
    result = await workflow.run("text")
    assert_type(result.outputs, list[Any])
