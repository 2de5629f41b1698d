"""Tools made of methods."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import pytest

from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import ToolException
from tests.parts.errors import raises


def module_level(city: str) -> str:
    return f"seen {city}"


class Library:
    def __init__(self, books: str) -> None:
        self.books = books

    @tool
    def find(self, title: str) -> str:
        """Find a book."""
        return f"{title} in {self.books}"

    @tool(max_invocations=1)
    async def lend(self, title: str) -> str:
        return f"{title} from {self.books}"

    @tool
    def describes_itself(self, ctx: FunctionInvocationContext) -> str:
        return f"{self.books} {type(ctx).__name__}"

    @tool
    @classmethod
    def name_of_class(cls, greeting: str) -> str:
        """Tell the class."""
        return f"{greeting} {cls.__name__}"

    @tool
    @staticmethod
    def shout(text: str) -> str:
        return text.upper()

    @staticmethod
    @tool
    def whisper(text: str) -> str:
        return text.lower()

    plain = FunctionTool(module_level)

    def undecorated(self, title: str) -> str:
        return f"{title} of {self.books}"


async def text_of(tool: FunctionTool, **arguments: Any) -> str:
    return str((await tool.invoke(arguments=arguments))[0].text)


async def test_a_method_is_bound_to_the_instance_that_it_is_taken_from() -> None:
    one, two = Library("Oslo"), Library("Rome")
    assert one.find("Emma") == "Emma in Oslo"
    assert await text_of(two.find, title="Emma") == "Emma in Rome"
    assert await text_of(one.describes_itself) == "Oslo FunctionInvocationContext"


def test_a_bound_tool_has_no_parameter_self() -> None:
    bound = Library("Oslo").find
    assert list(bound.parameters()["properties"]) == ["title"]
    assert (bound.name, bound.description) == ("find", "Find a book.")
    assert bound.input_model is Library.find.input_model


def test_an_instance_always_has_the_same_tool() -> None:
    library = Library("Oslo")
    assert library.find is library.find
    assert library.find is not Library("Oslo").find
    assert Library.find is Library.find


async def test_counters_are_of_each_instance_and_outlive_the_bound_tool() -> None:
    one, two = Library("Oslo"), Library("Rome")
    await one.lend.invoke(title="Emma")
    gc.collect()
    with pytest.raises(ToolException):
        await one.lend.invoke(title="Emma")
    assert await text_of(two.lend, title="Emma") == "Emma from Rome"
    assert (one.lend.invocation_count, two.lend.invocation_count, Library.lend.invocation_count) == (1, 1, 0)


def test_a_tool_does_not_keep_its_instances_alive() -> None:
    library = Library("Oslo")
    library.find("Emma")
    gone = weakref.ref(library)
    del library
    gc.collect()
    assert gone() is None
    assert Library("Rome").find.invocation_count == 0


async def test_instances_that_cannot_be_referred_to_weakly_share_the_counters() -> None:
    class Slotted:
        __slots__ = ()

        @tool(max_invocations=1)
        def f(self) -> int:
            return 1

    assert Slotted().f() == 1
    with pytest.raises(ToolException):
        Slotted().f()


async def test_an_unbound_method_cannot_be_invoked() -> None:
    with raises(TypeError, "find", "self"):
        await Library.find.invoke(title="Emma")
    assert Library.find(Library("Oslo"), "Emma") == "Emma in Oslo"


async def test_a_class_method_is_bound_to_the_class() -> None:
    class Archive(Library): ...

    assert await text_of(Library.name_of_class, greeting="Hi") == "Hi Library"
    assert await text_of(Archive("x").name_of_class, greeting="Hi") == "Hi Archive"
    assert list(Library.name_of_class.parameters()["properties"]) == ["greeting"]


async def test_static_methods_and_plain_tools_are_not_bound() -> None:
    library = Library("Oslo")
    assert library.shout("a") == "A"
    assert await text_of(library.whisper, text="A") == "a"
    assert library.plain is Library.plain
    assert await text_of(library.plain, city="Oslo") == "seen Oslo"


def test_an_instance_with_tools_can_be_pickled() -> None:
    library = Library("Oslo")
    library.find("Emma")
    assert pickle.loads(pickle.dumps(library)).find("Emma") == "Emma in Oslo"
