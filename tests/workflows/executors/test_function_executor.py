import functools
from typing import Any, TypeVar

import pytest

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.function_executor import FunctionExecutor, executor
from tests.parts.errors import raises

T = TypeVar("T")


@executor
async def show(value: Any, ctx: WorkflowContext[Any, Any]) -> None:
    await ctx.yield_output(value)


def single(node):
    return WorkflowBuilder(start_executor=node).build()


async def sent(node, message):
    """What a node sends."""
    return (await WorkflowBuilder(start_executor=node).add_edge(node, show).build().run(message)).outputs


# ---- forms ---------------------------------------------------------------------------------------


def test_the_decorator_makes_a_node_named_after_the_function():
    @executor
    async def f(text: str, ctx: WorkflowContext[str]) -> None: ...

    assert isinstance(f, FunctionExecutor)
    assert f.id == "f"
    assert f.to_dict() == {"id": "f", "type": "FunctionExecutor"}
    assert (f.input_types, f.output_types, f.workflow_output_types) == ([str], [str], [])
    assert repr(f) == "FunctionExecutor('f')"


def named(text: str) -> None: ...


@pytest.mark.parametrize(
    ("node", "node_id"),
    [
        (executor(named), "named"),
        (executor()(named), "named"),
        (executor(id="")(named), "named"),
        (executor(id="other")(named), "other"),
        (executor("other")(named), "other"),
        (executor("other", id="by keyword")(named), "by keyword"),
        (executor(input=str)(lambda m: None), "<lambda>"),
        (FunctionExecutor(named, "other"), "other"),
    ],
)
def test_the_id_is_explicit_or_the_name_of_the_function(node, node_id):
    assert node.id == node_id
    assert node.input_types == [str]


def test_explicit_types_beat_annotations_one_by_one():
    @executor(id="x", input=str, output=int)
    async def f(text: float, ctx: WorkflowContext[bool, dict]) -> None: ...  # type: ignore[type-arg]

    assert (f.input_types, f.output_types, f.workflow_output_types) == ([str], [int], [dict])


def of_any(value: T) -> T:
    return value


@pytest.mark.parametrize(
    ("func", "complaint"),
    [
        (lambda a, b, c: None, "lambda"),
        (lambda a: None, "lambda"),
        (of_any, "type variable"),
        (staticmethod(named), "staticmethod"),
        (classmethod(named), "classmethod"),  # type: ignore[arg-type]
    ],
    ids=["three parameters", "no annotation", "type variable", "static method", "class method"],
)
def test_a_function_of_another_form_is_refused(func, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        executor(func)


def test_an_executor_inside_a_static_method_is_read_through_the_class():
    class Tools:
        @staticmethod
        @executor
        async def clean(text: str, ctx: WorkflowContext[str]) -> None: ...

    assert isinstance(Tools.clean, FunctionExecutor)
    assert Tools.clean.id == "clean"


class Adder:
    def __init__(self, n):
        self.n = n

    async def add(self, value: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(value + self.n)

    async def __call__(self, value: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(value + self.n)


async def multiply(factor: int, value: int, ctx: WorkflowContext[int]) -> None:
    await ctx.send_message(factor * value)


@pytest.mark.parametrize(
    ("func", "node_id"),
    [(Adder(1).add, "add"), (Adder(1), "Adder"), (functools.partial(multiply, 2), "multiply")],
    ids=["bound method", "callable object", "partial"],
)
async def test_anything_that_can_be_called_can_be_a_node(func, node_id):
    node = executor(func)
    assert node.id == node_id
    assert node.input_types == [int]
    assert (await sent(node, 5)) in ([6], [10])
    assert node.find_handler(5).is_async


# ---- results -------------------------------------------------------------------------------------


async def test_the_result_of_a_function_is_dropped():
    @executor
    def double(n: int) -> int:
        return 2 * n

    assert await sent(double, 4) == []


def sync_double(n: int) -> int:
    return 2 * n


async def async_double(n: int) -> int:
    return 2 * n


def wrapped_double(n: int) -> Any:
    return async_double(n)


@pytest.mark.parametrize("func", [sync_double, async_double, wrapped_double])
async def test_the_result_of_a_function_is_sent_on_request(func):
    assert await sent(executor(func, send_result=True), 4) == [8]
    assert await sent(executor(send_result=True)(func), 0) == [0]


async def test_neither_none_nor_the_result_of_a_function_with_a_context_is_sent():
    assert await sent(FunctionExecutor(lambda m: None, input=int, output=int, send_result=True), 3) == []

    @executor(send_result=True)
    async def f(n: int, ctx: WorkflowContext[int]) -> int:
        await ctx.send_message(n)
        return n

    assert await sent(f, 3) == [3]


# ---- plain functions -----------------------------------------------------------------------------


async def test_an_error_in_the_thread_arrives_as_it_is():
    failure = KeyError("k")

    @executor
    def fails(text: str) -> None:
        raise failure

    run = single(fails).start("x")
    with pytest.raises(KeyError) as caught:
        await run.result()
    assert caught.value is failure
    assert [e.type for e in run.events][2:] == ["executor_invoked", "executor_failed", "failed", "status"]


async def test_a_plain_function_whose_iterator_is_exhausted_fails_like_a_coroutine():
    @executor
    def fails(text: str) -> None:
        next(iter(()))

    with raises(RuntimeError, "StopIteration"):
        await single(fails).run("x")


def test_a_misspelt_limit_is_refused():
    with raises(TypeError, "'time_limit'"):
        executor(time_limit=3)(lambda text: text)  # type: ignore[call-overload]
