"""`%agentbench`, in a real IPython shell without a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentbench import _clock
from agentbench.notebook import magics, settings
from agentbench.notebook.magics import agentbench_magic
from agentbench.notebook.stepper import stepper
from agentbench.workflow.builder import WorkflowBuilder
from agentbench.workflow.context import WorkflowContext
from agentbench.workflow.executor import Executor
from agentbench.workflow.handlers import handler
from agentbench.workflow.workflow import Workflow


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


def test_loading_adds_the_magic_and_unloading_takes_all_away(shell: Any) -> None:
    assert "agentbench" in shell.magics_manager.magics["line"]
    assert _clock.runtime_defaults().observe
    magics.load_ipython_extension(shell)
    magics.unload_ipython_extension(shell)
    assert "agentbench" not in shell.magics_manager.magics["line"]
    assert not _clock.runtime_defaults().observe


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


@pytest.mark.parametrize("line", ["", "dance", "doctor now", "draw", "step", "step a b", "set", "set theme"])
def test_a_line_that_says_nothing_known_is_answered_with_what_is(line: str) -> None:
    with pytest.raises(ValueError, match=r"%agentbench step NAME \[N\]"):
        agentbench_magic(line, {"a": 1})


def test_a_variable_that_is_not_there_or_no_stepper_is_named() -> None:
    with pytest.raises(NameError, match="no variable 'wf'"):
        agentbench_magic("draw wf", {})
    with pytest.raises(TypeError, match="a is a int, not a stepper"):
        agentbench_magic("step a", {"a": 1})
