"""A stepper notices changed cells, and does supersteps again with the current code."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from agentbench import RunOptions
from agentbench.exceptions import RedoError
from agentbench.notebook import compare, stepper
from agentbench.notebook.stepping import screen, session
from agentbench.revisions import current_code

CELLS = """
    from typing import Never
    from agentbench import Agent, ScriptedChatClient, WorkflowBuilder, WorkflowContext, executor

    class Client(ScriptedChatClient):
        pass

    def prompt(text):
        return "Write about " + text

    @executor
    async def plan(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(prompt(text))

    @executor
    async def write(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message((await writer.run(text)).text)

    @executor
    async def finish(text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text + ".")

    client = Client([f"answer {n}" for n in range(9)])
    writer = Agent(client, name="writer")
    workflow = WorkflowBuilder(plan).add_chain([plan, write, finish]).build()
"""


class Notebook:
    """The variables of a notebook and the number of its cell."""

    def __init__(self) -> None:
        self.number = 0
        self.variables: dict[str, Any] = {"__name__": "__main__"}

    def run(self, source: str, old: str = "", new: str = "") -> None:
        assert old in source
        self.number += 1
        changed = textwrap.dedent(source.replace(old, new, 1) if old else source)
        exec(compile(changed, "cell", "exec", dont_inherit=True), self.variables)

    def redefine(self, name: str, old: str, new: str) -> None:
        start = CELLS.index("@executor\n    async def " + name) if name != "prompt" else CELLS.index("def prompt")
        self.run("    " + CELLS[start:].partition("\n\n")[0], old, new)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    made = Notebook()
    monkeypatch.setattr(current_code, "user_variables", lambda: made.variables)
    for module in (screen, session):
        monkeypatch.setattr(module, "cell_number", lambda: made.number)
    made.run(CELLS)
    return made


def open_panel(notebook: Notebook) -> Any:
    return stepper(notebook.variables["workflow"], "rain", options=RunOptions(record=True))


def test_a_changed_cell_is_noticed_at_the_next_display(notebook: Notebook) -> None:
    panel = open_panel(notebook)
    panel.run()
    assert "changed" not in panel._screen.text
    notebook.redefine("finish", '"."', '"!"')
    banner = panel._screen.state.banner
    assert banner.text.startswith("finish changed after superstep 2 ran.")
    assert banner.actions[0] == ("redo", "Redo from superstep 2")
    assert "finish changed after superstep 2 ran." in panel._screen.text
    assert "older code" not in panel._screen.text
    notebook.redefine("finish", '"."', '"."')
    assert "changed" not in panel._screen.text
    panel.close()


def test_a_redo_asks_no_model_for_what_was_recorded(notebook: Notebook) -> None:
    panel = open_panel(notebook)
    panel.run()
    notebook.redefine("finish", '"."', '"!"')
    panel.redo()
    assert str(panel.status) == "done"
    assert panel.handle.outputs == ["answer 0!"]
    assert panel.before_redo.outputs == ["answer 0."]
    assert len(notebook.variables["client"].calls) == 1
    assert panel._screen.state.banner.text == "Finished. Output: answer 0! Before the redo: answer 0."
    assert "changed" not in panel._screen.state.banner.text
    assert compare(panel.before_redo, panel.handle)._repr_mimebundle_()
    panel.close()


def test_a_redo_stops_at_a_request_that_was_not_recorded_and_shows_it(notebook: Notebook) -> None:
    panel = open_panel(notebook)
    panel.run()
    notebook.redefine("prompt", '"Write about "', '"Sing <b>about "')
    assert panel._screen.state.banner.actions[0] == ("redo", "Redo from superstep 0")
    panel.redo()
    banner = panel._screen.state.banner
    assert str(panel.status) == "paused"
    assert "Sing <b>about rain" in banner.text
    assert [name for name, _ in banner.actions] == ["allow_call", "allow_calls", "stop"]
    assert len(notebook.variables["client"].calls) == 1
    panel.step()  # does not allow it
    assert len(notebook.variables["client"].calls) == 1
    panel._session.begin(lambda model: model.allow_calls("this")).result()
    assert panel.handle.outputs == ["answer 1."]
    panel.close()


def test_a_redo_can_be_stopped_instead_of_asking_a_model(notebook: Notebook) -> None:
    panel = open_panel(notebook)
    panel.run()
    notebook.redefine("prompt", '"Write about "', '"Sing about "')
    panel.redo()
    panel.stop()
    assert str(panel.status) == "cancelled"
    assert len(notebook.variables["client"].calls) == 1
    panel.close()


def test_a_part_that_cannot_be_found_is_named_and_the_run_stays_as_it_was(notebook: Notebook) -> None:
    notebook.run("""
        def make(word):
            @executor(id="say")
            async def say(text: str, ctx: WorkflowContext[Never, str]) -> None:
                await ctx.yield_output(text + word)
            return say
    """)
    notebook.run("workflow = WorkflowBuilder(make('?')).build()")
    panel = open_panel(notebook)
    panel.run()
    notebook.run("""
        def make(word):
            return None
    """)
    assert "say changed after superstep 1 ran." in panel._screen.text
    with pytest.raises(RedoError) as caught:
        panel.redo()
    assert [*caught.value.missing] == ["say"]
    assert panel.handle.outputs == ["rain?"]
    assert str(panel.status) == "done"
    panel.close()
