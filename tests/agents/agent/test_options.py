"""The options and tools of a run, put together."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.agents.agent.options import (
    join_instructions,
    merge_options,
)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.parametrize(
    ("defaults", "given", "merged"),
    [
        ({"temperature": 0.1, "seed": 1}, {"temperature": None}, {"temperature": 0.1, "seed": 1}),
        ({"temperature": 0.1}, {"temperature": 0.7, "mine": "x"}, {"temperature": 0.7, "mine": "x"}),
        ({"metadata": {"a": 1, "b": 1}}, {"metadata": {"b": 2}}, {"metadata": {"a": 1, "b": 2}}),
        ({"stop": ["a"]}, {"stop": ["b"]}, {"stop": ["b"]}),
        ({"tools": [add]}, {"tools": [add], "additional_function_arguments": {"x": 1}}, {}),
    ],
)
def test_options_of_a_run_go_over_those_of_its_agent(defaults: Any, given: Any, merged: Any) -> None:
    assert merge_options(defaults, given) == merged


@pytest.mark.parametrize(
    ("parts", "joined"),
    [((None, "", ()), None), (("a", None, "b"), "a\nb"), ((["a", "b"], "c"), "a\nb\nc")],
)
def test_empty_instructions_are_left_out(parts: Any, joined: str | None) -> None:
    assert join_instructions(*parts) == joined


def test_the_conversation_of_the_session_beats_the_option() -> None:
    assert merge_options({}, {"conversation_id": "o"}, conversation_id="s") == {"conversation_id": "s"}
    assert merge_options({}, {"conversation_id": "o"}) == {"conversation_id": "o"}


def test_a_client_may_change_what_it_gets() -> None:
    class Form: ...

    form = Form()
    defaults, given = (
        {"stop": ["a"], "metadata": {"a": [1]}},
        {"mine": {"x": [1]}, "metadata": {"b": [2]}, "form": form},
    )
    merged = merge_options(defaults, given)
    merged["stop"].append("b")
    merged["mine"]["x"].append(2)
    merged["metadata"]["a"].append(2)
    merged["metadata"]["b"].append(3)

    assert defaults == {"stop": ["a"], "metadata": {"a": [1]}}
    assert given == {"mine": {"x": [1]}, "metadata": {"b": [2]}, "form": form}
    assert merged["form"] is form
