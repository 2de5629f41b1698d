"""Cells that ran again, and numbers of data frames: what a workflow of a notebook is given on its first day."""

import pytest

from agentbench import WorkflowBuilder
from agentbench.exceptions import TypeCompatibilityError, WorkflowWarning
from tests.parts.errors import raises, warns

numpy = pytest.importorskip("numpy")

IMPORTS = """
from dataclasses import dataclass
from typing import Any
from typing import Never
from agentbench import Executor, WorkflowContext, executor, handler
"""
ROW = """
@dataclass
class Row:
    n: int
"""
WIDER_ROW = ROW + "    m: int = 0\n"
MAKE = """
@executor(id="make")
async def make(n: int, ctx: WorkflowContext[Row]) -> None:
    await ctx.send_message(Row(n))
"""
USE = """
@executor(id="use")
async def use(row: Row, ctx: WorkflowContext[Never, int]) -> None:
    await ctx.yield_output(row.n)
"""


@pytest.fixture
def cells(monkeypatch):
    """Run the texts of cells in a module that is `__main__`, as those of a notebook."""
    import sys
    import types

    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)

    def run(*texts):
        for text in texts:
            exec(text, main.__dict__)
        return main

    run(IMPORTS)
    return run


async def test_after_the_cell_of_a_class_ran_again_the_old_executor_takes_the_new_class_and_a_warning_says_so(cells):
    main = cells(ROW, MAKE, USE, ROW, MAKE)
    with warns(WorkflowWarning, "'use'"):
        workflow = WorkflowBuilder().add_edge(main.make, main.use).build()
    assert (await workflow.run(3)).outputs == [3]


async def test_a_workflow_that_was_built_before_takes_the_new_class_as_input(cells):
    main = cells(ROW, USE)
    workflow = WorkflowBuilder(start_executor=main.use).build()
    cells(ROW)
    with warns(WorkflowWarning, "'use'"):
        assert (await workflow.run(main.Row(3))).outputs == [3]


async def test_a_class_with_other_fields_is_refused_with_what_to_run_again(cells):
    main = cells(ROW, MAKE, USE, WIDER_ROW, MAKE)
    with pytest.raises(TypeCompatibilityError) as refused:
        WorkflowBuilder().add_edge(main.make, main.use).build()
    assert refused.value.redefined == "Row was defined again after 'use' was created; run the cell of 'use' again."
    assert refused.value.redefined in str(refused.value)
    workflow = WorkflowBuilder(start_executor=main.use).build()
    with raises(RuntimeError, "'use'"):
        await workflow.run(main.Row(3))


async def test_a_message_of_a_class_with_other_fields_is_dropped_with_what_to_run_again(cells):
    main = cells(ROW, USE, WIDER_ROW, MAKE.replace("[Row]", "[Any]"))
    workflow = WorkflowBuilder().add_edge(main.make, main.use).build()
    with warns(WorkflowWarning, "'use'"):
        result = await workflow.run(3)
    assert result.outputs == []
    assert "run the cell of 'use' again" in result.warnings[0]


# ---- numbers -------------------------------------------------------------------------------------

NUMBERS = """
class Numbers(Executor):
    @handler
    async def real(self, number: float, ctx: WorkflowContext[Any, str]) -> None:
        await ctx.yield_output(f"float {number}")

    @handler
    async def whole(self, number: int, ctx: WorkflowContext[Any, str]) -> None:
        await ctx.yield_output(f"int {number}")
"""


async def test_numbers_of_numpy_go_to_the_handlers_of_numbers_and_an_int_first_to_that_of_int(cells):
    workflow = WorkflowBuilder(start_executor=cells(NUMBERS).Numbers("n")).build()
    for value, output in (
        (1, "int 1"),
        (numpy.int64(2), "int 2"),
        (numpy.float64(0.5), "float 0.5"),
        (numpy.float32(0.5), "float 0.5"),
        (1.5, "float 1.5"),
    ):
        assert (await workflow.run(value)).outputs == [output]


async def test_a_whole_number_goes_to_a_handler_of_float_where_none_takes_int(cells):
    half = "@executor\nasync def half(n: float, ctx: WorkflowContext[Never, float]):\n    await ctx.yield_output(n / 2)"
    workflow = WorkflowBuilder(start_executor=cells(half).half).build()
    assert (await workflow.run(3)).outputs == [1.5]
    assert (await workflow.run(numpy.int64(3))).outputs == [1.5]


async def test_a_dropped_scalar_is_named_with_its_package_in_a_warning_of_python(cells):
    main = cells(
        "@executor(id='a')\nasync def a(n: int, ctx: WorkflowContext[Any]):\n    await ctx.send_message(values[n])",
        "@executor(id='b')\nasync def b(text: str, ctx: WorkflowContext): ...",
    )
    main.values = [numpy.int64(1)]
    workflow = WorkflowBuilder().add_edge(main.a, main.b).build()
    with warns(WorkflowWarning, "'b'", "(numpy.int64)") as warned:
        result = await workflow.run(0)
    assert result.warnings == [str(warned[0].message)]
    assert warned[0].filename == __file__
