"""The hash of a graph's code: what changes it, and what does not."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import pytest

from agentbench import (
    Agent,
    EchoChatClient,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    tool,
)
from agentbench.stategraph import AgentState, StateGraph
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.graph import code_hash as module
from agentbench.workflows.graph.code_hash import code_hash, code_hashes

BASE = """
    TONE = "brief"
    API_KEY = "1"
    calls = 0

    def clean(text):
        return text.strip()

    class Parts:
        size = 10

        def take(self, text):
            return text[: self.size]

    def limit(most):
        def check(text):
            return len(text) < most
        return check

    def within(most, parts=(1, "a"), *, strict=True):
        check = limit(most)

        count = 0

        def node(text):
            global calls
            nonlocal count
            calls += 1
            count += 1
            if text in {"x", "y", "zzz", "1"}:
                return API_KEY
            try:
                return clean(text) + TONE if check(text) else Parts().take(text)
            except ValueError:
                return [one for one in parts]

        return node

    node = within(20)
"""


def node_of(source: str) -> Any:
    """Execute the source as the module of a user, and return its function `node`."""
    made = types.ModuleType("users_module")
    exec(compile(textwrap.dedent(source), f"{len(source)}.py", "exec"), made.__dict__)
    return made.node


def workflow_of(function: Callable[..., Any]) -> Workflow:
    return WorkflowBuilder(start_executor=FunctionExecutor(function, "node", input=str, output=str)).build()


def hash_of(source: str) -> str:
    return code_hash(workflow_of(node_of(source)).graph)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("len(text) < most", "len(text) <= most"),
        ('"zzz"', '"zz"'),
        ("within(20)", "within(21)"),
        ("return text.strip()", "return text.rstrip()"),
        ('TONE = "brief"', 'TONE = "polite"'),
        ("size = 10", "size = 11"),
        ("text[: self.size]", "text[1 : self.size]"),
        ("except ValueError", "except TypeError"),
        ("[one for one in parts]", "[one for one in parts if one]"),
        ("[one for one in parts]", "sorted(parts)"),
        ("def node(text)", "async def node(text)"),
        ("def check(text)", "def check(text, more=1)"),
    ],
)
def test_an_edit_of_a_function_or_of_what_it_uses_changes_the_hash(before: str, after: str) -> None:
    edited = BASE.replace(before, after)

    assert edited != BASE
    assert hash_of(edited) != hash_of(BASE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\n", "\n\n"),
        ("        calls += 1", "        # a comment\n            calls += 1  # another one"),
        ("        def node(text):", '        def node(text):\n            """A docstring."""'),
        ("        return text.strip()", '        """A docstring."""\n        return text.strip()'),
        ("    def clean(text):", "    def unused():\n        pass\n\n    def clean(text):"),
        ("calls = 0", "calls = 7"),  # the function sets it
        ("count = 0", "count = 7"),
        ('API_KEY = "1"', 'API_KEY = "2"'),
        ('"brief"', "'brief'"),
        (
            "[one for one in parts]",
            "[\n                    one\n                    for one in parts\n                ]",
        ),
    ],
)
def test_comments_docstrings_positions_and_secrets_do_not_change_the_hash(before: str, after: str) -> None:
    edited = BASE.replace(before, after)

    assert edited != BASE
    assert hash_of(edited) == hash_of(BASE)


def test_processes_agree_whatever_their_hash_seed() -> None:
    script = """
    from tests.workflows.graph.test_code_hash import BASE, hash_of, everything
    print(hash_of(BASE), everything().graph.code_hash)
    """
    found = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip

    assert found == {f"{hash_of(BASE)} {everything().graph.code_hash}\n"}


def test_a_function_sent_by_value_has_the_same_hash() -> None:
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed (extra dask)")
    node = node_of(BASE)
    copied = cloudpickle.loads(cloudpickle.dumps(node))

    assert copied is not node
    assert code_hash(workflow_of(copied)) == code_hash(workflow_of(node))


# ---- parts of graphs


class Base(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(self.change(text))

    def change(self, text: str) -> str:
        return text


class Writer(Base):
    def __init__(self, id: str, prompt: str = "Write.") -> None:  # noqa: A002 - as of executors
        super().__init__(id)
        self.prompt, self.password, self.seen = prompt, "secret", list[str]()


def is_long(text: str) -> bool:
    return len(text) > 10


def choose(text: str, ids: list[str]) -> list[str]:
    return ids


@tool
def look(place: str) -> str:
    """Look around."""
    return place


def everything(**changed: Any) -> Workflow:
    """A workflow with every kind of part; `changed` replaces some."""
    part = {
        "prompt": "Write.",
        "condition": is_long,
        "selection": choose,
        "instructions": "Be brief.",
        "model": "small",
        "tools": [look],
        "inner": is_long,
        **changed,
    }
    client = EchoChatClient()
    client.model = part["model"]
    agent = Agent(client, part["instructions"], name="agent", tools=part["tools"])
    first, second, other, end = map(Base, ("first", "second", "other", "end"))
    inside = WorkflowBuilder(start_executor=first).add_edge(first, second, part["inner"]).build()
    writer = part.get("writer") or Writer("writer", part["prompt"])
    builder = WorkflowBuilder(start_executor=writer)
    builder.add_edge(writer, agent, part["condition"])
    builder.add_edge(writer, WorkflowExecutor(inside, "inside"))
    builder.add_multi_selection_edge_group(writer, [other, end], part["selection"])
    return builder.build()


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({"prompt": "Write a poem."}, ["writer"]),
        ({"condition": lambda text: len(text) > 11}, ["writer->agent"]),
        ({"condition": functools.partial(max, 3)}, ["writer->agent"]),
        ({"selection": lambda text, ids: ids[:1]}, ["writer->other, end"]),
        ({"instructions": "Be polite."}, ["agent"]),
        ({"model": "large"}, ["agent"]),
        ({"tools": [tool(lambda place: place * 2, name="look", description="Look around.")]}, ["agent"]),
        ({"tools": []}, ["agent"]),
        ({"inner": lambda text: True}, ["inside/first->second"]),
    ],
)
def test_the_changed_parts_are_named(changed: dict[str, Any], parts: list[str]) -> None:
    before, after = code_hashes(everything()), code_hashes(everything(**changed))

    assert [part for part in after if after[part] != before[part]] == parts
    assert everything().graph.code_hash == everything().graph.code_hash != everything(**changed).graph.code_hash


def test_what_a_run_leaves_in_an_executor_does_not_change_the_hash() -> None:
    class Counting(Writer):
        def fresh(self) -> Counting:
            return Counting(self.id, self.prompt)

    ran = Counting("writer")
    ran.seen.append("text")
    ran.n_seen = 1  # type: ignore[attr-defined]

    assert code_hashes(everything(writer=ran)) == code_hashes(everything(writer=Counting("writer")))


def test_an_edit_of_a_base_class_changes_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_hashes(everything())
    monkeypatch.setattr(Base, "change", lambda self, text: text.upper())
    after = code_hashes(everything())

    assert {part for part in after if after[part] != before[part]} == {
        "writer", "other", "end", "inside/first", "inside/second",
    }  # fmt: skip


def add_one(state: AgentState) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    ("changed", "part"),
    [({"node": lambda state: {"a": 1}}, "one"), ({"condition": lambda state: state and "__end__"}, "one->choose")],
)
def test_functions_of_state_graphs_count(changed: dict[str, Any], part: str) -> None:
    def graph(node: Any = add_one, condition: Any = lambda state: "__end__") -> Any:
        built = StateGraph(AgentState)
        built.add_node("one", node)
        built.set_entry_point("one")
        condition.__name__ = "choose"
        built.add_conditional_edges("one", condition, ["__end__"])
        return built.compile().workflow

    before, after = code_hashes(graph()), code_hashes(graph(**changed))

    assert [name for name in after if after[name] != before[name]] == [part]


async def test_a_run_computes_no_hash_of_code_and_a_graph_computes_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[Any] = []

    def compute(graph: Any) -> dict[str, str]:
        computed.append(graph)
        return {"a": "b"}

    monkeypatch.setattr(module, "code_hashes", compute)
    workflow = workflow_of(lambda text: None)
    await workflow.run("hello")
    assert computed == []
    assert workflow.graph.code_hash == workflow.graph.code_hash
    assert computed == [workflow.graph]
