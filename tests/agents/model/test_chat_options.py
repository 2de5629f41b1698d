from __future__ import annotations

import pytest

from agentbench import validate_chat_options
from agentbench.agents.tools.function_tool import FunctionTool


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("temperature", 0, 2), ("top_p", 0, 1), ("frequency_penalty", -2, 2), ("presence_penalty", -2, 2)],
)
async def test_a_number_has_to_be_in_its_range(name: str, low: int, high: int) -> None:
    for fine in (low, high):
        checked = await validate_chat_options({name: fine})
        assert checked == {name: fine}
        assert isinstance(checked[name], float)
    for wrong in (low - 0.1, high + 0.1):
        with pytest.raises(ValueError, match=name):
            await validate_chat_options({name: wrong})


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens"])
async def test_a_truth_value_is_no_number(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        await validate_chat_options({name: True})


async def test_there_is_room_for_at_least_one_token() -> None:
    assert await validate_chat_options({"max_tokens": 1}) == {"max_tokens": 1}
    with pytest.raises(ValueError, match="max_tokens"):
        await validate_chat_options({"max_tokens": 0})


async def test_tools_are_made_of_functions_and_the_options_given_stay_as_they_are() -> None:
    def act() -> str:
        return "x"

    given = {"tools": act, "seed": 1, "temperature": None, "unknown": "kept"}

    checked = await validate_chat_options(given)

    assert isinstance(checked["tools"][0], FunctionTool)
    assert {key: value for key, value in checked.items() if key != "tools"} == {
        "seed": 1,
        "temperature": None,
        "unknown": "kept",
    }
    assert given["tools"] is act
