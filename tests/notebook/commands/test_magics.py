"""The magics, in a real IPython shell without a kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, _clock, handler
from agentbench.exceptions import MagicUsageError, WorkflowTextError
from agentbench.notebook import stepper, workbench
from agentbench.notebook.commands import magics
from agentbench.notebook.commands.magics import agentbench_magic, completions, executor_magic, workflow_magic
from agentbench.notebook.runtime import settings
from tests.parts.errors import raises


class Upper(Executor):
    @handler
    async def upper(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.upper())


class Tell(Executor):
    @handler
    async def tell(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)


def flow() -> Workflow:
    upper, tell = Upper(id="upper"), Tell(id="tell")
    return WorkflowBuilder(start_executor=upper, name="flow").add_edge(upper, tell).build()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    made: Any = InteractiveShell(config=config)
    made.run_line_magic("load_ext", "agentbench")
    yield made
    made.run_line_magic("unload_ext", "agentbench")
    made.restore_sys_module_state()
    workbench().clear()


def test_loading_adds_the_magics_and_unloading_takes_all_away(shell: Any) -> None:
    known, hooks = shell.magics_manager.magics, shell.strdispatchers["complete_command"].strs
    assert "agentbench" in known["line"]
    assert {"executor", "workflow"} <= known["cell"].keys()
    assert "%agentbench" in hooks
    assert _clock.runtime_defaults().observe
    magics.load_ipython_extension(shell)
    magics.unload_ipython_extension(shell)
    assert "agentbench" not in known["line"]
    assert not {"executor", "workflow"} & known["cell"].keys()
    assert "%agentbench" not in hooks
    assert not _clock.runtime_defaults().observe
    magics.unload_ipython_extension(shell)


def test_alone_it_lists_what_there_is(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("agentbench", "") is None
    told = capsys.readouterr().out
    for each in ("doctor", "draw NAME", "step NAME [N]", "set KEY=VALUE", "%%executor", "%%workflow NAME"):
        assert each in told


def test_doctor_prints_its_table(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_line_magic("agentbench", "doctor") is None
    assert "✓ python" in capsys.readouterr().out


def test_draw_returns_the_picture_of_a_variable(shell: Any) -> None:
    shell.user_ns["wf"] = flow()
    assert "upper (start) -> tell" in shell.run_line_magic("agentbench", "draw wf").text


def test_step_prints_a_line_for_each_superstep(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.user_ns["panel"] = stepper(flow(), "cats")
    shell.run_line_magic("agentbench", "step panel")
    shell.run_line_magic("agentbench", "step panel 2")
    assert capsys.readouterr().out.splitlines() == [
        "superstep 0: upper got 1 message",
        "superstep 1: tell got 1 message",
        "output of tell: CATS",
    ]


def test_set_changes_settings_as_configure_does() -> None:
    agentbench_magic("set theme=dark deterministic=yes", {})
    assert (settings.current().theme, settings.current().deterministic) == ("dark", True)


def test_a_line_that_says_nothing_known_is_answered_with_what_is() -> None:
    for line in ["dance", "doctor now", "draw", "step", "step a b", "set", "set theme"]:
        with raises(ValueError, "%agentbench step NAME [N]"):
            agentbench_magic(line, {"a": 1})


def test_a_variable_that_is_not_there_or_no_stepper_is_named() -> None:
    with raises(MagicUsageError, "'wf'"):
        agentbench_magic("draw wf", {})
    with raises(MagicUsageError, "int", "stepper"):
        agentbench_magic("step a", {"a": 1})


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%agentbench dance", "MagicUsageError: Unknown command 'dance'."),
        ("%agentbench draw nothing", "MagicUsageError: This notebook has no variable 'nothing'."),
        ("%agentbench set colour=red", "MagicUsageError: There is no setting 'colour'."),
        ("%agentbench set theme=red", "MagicUsageError: "),
        ("%agentbench draw 'wf", 'MagicUsageError: The line "draw \'wf" cannot be parsed: No closing quotation.'),
        (
            "%%executor name=x\nasync def f(text: str) -> str: ...",
            "MagicUsageError: %%executor does not take 'name=x'.",
        ),
        ("%%workflow 1st\na -> b", "MagicUsageError: %%workflow needs the name of one variable; got '1st'."),
    ],
)
def test_a_line_that_a_magic_does_not_know_is_answered_without_a_traceback(
    shell: Any, capsys: pytest.CaptureFixture[str], cell: str, told: str
) -> None:
    assert isinstance(shell.run_cell(cell).error_in_exec, MagicUsageError)
    shown = capsys.readouterr().out
    assert told in shown
    assert "Traceback" not in shown


def test_an_error_of_what_a_magic_runs_keeps_its_traceback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise ValueError("user code")

    shell.user_ns["wf"] = Broken()
    assert not isinstance(shell.run_cell("%agentbench draw wf").error_in_exec, MagicUsageError)
    assert "Traceback" in capsys.readouterr().out


# ---- completion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%agentbench ", ["doctor", "draw", "step", "set"]),
        ("%agentbench d", ["doctor", "draw", "step", "set"]),
        ("%agentbench draw ", ["wf"]),
        ("%agentbench step ", ["panel"]),
        ("%agentbench step panel ", []),
        ("%agentbench doctor ", []),
        ("%agentbench set theme=", ["auto", "light", "dark"]),
        ("%agentbench set deterministic=", ["True", "False"]),
    ],
)
def test_what_may_come_next_is_offered(line: str, expected: list[str]) -> None:
    workflow = flow()
    namespace = {"wf": workflow, "panel": stepper(flow(), "x"), "_hidden": workflow, "number": 1}
    assert completions(line, namespace) == expected


# ---- cells -----------------------------------------------------------------------------------------------------------


def test_cells_make_executors_and_a_workflow_that_runs(shell: Any) -> None:
    shell.user_ns["WorkflowContext"] = WorkflowContext
    shell.run_cell_magic("executor", "", "async def upper(text: str) -> str:\n    return text.upper()\n")
    defined = shell.run_cell_magic(
        "executor",
        "id=say",
        "async def tell(text: str, ctx: WorkflowContext[str, str]):\n    await ctx.yield_output(text)",
    )
    assert str(defined) == "say: takes str, sends str, yields str, variable tell"
    made = shell.run_cell_magic("workflow", "shout", "upper -> tell  # loud\n")
    assert made is shell.user_ns["shout"]
    assert asyncio.run(made.run("hello")).get_outputs() == ["HELLO"]
    assert ".connect(upper, tell)" in made.to_python()


def test_a_mistake_in_the_text_leaves_the_variable_as_it_was() -> None:
    namespace: dict[str, Any] = {"wf": "before"}
    with raises(WorkflowTextError, "line 2", "column 6", "'b'"):
        workflow_magic("wf", "# one\na -> b", {**namespace, "a": Upper(id="a")})
    assert namespace == {"wf": "before"}


def test_a_mistake_in_the_text_is_shown_by_its_place_and_not_by_the_way_to_it(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    done = shell.run_cell("%%workflow wf\n\na -> b c\n")
    assert isinstance(done.error_in_exec, WorkflowTextError)
    told = capsys.readouterr().out.splitlines()
    assert told[-3:] == [
        "WorkflowTextError: line 2, column 8: expected '->', '=>' or ','; found 'c'.",
        "    a -> b c",
        "           ^",
    ]
    assert not any("Traceback" in line for line in told)


def test_an_executor_takes_id_in_and_out_only() -> None:
    for line in ["shout", "name=x", "id=", "id=a id=b", "=x"]:
        with raises(ValueError, "%%executor"):
            executor_magic(line, "async def f(text: str) -> str: ...", {})


def test_types_can_be_passed_in_the_line() -> None:
    defined = executor_magic('id=up in="str | None" out=list[str]', "async def f(text, ctx): ...", {})
    assert str(defined).startswith("up: takes str | None, sends list[str], yields nothing")


def test_a_step_says_when_the_code_is_older(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell_magic("executor", "", "async def only(text: str) -> str:\n    return text\n")
    shell.user_ns["panel"] = stepper(shell.run_cell_magic("workflow", "wf", "only"), "x")
    shell.run_cell_magic("executor", "", "async def only(text: str) -> str:\n    return text * 2\n")
    shell.run_line_magic("agentbench", "step panel")
    assert capsys.readouterr().out.splitlines() == ["older code: only", "superstep 0: only got 1 message"]
