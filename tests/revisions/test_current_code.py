"""Which code of a workflow changed since it was noted, and the workflow with the current code."""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agentbench.exceptions import RedoError
from agentbench.revisions import changed_parts, current_workflow
from agentbench.revisions import current_code as module
from agentbench.revisions.current_code import find_current, note_code

IMPORTS = """
    import functools
    from typing import Never
    from agentbench import Agent, EchoChatClient, Executor, WorkflowBuilder, WorkflowContext, WorkflowExecutor
    from agentbench import executor, handler, tool
    from agentbench.workflows.executors.function_executor import FunctionExecutor
"""

CODE = """
    TONE = "brief"

    def clean(text):
        return text.strip()

    class Base(Executor):
        def mark(self, text):
            return text + "!"

    class Classify(Base):
        @handler
        async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(self.mark(clean(text)) + TONE)

    def is_long(text):
        return len(text) > 1

    @executor
    async def reply(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message("re: " + text)

    def shorten(length, text: str) -> str:
        return text[:length]

    def make(word):
        async def say(text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(text + word)
        return FunctionExecutor(say, "say")

    classify = Classify("classify")
"""

BUILD = """
    workflow = (
        WorkflowBuilder(classify)
        .add_edge(classify, reply, is_long)
        .add_edge(reply, short := FunctionExecutor(functools.partial(shorten, 20), "short", send_result=True))
        .add_edge(short, make("."), lambda text: text != "no")
        .build()
    )
    del short
"""

AGENT = """
    @tool
    def weather(city: str) -> str:
        "The weather."
        return "fog in " + city

    client = EchoChatClient()
    writer = Agent(client, instructions="Be brief.", name="writer", tools=[weather])
    workflow = WorkflowBuilder(writer).build()
"""


class Cells:
    """A notebook's variables, in which cells are run."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {"__name__": "__main__"}
        self.run(IMPORTS)

    def run(self, source: str, old: str = "", new: str = "") -> None:
        assert old in source
        exec(
            compile(textwrap.dedent(source.replace(old, new, 1) if old else source), "cell", "exec", dont_inherit=True),
            self.variables,
        )

    def __getitem__(self, name: str) -> Any:
        return self.variables[name]


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Cells:
    made = Cells()
    monkeypatch.setattr(module, "user_variables", lambda: made.variables)
    return made


def output(workflow: Any) -> Any:
    return asyncio.run(workflow.run(" hi ")).get_outputs()


@pytest.mark.parametrize(
    ("old", "new", "changed", "result"),
    [
        ("self.mark(clean(text))", "clean(text)", ["classify"], "re: hibrief."),
        ('text + "!"', 'text + "?"', ["classify"], "re: hi?brief."),
        ("text.strip()", "text.strip().upper()", ["classify"], "re: HI!brief."),
        ('TONE = "brief"', 'TONE = "long"', ["classify"], "re: hi!long."),
        ('"re: "', '"to: "', ["reply"], "to: hi!brief."),
        ("text[:length]", "text[: length - 16]", ["short"], "re: ."),
        ("len(text) > 1", "len(text) > 2", ["classify->reply"], "re: hi!brief."),
        ("async def reply(text: str,", "async def reply(text: object,", [], "re: hi!brief."),
        ("def clean(text):", 'def clean(text):\n        "Clean a text."  # with care', [], "re: hi!brief."),
    ],
    ids=["handler", "base class", "helper", "constant", "function", "partial", "condition", "types only", "comment"],
)
def test_code_with_a_name_is_found_in_a_cell_that_ran_again(
    cells: Cells, old: str, new: str, changed: list[str], result: str
) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    workflow = cells["workflow"]
    note_code(workflow)
    assert output(workflow.clone()) == ["re: hi!brief."]
    cells.run(CODE)
    assert changed_parts(workflow) == ()
    cells.run(CODE, old, new)
    assert [*changed_parts(workflow)] == changed
    current = current_workflow(workflow)
    assert current is not workflow
    assert current.graph_signature_hash == workflow.graph_signature_hash
    assert output(current) == [result]


def test_a_base_class_alone_needs_its_subclass_to_be_defined_again(cells: Cells) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    note_code(cells["workflow"])
    cells.run("class Base(Executor):\n    pass\n")
    with pytest.raises(RedoError) as caught:
        current_workflow(cells["workflow"])
    assert list(caught.value.missing) == ["classify"]


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ('make(".")', 'make(";")', "say"),
        ('text != "no"', 'text != "yes"', "short->say"),
        ("partial(shorten, 20)", "partial(shorten, 5)", "short"),
    ],
    ids=["closure value", "lambda", "argument of a partial"],
)
def test_code_without_a_name_is_found_in_the_workflow_that_the_variable_now_holds(
    cells: Cells, old: str, new: str, part: str
) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    workflow = cells["workflow"]
    note_code(workflow)
    cells.run(BUILD)
    assert changed_parts(workflow) == ()
    cells.run(BUILD, old, new)
    assert changed_parts(workflow) == (part,)
    assert current_workflow(workflow).graph.code_hashes == cells["workflow"].graph.code_hashes
    cells.run(CODE, '"re: "', '"to: "')  # after the workflow was built again
    assert set(changed_parts(workflow)) == {part, "reply"}


def test_a_closure_whose_factory_changed_is_named_until_the_workflow_is_built_again(cells: Cells) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    workflow = cells["workflow"]
    note_code(workflow)
    cells.run(CODE, "text + word", "word + text")
    assert changed_parts(workflow) == ("say",)
    with pytest.raises(RedoError) as caught:
        current_workflow(workflow)
    assert [*caught.value.missing] == ["say"]
    assert "make" in caught.value.missing["say"]
    assert "workflow=" in str(caught.value)
    cells.run(BUILD)
    assert output(current_workflow(workflow)) == [".re: hi!brief"]


def test_attributes_of_an_executor_stay_unless_its_variable_holds_another(cells: Cells) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    workflow = cells["workflow"]
    workflow.executors["classify"].limit = 5
    note_code(workflow)
    cells.run(
        "class Classify(Base):\n"
        "    @handler\n"
        "    async def take(self, text: str, ctx: WorkflowContext[str]) -> None: pass\n"
    )
    current = current_workflow(workflow).executors["classify"]
    assert (current.id, current.limit, type(current)) == ("classify", 5, cells["Classify"])
    assert type(workflow.executors["classify"]) is not cells["Classify"]
    cells.run('classify = Classify("classify"); classify.limit = 6')
    assert current_workflow(workflow).executors["classify"].limit == 6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Be brief.", "Be polite."),
        ('"fog in "', '"sun in "'),
        ("The weather.", "The weather of a city."),
        ("EchoChatClient()", 'EchoChatClient(model="other")'),
    ],
    ids=["instructions", "tool", "description of a tool", "model"],
)
def test_agents_tools_and_clients_are_found_by_their_variables(cells: Cells, old: str, new: str) -> None:
    cells.run(AGENT)
    workflow = cells["workflow"]
    note_code(workflow)
    source = AGENT.partition("    workflow =")[0]
    cells.run(source)
    assert changed_parts(workflow) == ()
    cells.run(source, old, new)
    assert changed_parts(workflow) == ("writer",)
    assert current_workflow(workflow).executors["writer"].agent.instructions == cells["writer"].instructions


def test_the_variable_of_the_first_workflow_does_not_undo_a_change_that_a_redo_took(cells: Cells) -> None:
    cells.run(AGENT)
    note_code(cells["workflow"])
    cells.run(AGENT.partition("    workflow =")[0], "Be brief.", "Be polite.")
    redone = current_workflow(cells["workflow"])
    note_code(redone)
    assert changed_parts(redone) == ()
    assert current_workflow(redone).executors["writer"].agent.instructions == "Be polite."
    cells.run(AGENT, "Be brief.", "Be short.")  # a newer workflow in the variable counts
    assert current_workflow(redone) is not redone
    assert changed_parts(redone) == ("writer",)


def test_a_changed_tool_reaches_an_agent_without_a_variable(cells: Cells) -> None:
    cells.run(AGENT)
    cells.run("workflow = WorkflowBuilder(Agent(EchoChatClient(), name='writer', tools=[weather])).build()")
    workflow = cells["workflow"]
    note_code(workflow)
    cells.run(AGENT.partition("    client =")[0], "fog", "sun")
    assert changed_parts(workflow) == ("writer",)
    (now,) = current_workflow(workflow).executors["writer"].agent.default_options["tools"]
    assert now is cells["weather"]


def test_parts_of_nested_workflows_are_found(cells: Cells) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    cells.run('outer = WorkflowBuilder(WorkflowExecutor(workflow, "inner", allow_direct_output=True)).build()')
    note_code(cells["outer"])
    cells.run(CODE, '"re: "', '"to: "')
    assert changed_parts(cells["outer"]) == ("inner/reply",)
    assert output(current_workflow(cells["outer"])) == ["to: hi!brief."]


STATE_GRAPH = """
    from agentbench.stategraph import END, START, AgentState, StateGraph

    def one(state):
        return {"n": 1}
"""
COMPILE = """
    class Numbers(AgentState):
        n: int = 0

    graph = StateGraph(Numbers)
    graph.add_node("one", one)
    graph.add_edge(START, "one")
    graph.add_edge("one", END)
    app = graph.compile()
"""


def test_a_node_of_a_state_graph_is_found_once_the_graph_is_compiled_again(cells: Cells) -> None:
    cells.run(STATE_GRAPH)
    cells.run(COMPILE)
    workflow = cells["app"].workflow
    note_code(workflow)
    cells.run(STATE_GRAPH, '"n": 1', '"n": 2')
    assert changed_parts(workflow) == ("one",)
    with pytest.raises(RedoError):
        current_workflow(workflow)
    cells.run(COMPILE)
    assert not find_current(workflow).missing
    assert "one" in changed_parts(workflow)


def test_a_reloaded_module_is_found(cells: Cells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from agentbench import executor\n\n@executor(send_result=True)\ndef part(text: str) -> str:\n    return text\n"
    )
    (tmp_path / "reloaded_part.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    cells.run("import reloaded_part\nworkflow = WorkflowBuilder(reloaded_part.part).build()\n")
    note_code(cells["workflow"])
    (tmp_path / "reloaded_part.py").write_text(source.replace("return text", "return text + text"))
    assert changed_parts(cells["workflow"]) == ()
    importlib.reload(cells["reloaded_part"])
    assert changed_parts(cells["workflow"]) == ("part",)
    del sys.modules["reloaded_part"]


def test_a_variable_with_another_name_is_no_change_and_a_local_one_is(cells: Cells) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    workflow = cells["workflow"]
    note_code(workflow)
    cells.run("renamed = workflow; del workflow")
    assert changed_parts(workflow) == ()
    cells.run(CODE, "def clean(text):\n        return text.strip()", "def clean(words):\n        return words.strip()")
    assert changed_parts(workflow) == ("classify",)  # names of parameters are part of the code


def test_names_that_held_something_else_at_the_start_are_not_looked_up(cells: Cells) -> None:
    cells.run("""
        def step(text: str) -> str:
            return text + "a"
        first = FunctionExecutor(step, "first", send_result=True)
        def step(text: str, ctx: WorkflowContext[Never, str]) -> None:
            ctx.yield_output(text + "b")
        workflow = WorkflowBuilder(first).add_edge(first, FunctionExecutor(step, "second")).build()
    """)
    note_code(cells["workflow"])
    assert changed_parts(cells["workflow"]) == ()
    assert output(current_workflow(cells["workflow"])) == [" hi ab"]


def test_nothing_is_kept_alive_by_a_note(cells: Cells) -> None:
    cells.run(CODE)
    cells.run(BUILD)
    gc.collect()
    before = len(module._notes)
    note_code(cells["workflow"])
    cells.variables.clear()
    gc.collect()
    assert len(module._notes) == before
