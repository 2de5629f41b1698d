"""Options of a model call: tool modes, and merging."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agentbench.exceptions import ContentError
from agentbench.messages.options import ChatOptions, merge_chat_options, validate_tool_mode
from tests.parts.errors import raises


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (None, None),
        ("auto", {"mode": "auto"}),
        ("required", {"mode": "required"}),
        ("none", {"mode": "none"}),
        ({"mode": "auto"}, {"mode": "auto"}),
        ({"mode": "required", "required_function_name": "f"}, {"mode": "required", "required_function_name": "f"}),
        ({"mode": "auto", "allowed_tools": ["f", "g"]}, {"mode": "auto", "allowed_tools": ["f", "g"]}),
        ({"mode": "required", "allowed_tools": ("f",)}, {"mode": "required", "allowed_tools": ["f"]}),
        ({"mode": "required", "allowed_tools": []}, {"mode": "required", "allowed_tools": []}),
    ],
)
def test_a_tool_mode_has_its_long_form(given: Any, mode: Any) -> None:
    found = validate_tool_mode(given)
    assert found == mode
    assert found is not given or given is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("sometimes", "sometimes"),
        ({"required_function_name": "f"}, "None"),
        ({"mode": "maybe"}, "maybe"),
        ({"mode": "auto", "required_function_name": "f"}, "required"),
        ({"mode": "none", "required_function_name": "f"}, "required"),
        ({"mode": "none", "allowed_tools": ["f"]}, "none"),
        ({"mode": "auto", "allowed_tools": "f"}, "allowed_tools"),
        ({"mode": "auto", "allowed_tools": ["f", 1]}, "allowed_tools"),
        ({"mode": "auto", "allowed_tools": 3}, "allowed_tools"),
        ({"mode": "auto", "allowed_tools": {"f"}}, "allowed_tools"),
        ({"mode": "auto", "allowed_tools": b"f"}, "allowed_tools"),
    ],
)
def test_a_wrong_tool_mode_is_refused(given: Any, problem: str) -> None:
    with raises(ContentError, problem):
        validate_tool_mode(given)


@pytest.mark.parametrize(
    ("base", "override", "merged"),
    [
        (
            {"instructions": "a", "metadata": {"x": 1}, "temperature": 0.1},
            {"instructions": "b", "metadata": {"y": 2}, "temperature": None},
            {"instructions": "a\nb", "metadata": {"x": 1, "y": 2}, "temperature": 0.1},
        ),
        (None, None, {}),
        (None, {"seed": 0}, {"seed": 0}),
        ({"seed": 1}, None, {"seed": 1}),
        ({"seed": 1}, {"seed": 0}, {"seed": 0}),
        ({"instructions": ""}, {"instructions": "b"}, {"instructions": "b"}),
        ({"instructions": "a"}, {"instructions": ""}, {"instructions": "a"}),
        ({"tools": [1, 2]}, {"tools": [2, 3]}, {"tools": [1, 2, 3]}),
        ({"tools": 1}, {"tools": 2}, {"tools": [1, 2]}),
        ({}, {"tools": [1]}, {"tools": [1]}),
        ({"tools": None}, {"tools": (1,)}, {"tools": [1]}),
        ({"tools": [1]}, {"tools": []}, {"tools": [1]}),
        ({"logit_bias": {1: 1.0, 2: 2.0}}, {"logit_bias": {2: 0.0}}, {"logit_bias": {1: 1.0, 2: 0.0}}),
        ({"additional_properties": {"x": 1}}, {"additional_properties": {"x": 2}}, {"additional_properties": {"x": 2}}),
        ({"metadata": None}, {"metadata": {"x": 1}}, {"metadata": {"x": 1}}),
        ({"tool_choice": "auto"}, {"tool_choice": ""}, {"tool_choice": "auto"}),
        ({"tool_choice": "auto"}, {"tool_choice": {}}, {"tool_choice": "auto"}),
        ({"tool_choice": "auto"}, {"tool_choice": "none"}, {"tool_choice": "none"}),
        ({"of_the_provider": [1]}, {"of_the_provider": [2]}, {"of_the_provider": [2]}),
    ],
)
def test_options_are_merged_and_neither_is_changed(base: Any, override: Any, merged: dict[str, Any]) -> None:
    before = copy.deepcopy((base, override))
    found = merge_chat_options(base, override)
    assert found == merged
    for value in found.values():
        if isinstance(value, list):
            value.append("mine")
        if isinstance(value, dict):
            value["mine"] = True
    assert (base, override) == before


def test_options_are_a_dictionary_that_takes_the_model_of_the_answer() -> None:
    class MyOptions(ChatOptions[int], total=False):
        top_k: int

    options: MyOptions = {"temperature": 0.5, "top_k": 3}
    assert merge_chat_options(options, {"seed": 1}) == {"temperature": 0.5, "top_k": 3, "seed": 1}
    assert {"model", "response_format", "conversation_id", "top_k"} <= set(MyOptions.__annotations__)
