"""Classes made by `typing.TypedDict` where pydantic reads types, on each Python."""

import typing
from typing import Annotated, Any, NotRequired, TypedDict

import pytest

from agentbench import Agent, Call, ScriptedChatClient, tool


class Options(TypedDict, total=False):
    depth: typing.Required[int]
    parts: list["Options"]
    note: Annotated[str, "What to say"]


class Place(TypedDict):
    city: str
    options: NotRequired[Options]


async def result_of(function: Any, arguments: dict[str, Any]) -> Any:
    agent = Agent(ScriptedChatClient([Call(function.__name__, arguments), "done"]), tools=[function])
    response = await agent.run("x")
    [result] = [one for message in response.messages for one in message.contents if one.type == "function_result"]
    return result.result


async def test_a_tool_takes_a_typed_dict():
    def search(options: Options) -> str:
        return f"{options}"

    nested = {"depth": 1, "parts": [{"depth": "2"}]}
    assert await result_of(search, {"options": nested}) == str({"depth": 1, "parts": [{"depth": 2}]})


@pytest.mark.parametrize(
    "annotation",
    [Place, Place | None, list[Place], dict[str, Place], tuple[Place, ...], Annotated[Place, "Where"]],
    ids=str,
)
def test_the_schema_has_the_fields_wherever_the_class_is(annotation: Any):
    def go(place: Any) -> str:
        return ""

    go.__annotations__["place"] = annotation
    schema = tool(go).parameters()
    assert schema["$defs"]["Place"]["required"] == ["city"]
    assert schema["$defs"]["Options"]["required"] == ["depth"]
