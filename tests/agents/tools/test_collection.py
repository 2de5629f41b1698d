"""Tools as they are given."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from agentbench.agents.agent.agent import Agent
from agentbench.agents.clients.scripted.offline import EchoChatClient
from agentbench.agents.tools.collection import enter_tool, normalize_tools, validate_tools
from agentbench.agents.tools.function_tool import FunctionTool
from tests.parts.errors import raises


def look(city: str) -> str:
    return city


def listen(what: str) -> str:
    return what


class Server:
    """Tools on a server, as far as an agent knows them."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self.is_connected = False
        self._functions = [FunctionTool(function) for function in functions]

    async def connect(self) -> None:
        assert not self.is_connected, "connected twice"
        self.is_connected = True

    @property
    def functions(self) -> list[FunctionTool]:
        assert self.is_connected, "asked before it was connected"
        return self._functions


class Toolbox:
    def __init__(self, *tools: Any) -> None:
        self.tools = tools


TOOL = FunctionTool(listen)
DECLARATION = {"type": "web_search"}


def test_tools_of_all_forms_are_one_flat_list_in_order() -> None:
    server, unknown = Server(), object()
    given = [look, [TOOL, (DECLARATION,)], Toolbox([listen]), iter([server]), unknown]
    found = normalize_tools(given)
    assert [getattr(item, "name", item) for item in found] == ["look", "listen", DECLARATION, "listen", server, unknown]
    assert found[0].func is look
    assert normalize_tools(TOOL) == [TOOL]
    assert normalize_tools() == normalize_tools([[], [()]]) == []


async def pending() -> None: ...


NO_TOOLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: 5, "5"),
    (lambda: "look", "look"),
    (pending, "pending"),
    (lambda: Agent(EchoChatClient(), name="inner"), "as_tool()"),
]


@pytest.mark.parametrize(("make", "told"), NO_TOOLS, ids=[told for _, told in NO_TOOLS])
def test_what_is_no_tool_is_refused_with_a_hint(make: Callable[[], Any], told: str) -> None:
    with raises(TypeError, told):
        normalize_tools([listen, make()])
    with raises(TypeError, told):
        Agent(EchoChatClient(), tools=[listen, make()])
    with raises(TypeError, told):
        EchoChatClient().get_response("q", options={"tools": [listen, make()]})


class Service:
    def run(self, x: int) -> int:
        return x

    def stop(self) -> None: ...


def test_a_function_that_is_passed_twice_is_one_tool() -> None:
    first, second = normalize_tools([look, [look]])
    assert first is second
    service, other = Service(), Service()
    made = normalize_tools([service.run, service.run, service.stop, other.run])
    assert made[0] is made[1]
    assert len({id(item) for item in made}) == 3


def test_a_function_that_two_agents_get_is_a_tool_of_each() -> None:
    (mine,), (yours,) = normalize_tools(look), normalize_tools(look)
    mine.approval_mode = "always_require"
    mine.invocation_count = 9
    assert (yours.approval_mode, yours.invocation_count) == ("never_require", 0)


@pytest.mark.parametrize("before", [look, FunctionTool(look, approval_mode="always_require")], ids=["plain", "tool"])
def test_a_function_is_the_tool_that_was_made_of_it_before(before: Any) -> None:
    by_name: dict[str, Any] = {}
    assert enter_tool(by_name, *normalize_tools(before))
    first = by_name["look"]
    assert not enter_tool(by_name, *normalize_tools(look))
    assert by_name["look"] is first


def test_a_tool_with_settings_is_not_the_plain_function_before_it() -> None:
    by_name: dict[str, Any] = {}
    enter_tool(by_name, *normalize_tools(look))
    with raises(ValueError, "look"):
        enter_tool(by_name, FunctionTool(look, approval_mode="always_require"))


async def test_a_mapping_that_has_tools_is_a_toolbox() -> None:
    class Box(UserDict[str, Any]):
        @property
        def tools(self) -> list[Any]:
            return list(self.values())

    class Open(UserDict[str, Any]):
        """Its keys are attributes, too."""

        def __getattr__(self, name: str) -> Any:
            if name in self.keys() - {"data"}:
                return self[name]
            raise AttributeError(name)

    class NotTools(UserDict[str, Any]):
        tools = "text"

    inner = Box(a=TOOL)
    declared, other, proxy = Open(tools=[TOOL]), NotTools(), MappingProxyType({"type": "web_search"})
    stay = [{"tools": [TOOL]}, declared, other, proxy]

    assert normalize_tools([Box(x=inner, y=DECLARATION), *stay]) == [TOOL, DECLARATION, *stay]
    assert await validate_tools(inner) == [TOOL]
    assert [one.name for one in Agent(EchoChatClient(), tools=inner).default_options["tools"]] == [TOOL.name]
