"""How far the loop between a model and its tools may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, cast

from agentbench.agents.arguments import check_known, check_mapping, check_whole_number, describe


class FunctionInvocationConfiguration(TypedDict, total=False):
    """Limits and habits of the loop; what is missing has its default.

    Attributes:
        enabled: `False`: the model is called once and its calls are handed back as they are.
        max_iterations: How many times the model may be asked with tools. 40.
        max_function_calls: How many calls may be run in one request; looked at after a batch. `None`: any number.
        max_consecutive_errors_per_request: After how many failing batches in a row tools are taken away. 3; with 0
            as with 1 after the first.
        terminate_on_unknown_calls: A call of an unknown tool raises `KeyError` instead of telling the model.
        additional_tools: Tools that are known but never run here: calls of them are handed back.
        include_detailed_errors: The model also gets the text of an error.
        sync_tools_in_threads: Plain functions run in threads, so that they neither block the event loop nor wait for
            one another.
        max_duration_s: After how many seconds tools are taken away. Looked at after a batch; none by default.
        error_scope: `"batch"` counts batches with an error; `"tool"` counts for each tool and takes only that one away.
        approval_scope: `"batch"` asks a person about every call of a batch once one of them needs it; `"call"` only
            about that one, and runs the others.
        strict_max_function_calls: Calls beyond `max_function_calls` are not run, also within a batch; the model is
            told.
    """

    enabled: bool
    max_iterations: int
    max_function_calls: int | None
    max_consecutive_errors_per_request: int
    terminate_on_unknown_calls: bool
    additional_tools: Sequence[Any]
    include_detailed_errors: bool
    sync_tools_in_threads: bool
    max_duration_s: float | None
    error_scope: Literal["batch", "tool"]
    approval_scope: Literal["batch", "call"]
    strict_max_function_calls: bool


_LEAST: Final = {
    "max_iterations": (1, "at least 1"),
    "max_function_calls": (1, "at least 1, or None for any number"),
    "max_consecutive_errors_per_request": (0, "at least 0"),
}
_CHOICES: Final = {"error_scope": ("batch", "tool"), "approval_scope": ("batch", "call")}


_SWITCHES: Final = (
    *("enabled", "terminate_on_unknown_calls", "include_detailed_errors", "sync_tools_in_threads"),
    "strict_max_function_calls",
)
_KNOWN: Final = tuple(FunctionInvocationConfiguration.__annotations__)


def check_configuration(config: Mapping[str, Any]) -> None:
    """Refuse what no loop can be configured by; what is missing is no fault.

    Raises:
        TypeError: A value is of a wrong type, or this is no mapping.
        ValueError: A key is not known, a limit is too small, or a scope is none of the two.
    """
    check_mapping("function_invocation_configuration", config, '{"max_iterations": 10}')
    check_known("function_invocation_configuration", config, _KNOWN)
    for key, value in config.items():
        if key in _LEAST:
            _check_limit(key, value)
        elif key in _CHOICES:
            _check_choice(key, value)
        elif key in _SWITCHES and not isinstance(value, bool):
            message = f"{key} is {describe(value)}. Expected True or False."
            raise TypeError(message)
        elif key == "max_duration_s":
            _check_duration(value)


def _check_limit(key: str, value: Any) -> None:
    if value is None and key == "max_function_calls":
        return
    least, expected = _LEAST[key]
    if value is not None:
        check_whole_number(key, value)
    if value is None or value < least:
        message = f"{key} is {value!r}. Expected {expected}."
        raise ValueError(message)


def _check_choice(key: str, value: Any) -> None:
    choices = _CHOICES[key]
    if value not in choices:
        message = f"{key} is {value!r}. Expected {choices[0]!r} or {choices[1]!r}."
        raise ValueError(message)


def _check_duration(value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"max_duration_s is {describe(value)}. Expected a number of seconds, or None for any time."
        raise TypeError(message)
    if not value > 0:
        message = f"max_duration_s is {value!r}. Expected more than 0 seconds, or None for any time."
        raise ValueError(message)


def normalize_function_invocation_configuration(
    config: Mapping[str, Any] | None = None,
) -> FunctionInvocationConfiguration:
    """Return a configuration of its own, checked, with the defaults for what is missing.

    Raises:
        TypeError: A value is of a wrong type, or this is no mapping.
        ValueError: A key is not known, a limit is too small, or a scope is none of the two.
    """
    checked = FunctionInvocationConfiguration(
        enabled=True,
        max_iterations=40,
        max_function_calls=None,
        max_consecutive_errors_per_request=3,
        terminate_on_unknown_calls=False,
        additional_tools=[],
        include_detailed_errors=False,
    )
    if config is None:
        return checked
    check_configuration(config)
    checked.update(cast("FunctionInvocationConfiguration", config))
    checked["additional_tools"] = list(checked["additional_tools"] or ())
    return checked
