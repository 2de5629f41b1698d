"""Tools: how they are made, their text forms, their calls, and how often they may be called."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import functools
import logging
import pickle
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.agents.tools.results import SKIP_PARSING
from agentbench.exceptions import ToolException, UserInputRequiredException
from agentbench.messages.content.content import Content
from tests.parts.errors import raises


def get_weather(city: Annotated[str, "where"], days: int = 1) -> str:
    """Tell the weather.

    For some days.
    """
    return f"Fog in {city} for {days} days."


def add(a: Annotated[int, "first"], b: Annotated[int, Field(ge=0)] = 2) -> int:
    return a + b


async def text_of(tool: FunctionTool, **arguments: Any) -> str:
    [content] = await tool.invoke(arguments=arguments)
    assert content.type == "text"
    return str(content.text)


# ----------------------------------------------------------------------------------------------------------- making one


def test_a_function_alone_is_enough() -> None:
    tool = FunctionTool(get_weather)
    assert tool.name == "get_weather"
    assert tool.description == "Tell the weather.\n\nFor some days."
    assert (tool.type, tool.approval_mode, tool.kind) == ("function_tool", "never_require", None)
    assert (tool.max_invocations, tool.max_invocation_exceptions, tool.max_invocations_per_run) == (None, None, None)
    assert (tool.additional_properties, tool.result_parser) == (None, None)
    assert not tool.declaration_only


def test_a_name_alone_declares_a_tool() -> None:
    tool = FunctionTool(name="f")
    assert tool.declaration_only
    assert tool.func is None
    assert tool.parameters() == {"properties": {}, "title": "f_input", "type": "object"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "needs a function or a name"),
        ({"func": "get_weather"}, TypeError, "is not a function"),
        ({"func": FunctionTool(get_weather)}, TypeError, "func"),
        ({"func": Exception}, TypeError, "Exception"),
        (
            {"func": get_weather, "input_model": int},
            TypeError,
            "input_model",
        ),
        ({"func": get_weather, "approval_mode": "sometimes"}, ValueError, "sometimes"),
        ({"func": get_weather, "max_invocations": 0}, ValueError, "max_invocations"),
    ],
    ids=["nothing", "text", "a tool", "a class", "input_model", "approval_mode", "limit"],
)
def test_wrong_arguments_are_refused_with_what_was_expected(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with raises(error, message):
        FunctionTool(**arguments)


async def test_a_partial_is_called_with_what_it_binds() -> None:
    assert await text_of(FunctionTool(functools.partial(get_weather, days=3)), city="Oslo") == "Fog in Oslo for 3 days."
    assert await text_of(FunctionTool(functools.partial(get_weather, "Rome")), days=2) == "Fog in Rome for 2 days."


class Greeter:
    """Greets people."""

    def __call__(self, name: str) -> str:
        return f"Hello {name}"


async def test_a_callable_object_is_named_after_its_class() -> None:
    tool = FunctionTool(Greeter())
    assert (tool.name, tool.description) == ("Greeter", "Greets people.")
    assert list(tool.parameters()["properties"]) == ["name"]
    assert await text_of(tool, name="Ann") == "Hello Ann"


async def test_a_wrapped_function_shows_the_parameters_of_what_it_wraps() -> None:
    @functools.wraps(get_weather)
    def louder(*args: Any, **kwargs: Any) -> str:
        return get_weather(*args, **kwargs).upper()

    tool = FunctionTool(louder)
    assert tool.name == "get_weather"
    assert list(tool.parameters()["properties"]) == ["city", "days"]
    assert await text_of(tool, city="Oslo") == "FOG IN OSLO FOR 1 DAYS."


# -------------------------------------------------------------------------------------------------------- what it tells


class Stay(BaseModel):
    city: str
    days: int = 1


STAY = {"type": "object", "properties": {"city": {}, "days": {}}, "required": ["city"]}


def test_text_forms_name_parameters_approval_and_calls() -> None:
    tool = FunctionTool(get_weather, approval_mode="always_require", description="Fog.")
    tool("Oslo")
    assert str(tool) == "FunctionTool(name=get_weather, description=Fog.)"
    assert repr(tool) == "FunctionTool(get_weather(city, days=), approval_mode='always_require', invocation_count=1)"
    assert repr(FunctionTool(name="f")) == "FunctionTool(f(), declaration_only=True)"
    assert str(FunctionTool(lambda x: x)) == "FunctionTool(name=lambda)"
    for described in (Stay, STAY):
        assert repr(FunctionTool(name="f", input_model=described)).startswith("FunctionTool(f(city, days=)")


def test_the_schema_is_made_once_and_handed_out_as_copies() -> None:
    tool = FunctionTool(add)
    tool.parameters()["properties"]["a"]["description"] = "changed"
    tool.parameters().clear()
    assert tool.parameters()["properties"]["a"] == {"description": "first", "title": "A", "type": "integer"}
    assert tool.input_model is tool.input_model


# --------------------------------------------------------------------------------------------------------------- invoke


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"a": 1, "b": -1}, "Invalid arguments for tool 'add': b: Input should be greater than or equal to 0, not -1."),
        ({}, "Invalid arguments for tool 'add': a: Field required."),
        ({"a": "x" * 100}, "not 'xxxxxx"),
        (5, "int"),
        ([("a", 1)], "list"),
    ],
)
async def test_arguments_that_do_not_fit_are_a_type_error(arguments: Any, said: str) -> None:
    tool = FunctionTool(add)
    with pytest.raises(TypeError) as caught:
        await tool.invoke(arguments=arguments)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300
    assert tool.invocation_count == 0


async def test_an_unknown_keyword_is_an_error_and_an_unknown_key_is_ignored() -> None:
    tool = FunctionTool(add)
    with raises(TypeError, "add", "zzz"):
        await tool.invoke(a=1, zzz=1)
    with raises(TypeError, "zzz"):
        await tool.invoke(arguments={"a": 1}, zzz=1)
    assert await text_of(tool, a=1, zzz=2) == "3"


async def test_without_arguments_those_of_the_context_are_taken() -> None:
    tool = FunctionTool(add)
    [content] = await tool.invoke(context=FunctionInvocationContext(tool, {"a": 5}))
    assert content.text == "7"


async def test_any_awaitable_result_is_awaited() -> None:
    def hands_on(a: int) -> asyncio.Future[int]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        future.set_result(a)
        return future

    [content] = await FunctionTool(hands_on).invoke(arguments={"a": 3}, in_thread=False)
    assert content.text == "3"


async def test_generators_give_the_list_of_what_they_yield() -> None:
    def counts(to: int) -> Iterator[int]:
        yield from range(to)

    async def counts_slowly(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    assert await text_of(FunctionTool(counts), to=3) == "[0, 1, 2]"
    assert await text_of(FunctionTool(counts_slowly), to=3) == "[0, 1, 2]"


async def test_positional_only_parameters_are_filled() -> None:
    def power(base: int, exponent: int = 2, /, *, plus: int = 0) -> int:
        return int(base**exponent) + plus

    tool = FunctionTool(power)
    assert list(tool.parameters()["properties"]) == ["base", "exponent", "plus"]
    assert await text_of(tool, base=3) == "9"
    assert await text_of(tool, base=3, exponent=3, plus=1) == "28"


async def test_a_declared_tool_cannot_be_called() -> None:
    tool = FunctionTool(name="f")
    with raises(ToolException, "'f'"):
        tool()
    with raises(ToolException, "'f'"):
        await tool.invoke()


async def test_a_sync_function_runs_beside_the_event_loop_with_the_context_variables() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")
    where: list[int] = []

    def looks() -> list[str]:
        where.append(threading.get_ident())
        return [variable.get()]

    def yields() -> Iterator[str]:
        where.append(threading.get_ident())
        yield variable.get()

    for func in (looks, yields):
        [content] = await FunctionTool(func).invoke()
        assert content.text == '["seen"]'
    assert threading.get_ident() not in where
    await FunctionTool(looks).invoke(in_thread=False)
    assert where[-1] == threading.get_ident()


class _Looks:
    async def __call__(self) -> bool:
        return threading.current_thread() is threading.main_thread()


async def _looks_slowly() -> AsyncIterator[bool]:
    yield threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize("func", [_Looks().__call__, _Looks(), partial(_Looks.__call__, _Looks()), _looks_slowly])
async def test_an_async_function_runs_on_the_event_loop(func: Any) -> None:
    [content] = await FunctionTool(func, name="looks").invoke()
    assert content.text in ("true", "[true]")


# ----------------------------------------------------------------------------------------------------- validated before


async def test_validated_arguments_are_not_validated_again() -> None:
    seen: list[int] = []

    def double(a: Annotated[int, Doubling(seen)]) -> int:
        return a

    tool = FunctionTool(double)
    valid = tool.validate_arguments({"a": "2"})
    assert valid == {"a": 4}
    [content] = await tool.invoke(arguments=valid)
    assert (content.text, seen) == ("4", [2])
    assert tool.validate_arguments(valid) is valid


class Doubling:
    """Doubles a number in validation, and notes it."""

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        def double(value: int) -> int:
            self.seen.append(value)
            return value * 2

        return core_schema.no_info_after_validator_function(double, handler(source))


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given["numbers"].append("no number"),
        lambda given: given["table"]["a"].clear(),
        lambda given: given["set"].add("no number"),
        lambda given: given.pop("flag"),
        lambda given: given.update(place=Place(city="Rome")),
    ],
)
def test_any_change_of_validated_arguments_is_noticed(change: Callable[[dict[str, Any]], Any]) -> None:
    def f(numbers: list[int], table: dict[str, list[int]], set: set[int], flag: bool, place: Place) -> None: ...  # noqa: A002

    tool = FunctionTool(f, input_model={})
    place = Place(city="Oslo")
    given = {"numbers": [1, 2], "table": {"a": [1]}, "set": {1}, "flag": True, "place": place}
    valid = tool.validate_arguments(given)
    assert tool.validate_arguments(valid) is valid
    change(valid)
    assert tool.validate_arguments(valid) is not valid


class Place(BaseModel):
    city: str


def test_a_copy_of_validated_arguments_is_a_plain_dict() -> None:
    valid = FunctionTool(add).validate_arguments({"a": "1"})
    for copied in (copy.copy(valid), copy.deepcopy(valid), pickle.loads(pickle.dumps(valid))):
        assert copied == {"a": 1}
        assert type(copied) is dict


async def test_arguments_that_another_tool_validated_are_validated_again() -> None:
    valid = FunctionTool(lambda a: a).validate_arguments({"a": "7"})
    assert valid == {"a": "7"}
    [content] = await FunctionTool(add).invoke(arguments=valid)
    assert content.text == "9"


# ---------------------------------------------------------------------------------------------------- context parameter


async def test_the_context_is_handed_in() -> None:
    def looks(a: int, ctx: FunctionInvocationContext) -> list[Any]:
        return [a, ctx.kwargs["user"], ctx.metadata["call_id"]]

    tool = FunctionTool(looks)
    assert list(tool.parameters()["properties"]) == ["a"]
    context = FunctionInvocationContext(tool, {"a": 1}, metadata={"call_id": "c1"}, kwargs={"user": "ann"})
    [content] = await tool.invoke(arguments={"a": 1}, context=context)
    assert content.text == '[1, "ann", "c1"]'


async def test_a_context_is_made_by_default() -> None:
    found: list[FunctionInvocationContext] = []

    def looks(a: int, ctx: FunctionInvocationContext | None) -> None:
        assert ctx is not None
        found.append(ctx)

    tool = FunctionTool(looks)
    await tool.invoke(arguments={"a": "1"}, tool_call_id="c7")
    assert found[0].function is tool
    assert found[0].arguments == {"a": 1}
    assert found[0].metadata == {"call_id": "c7"}


async def test_a_model_cannot_fill_the_context_parameter() -> None:
    def looks(ctx: FunctionInvocationContext) -> str:
        return type(ctx).__name__

    assert await text_of(FunctionTool(looks), ctx="forged") == "FunctionInvocationContext"


# -------------------------------------------------------------------------------------------------------------- results


async def test_skip_parsing_returns_the_raw_value() -> None:
    def report() -> dict[str, Any]:
        return {"a": object}

    assert await FunctionTool(report, result_parser=SKIP_PARSING).invoke() == {"a": object}
    assert await FunctionTool(report).invoke(skip_parsing=True) == {"a": object}


async def test_a_parser_makes_text_or_contents() -> None:
    def report() -> int:
        return 3

    shouts = FunctionTool(report, result_parser=lambda value: f"{value}!")
    shows = FunctionTool(report, result_parser=lambda value: [Content.from_text("a"), Content.from_text("b")])
    assert [content.text for content in await shouts.invoke()] == ["3!"]
    assert [content.text for content in await shows.invoke()] == ["a", "b"]


async def test_a_parser_that_fails_is_logged_and_the_plain_text_is_used(caplog: pytest.LogCaptureFixture) -> None:
    def parse(value: Any) -> str:
        raise KeyError(value)

    tool = FunctionTool(lambda: {"a": 1}, name="report", result_parser=parse)
    with caplog.at_level(logging.WARNING, logger="agentbench"):
        [content] = await tool.invoke()
    assert content.text == "{'a': 1}"
    assert "The result parser of tool 'report' raised KeyError." in caplog.text
    assert tool.invocation_exception_count == 0


# --------------------------------------------------------------------------------------------------------------- copies


async def test_a_copy_shares_function_schema_and_counters() -> None:
    tool = FunctionTool(add, max_invocations=1, additional_properties={"k": 1})
    duplicate = copy.copy(tool)
    duplicate.additional_properties = {"k": 2}
    await duplicate.invoke(a=1)
    assert tool.additional_properties == {"k": 1}
    assert tool.input_model is duplicate.input_model
    with pytest.raises(ToolException):
        await tool.invoke(a=1)


async def test_a_deep_copy_has_properties_and_counters_of_its_own_and_the_same_function() -> None:
    greeter = Greeter()
    tool = FunctionTool(greeter, additional_properties={"k": [1]})
    tool("Ann")
    duplicate = copy.deepcopy({"tool": tool, "again": tool})
    assert duplicate["tool"] is duplicate["again"]
    assert duplicate["tool"].func is greeter
    assert duplicate["tool"].additional_properties == {"k": [1]}
    assert duplicate["tool"].additional_properties is not tool.additional_properties
    duplicate["tool"]("Bob")
    assert (tool.invocation_count, duplicate["tool"].invocation_count) == (1, 2)


def fails() -> None:
    raise KeyError("k")


async def fails_slowly() -> None:
    await asyncio.sleep(0)
    raise KeyError("k")


async def counts(tool: FunctionTool, **options: Any) -> tuple[int, int]:
    with pytest.raises(KeyError):
        await tool.invoke(**options)
    return tool.invocation_count, tool.invocation_exception_count


async def test_a_tool_is_used_up_after_its_invocations() -> None:
    tool = FunctionTool(lambda: 1, name="once", max_invocations=1)
    await tool.invoke()
    with raises(ToolException, "once", "1", "max_invocations=1"):
        await tool.invoke()
    with raises(ToolException, "reset()"):
        tool()
    assert tool.invocation_count == 1


async def test_reset_begins_again() -> None:
    tool = FunctionTool(fails, max_invocations=1, max_invocation_exceptions=1)
    assert await counts(tool) == (1, 1)
    tool.reset()
    assert (tool.invocation_count, tool.invocation_exception_count) == (0, 0)
    assert await counts(tool) == (1, 1)


@pytest.mark.parametrize("func", [fails, fails_slowly])
async def test_exceptions_are_counted_and_limited(func: Any) -> None:
    tool = FunctionTool(func, max_invocation_exceptions=2)
    assert await counts(tool) == (1, 1)
    assert await counts(tool) == (2, 2)
    with raises(ToolException, "2", "max_invocation_exceptions=2"):
        await tool.invoke()
    assert tool.invocation_count == 2


async def test_exceptions_of_generators_are_counted() -> None:
    def yields() -> Any:
        yield 1
        raise KeyError

    assert await counts(FunctionTool(yields)) == (1, 1)


async def test_exceptions_of_direct_calls_are_counted() -> None:
    plain, slow = FunctionTool(fails), FunctionTool(fails_slowly)
    with pytest.raises(KeyError):
        plain()
    with pytest.raises(KeyError):
        await slow()
    assert (plain.invocation_exception_count, slow.invocation_exception_count) == (1, 1)


async def test_a_question_to_a_person_is_no_failure() -> None:
    def asks() -> None:
        raise UserInputRequiredException([])

    async def asks_slowly() -> None:
        raise UserInputRequiredException([])

    for tool in (FunctionTool(asks), FunctionTool(asks_slowly)):
        with pytest.raises(UserInputRequiredException):
            await tool.invoke()
        with pytest.raises(UserInputRequiredException):
            await _called(tool)
        assert (tool.invocation_count, tool.invocation_exception_count) == (2, 0)


async def _called(tool: FunctionTool) -> Any:
    result = tool()
    return await result


async def test_a_cancelled_call_is_no_failure() -> None:
    tool = FunctionTool(asyncio.Event().wait, name="waits", input_model={})
    task = asyncio.ensure_future(tool.invoke())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tool.invocation_count, tool.invocation_exception_count) == (1, 0)


def test_threads_never_get_past_a_limit() -> None:
    tool = FunctionTool(lambda: 1, max_invocations=50)

    def call(_: int) -> int:
        try:
            return int(tool())
        except ToolException:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(call, range(400))) == 50
    assert tool.invocation_count == 50


# -------------------------------------------------------------------------------------------------------------- per run


async def test_outside_of_a_run_its_limit_does_not_count() -> None:
    tool = FunctionTool(lambda: 1, max_invocations_per_run=1)
    await tool.invoke()
    await tool.invoke(context=FunctionInvocationContext(tool, {}))
    assert tool() == 1
