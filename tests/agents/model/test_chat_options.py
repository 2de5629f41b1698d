from __future__ import annotations

import pytest

from agentbench import validate_chat_options
from agentbench.agents.tools.function_tool import FunctionTool
from tests.parts.errors import raises


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("temperature", 0, 2), ("top_p", 0, 1), ("presence_penalty", -2, 2)],
)
async def test_a_number_has_to_be_in_its_range(name: str, low: int, high: int) -> None:
    for fine in (low, high):
        checked = await validate_chat_options({name: fine})
        assert checked == {name: fine}
        assert isinstance(checked[name], float)
    for wrong, error in ((low - 0.1, ValueError), (high + 0.1, ValueError), (True, TypeError)):
        with raises(error, "option ", name, " is "):
            await validate_chat_options({name: wrong})
    for name in ("temperature", "top_p", "presence_penalty"):
        with raises(ValueError, name):
            await validate_chat_options({name: float("nan")})


@pytest.mark.parametrize(("wrong", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)])
async def test_the_number_of_tokens_is_whole_and_above_zero(wrong: object, error: type[Exception]) -> None:
    with raises(error, "max_tokens", "0"):
        await validate_chat_options({"max_tokens": wrong})


async def test_tools_are_made_of_functions_and_the_callers_options_are_not_changed() -> None:
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
