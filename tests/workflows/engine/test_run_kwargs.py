import logging
from typing import Any

import pytest

from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.engine.run_kwargs import (
    GLOBAL,
    RUN_KWARGS,
    RunKwargsKind,
    WorkflowInvocationKwargs,
    kwargs_for,
    stored_form,
)
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.nested import WorkflowExecutor
from tests.parts.errors import raises

TOOLS: RunKwargsKind = "function_invocation_kwargs"
CLIENT: RunKwargsKind = "client_kwargs"


def reading(key):
    """A node that yields the run's arguments as it gets them, and passes its input on."""

    async def act(message, ctx):
        stored = ctx.get_state(RUN_KWARGS)
        await ctx.yield_output((key, kwargs_for(stored, key, TOOLS), kwargs_for(stored, key, CLIENT)))
        await ctx.send_message(message)

    return FunctionExecutor(act, key, input=Any, output=Any, workflow_output=Any)


def two_nodes(**settings):
    a, b = reading("A"), reading("B")
    return WorkflowBuilder(name="flow", start_executor=a, **settings).add_edge(a, b).build()


# ---- flat, or by executor ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"x": 1}, {GLOBAL: {"x": 1}}),
        ({}, {GLOBAL: {}}),
        ({"B": {"t": 2}}, {"B": {"t": 2}}),
        ({"B": {"t": 2}, "x": 1}, {"B": {"t": 2}, "x": 1}),
        ({"B": {}}, {"B": {}}),
    ],
)
def test_arguments_are_by_executor_as_soon_as_one_key_is_an_executor_id(given, stored):
    assert stored_form(given, two_nodes().executors, CLIENT) == stored


@pytest.mark.parametrize(
    ("given", "to_a", "to_b"),
    [
        ({"x": 1}, {"x": 1}, {"x": 1}),
        ({"B": {"t": 2}}, None, {"t": 2}),
        ({"B": {}}, None, {}),
        ({"A": {"t": 1}, GLOBAL: {"g": 0}}, {"t": 1}, {"g": 0}),
        (None, None, None),
    ],
    ids=["for all", "for one", "for one, empty", "for one and the rest", "none"],
)
async def test_a_node_gets_its_own_arguments_else_those_for_all(given, to_a, to_b):
    assert (await two_nodes().run("x", client_kwargs=given)).outputs == [("A", None, to_a), ("B", None, to_b)]


async def test_one_object_has_arguments_for_all_nodes_and_for_single_ones():
    given = WorkflowInvocationKwargs(global_kwargs={"x": 1, "y": 1}, executor_kwargs={"B": {"y": 2}})
    result = await two_nodes().run("x", function_invocation_kwargs=given, client_kwargs=WorkflowInvocationKwargs())
    assert result.outputs == [("A", {"x": 1, "y": 1}, {}), ("B", {"x": 1, "y": 2}, {})]


async def test_arguments_for_an_executor_that_the_workflow_lacks_are_refused():
    with raises(ValueError, "C", "A", "B"):
        await two_nodes().run("x", client_kwargs=WorkflowInvocationKwargs(executor_kwargs={"C": {}}))


def nested_twice():
    """A node before a nested workflow, in which a node comes before another nested workflow."""
    deepest = WorkflowBuilder(name="deepest", start_executor=reading("C")).build()
    inner, b = WorkflowExecutor(deepest, id="inner", allow_direct_output=True), reading("B")
    middle = WorkflowBuilder(name="middle", start_executor=b).add_edge(b, inner).build()
    outer, a = WorkflowExecutor(middle, id="outer", allow_direct_output=True), reading("A")
    return WorkflowBuilder(name="flow", start_executor=a).add_edge(a, outer).build()


@pytest.mark.parametrize(
    ("single", "to_b", "to_c"),
    [
        ({}, {"x": 1}, {"x": 1}),
        ({"C": {"y": 2}}, {"x": 1}, {"x": 1, "y": 2}),
        ({"outer": {"x": 2}, "inner": {"y": 3}}, {"x": 2}, {"x": 2, "y": 3}),
        ({"outer": {"y": 2, "B": {"x": 3}}}, {"x": 3, "y": 2}, {"x": 1, "y": 2}),
        ({"A": {"x": 2}}, {"x": 1}, {"x": 1}),
    ],
    ids=["for all", "for one inside", "for all inside", "for one by the path", "for one outside"],
)
async def test_an_object_with_both_kinds_reaches_the_nodes_of_nested_workflows(single, to_b, to_c):
    given = WorkflowInvocationKwargs(global_kwargs={"x": 1}, executor_kwargs=single)
    result = await nested_twice().run("x", client_kwargs=given)
    assert {key: kwargs for key, _, kwargs in result.outputs[1:]} == {"B": to_b, "C": to_c}


async def test_arguments_for_all_may_have_the_name_of_a_nested_node():
    given = WorkflowInvocationKwargs(global_kwargs={"B": "x"})
    assert [kwargs for _, _, kwargs in (await nested_twice().run("x", client_kwargs=given)).outputs] == [{"B": "x"}] * 3


async def test_arguments_for_an_executor_that_no_nested_workflow_has_are_refused_with_all_ids():
    with raises(ValueError, "D", "outer", "inner", "C"):
        await nested_twice().run("x", client_kwargs=WorkflowInvocationKwargs(executor_kwargs={"D": {}}))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"global_kwargs": 5}, "global_kwargs is 5"),
        ({"executor_kwargs": ["A"]}, "executor_kwargs is ['A']"),
        ({"executor_kwargs": {"A": "small"}}, "executor_kwargs['A'] is 'small'"),
    ],
)
def test_arguments_that_are_not_mappings_are_refused(given, named):
    with raises(TypeError, named):
        WorkflowInvocationKwargs(**given)


@pytest.mark.parametrize("kind", [TOOLS, CLIENT])
async def test_arguments_of_a_run_that_are_not_a_mapping_are_refused(kind):
    with raises(TypeError, f"{kind} is 5"):
        await two_nodes().run("x", **{kind: 5})


def test_arguments_are_displayed_without_secrets():
    assert "hush" not in repr(WorkflowInvocationKwargs(global_kwargs={"api_key": "hush"}))


def test_an_entry_that_is_no_dict_is_ignored_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, logger="agentbench"):
        assert kwargs_for({CLIENT: {"B": 5}}, "B", CLIENT) is None
    assert "client_kwargs for executor 'B' is 'int', not a dict" in caplog.text


# ---- over the life of an instance ------------------------------------------------------------------


class Asks(Executor):
    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(text, str, request_id="R")

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[str, Any]) -> None:
        stored = ctx.get_state(RUN_KWARGS)
        await ctx.yield_output((kwargs_for(stored, "asks", TOOLS), kwargs_for(stored, "asks", CLIENT)))


def asking(**settings):
    return WorkflowBuilder(name="flow", start_executor=Asks("asks"), **settings).build()


@pytest.mark.parametrize(
    ("with_the_answer", "got"),
    [
        ({}, ({"t": 1}, {"m": 1})),
        ({CLIENT: {"m": 2}}, ({"t": 1}, {"m": 2})),
        ({CLIENT: {}}, ({"t": 1}, {})),
        ({TOOLS: {}, CLIENT: {}}, ({}, {})),
    ],
    ids=["kept", "replaced by kind", "cleared by kind", "cleared"],
)
async def test_a_continuation_keeps_the_arguments_that_it_does_not_give_anew(with_the_answer, got):
    workflow = asking()
    await workflow.run("x", function_invocation_kwargs={"t": 1}, client_kwargs={"m": 1})
    assert (await workflow.run(responses={"R": "yes"}, **with_the_answer)).outputs == [got]


# ---- secrets -------------------------------------------------------------------------------------


async def checkpoints(storage):
    return await storage.list_checkpoints(workflow_name="flow")


async def test_arguments_are_in_no_checkpoint_by_default():
    storage = InMemoryCheckpointStorage()
    await two_nodes(checkpoint_storage=storage).run("x", client_kwargs={"api_key": "secret"})
    saved = await checkpoints(storage)
    assert len(saved) == 3
    assert "secret" not in repr([c.to_dict() for c in saved])
    assert all(RUN_KWARGS not in c.state for c in saved)


async def test_arguments_are_in_checkpoints_on_request():
    storage = InMemoryCheckpointStorage()
    workflow = two_nodes(checkpoint_storage=storage, checkpoint_run_kwargs=True)
    await workflow.run("x", client_kwargs={"model": "small"})
    assert [c.state[RUN_KWARGS] for c in await checkpoints(storage)] == [{CLIENT: {GLOBAL: {"model": "small"}}}] * 3


@pytest.mark.parametrize(
    ("saved", "given", "got"),
    [(False, {}, (None, None)), (False, {CLIENT: {"m": 2}}, (None, {"m": 2})), (True, {}, ({"t": 1}, {"m": 1}))],
    ids=["not saved, not given again", "given again", "saved"],
)
async def test_a_resumed_run_has_the_saved_arguments_or_new_ones(saved, given, got):
    storage = InMemoryCheckpointStorage()
    settings = {"checkpoint_storage": storage, "checkpoint_run_kwargs": saved}
    await asking(**settings).run("x", function_invocation_kwargs={"t": 1}, client_kwargs={"m": 1})
    last = await storage.get_latest(workflow_name="flow")
    assert last is not None
    result = await asking(**settings).run(checkpoint_id=last.checkpoint_id, responses={"R": "yes"}, **given)
    assert result.outputs == [got]


async def test_arguments_are_in_no_event():
    events = [
        e
        async for e in two_nodes().run(
            "x", stream=True, client_kwargs={"B": {"api_key": "secret"}}, options=RunOptions(observe=True)
        )
        if e.type not in ("output", "executor_completed")
    ]
    assert "secret" not in repr([e.to_json_dict() for e in events])
