"""Executors and workflows made of cells."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from agentbench import FanInEdgeGroup, FanOutEdgeGroup, SwitchCaseEdgeGroup, Workflow, WorkflowContext, executor
from agentbench.exceptions import WorkflowTextError
from agentbench.notebook import stepper, workbench
from agentbench.notebook.cells.executor_cell import define_executor
from agentbench.notebook.cells.workbench import older_code
from agentbench.notebook.cells.workflow_cell import define_workflow
from tests.notebook.graphs import Gather, Step, Yield, is_spam, needs_review

DOUBLE = "async def double(text: str) -> str:\n    return text * 2\n"


@pytest.fixture(autouse=True)
def empty_workbench() -> Iterator[None]:
    workbench().clear()
    yield
    workbench().clear()


@pytest.fixture
def variables() -> dict[str, Any]:
    return {"WorkflowContext": WorkflowContext, "executor": executor, "last": Yield("last")}


# ---- executors -------------------------------------------------------------------------------------------------------


def test_a_function_of_one_parameter_sends_what_it_returns(variables: dict[str, Any]) -> None:
    defined = define_executor(DOUBLE, variables)
    assert variables["double"] is defined.executor
    workflow = define_workflow("double -> last", variables)
    assert asyncio.run(workflow.run("ab")).get_outputs() == ["abab"]


@pytest.mark.parametrize(
    ("source", "found"),
    [("x = 1", "exactly one function"), (DOUBLE + "def other(text: str): ...", "2: double, other")],
)
def test_a_cell_has_exactly_one_function(source: str, found: str) -> None:
    with pytest.raises(ValueError, match=found):
        define_executor(source, {})


@pytest.mark.parametrize("wrong", ["def double(): ...", "def double(x): ...", "1 / 0\ndef double(text: str): ..."])
def test_what_fails_leaves_the_variable_as_it_was(variables: dict[str, Any], wrong: str) -> None:
    before = define_executor(DOUBLE, variables).executor
    with pytest.raises((ValueError, ZeroDivisionError)):
        define_executor(wrong, variables)
    assert variables["double"] is before
    assert workbench().executors == {"double": before}
    fresh: dict[str, Any] = {}
    with pytest.raises((ValueError, ZeroDivisionError)):
        define_executor(wrong, fresh)
    assert "double" not in fresh


def test_tracebacks_show_the_lines_of_the_cell(variables: dict[str, Any]) -> None:
    define_executor("async def broken(text: str) -> str:\n    raise LookupError(text)  # here\n", variables)
    workflow = define_workflow("broken", variables)
    with pytest.raises(LookupError) as caught:
        asyncio.run(workflow.run("x"))
    assert "raise LookupError(text)  # here" in "".join(traceback.format_exception(caught.value))
    assert inspect.getsource(variables["broken"]._ab_function).startswith("async def broken")


def test_redefinition_replaces_and_names_what_runs_the_older_code(variables: dict[str, Any]) -> None:
    define_executor(DOUBLE, variables)
    workflow = variables["wf"] = define_workflow("double -> last", variables, name="wf")
    variables["panel"] = stepper(workflow, "x")
    variables["number"] = 1
    again = define_executor(DOUBLE, variables)
    assert (again.replaced, again.older, older_code(workflow)) == (True, (), ())
    changed = define_executor(DOUBLE.replace("2", "3"), variables)
    assert [name for name, _ in changed.older] == ["wf", "panel"]
    assert older_code(workflow) == older_code(variables["panel"]) == ("double",)
    assert older_code(define_workflow("double -> last", variables)) == ()
    assert str(changed).splitlines() == [
        "double: takes str, sends str, yields nothing, replaces the previous one",
        "older code",
        "  wf     Workflow('wf', 2 executors, start=double)",
        "  panel  Stepper(wf, no superstep yet, ready)",
    ]
    define_executor(DOUBLE, variables)
    assert older_code(workflow) == ()
    variables["panel"].close()


def test_a_run_shows_that_its_code_is_older(variables: dict[str, Any]) -> None:
    define_executor(DOUBLE, variables)
    run = define_workflow("double", variables).start("x")
    assert "older code" not in run._repr_mimebundle_()["text/plain"]
    define_executor(DOUBLE.replace("2", "3"), variables)
    assert "older code: double" in run._repr_mimebundle_()["text/plain"]


def test_ports_are_shown_escaped(variables: dict[str, Any]) -> None:
    shown = define_executor(DOUBLE, variables, id="<b>x</b>")._repr_mimebundle_()
    assert "<b>x</b>" not in shown["text/html"]
    assert shown["text/plain"].startswith("<b>x</b>: takes str")


# ---- workflows -------------------------------------------------------------------------------------------------------


def nodes(*names: str) -> dict[str, Any]:
    return {name: Gather(name) for name in names}


def test_each_form_becomes_its_kind_of_edges() -> None:
    text = """
        a -> b if needs_review
        b => c, d
        c, d => e
        e -> f if is_spam else g
    """
    workflow = define_workflow(text, nodes(*"abcdefg") | {"is_spam": is_spam, "needs_review": needs_review})
    kinds = [type(group).__name__ for group in workflow.edge_groups][:4]
    assert kinds == ["SingleEdgeGroup", *(g.__name__ for g in (FanOutEdgeGroup, FanInEdgeGroup, SwitchCaseEdgeGroup))]
    assert workflow.edge_groups[0].edges[0].condition is needs_review
    assert type(workflow) is Workflow


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("load -> chek", 9, "there is no executor 'chek'. Did you mean 'check'?"),
        ("load -> number", 9, "expected an executor; 'number' is a int"),
        ("load -> plain", 9, "expected an executor; 'plain' is a function; convert it with @executor or %%executor"),
        ("load -> twin", 9, "Two nodes have the id 'load'"),
        ("load -> check if is_spm", 18, "there is no condition 'is_spm'. Did you mean 'is_spam'?"),
        ("load -> check if number", 18, "expected a function of the message; 'number' is a int"),
        ("load -> check if load", 18, "expected a function of the message; 'load' is a Step"),
    ],
)
def test_names_that_do_not_fit_are_reported_with_their_place(text: str, column: int, problem: str) -> None:
    def plain(text: str) -> str:
        return text

    known = {"load": Step("load"), "check": Step("check"), "twin": Step("load"), "number": 1, "plain": plain}
    with pytest.raises(WorkflowTextError) as caught:
        define_workflow(f"\n{text}", {**known, "is_spam": is_spam})
    assert (caught.value.line, caught.value.column) == (2, column)
    assert problem in caught.value.problem


def test_nothing_of_the_text_is_evaluated() -> None:
    class Trap(dict[str, Any]):
        def __missing__(self, key: str) -> Any:
            raise AssertionError(key)

    with pytest.raises(WorkflowTextError):
        define_workflow("a -> __import__('os').system('true')", Trap(a=Step("a")))


def test_the_code_calls_executors_by_their_variables(variables: dict[str, Any]) -> None:
    define_executor(DOUBLE, variables, id="twice")
    low = variables["low"] = lambda message: True
    workflow = define_workflow("double -> last if low", variables, name="flow")
    code = workflow.to_python()
    assert ".connect(double, last, low)" in code
    exec(code, variables)
    assert variables["flow"].graph_signature == workflow.graph_signature
    assert variables["flow"].edge_groups[0].edges[0].condition is low
