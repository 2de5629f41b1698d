"""How far the loop between a model and its tools may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, cast

from agentbench._limits import require_limit, require_seconds
from agentbench.agents.arguments import check_known, check_mapping, describe

DEFAULT_MAX_ITERATIONS: Final = 40
"""The most calls of the model with tools in one request, if nothing else is set."""


class FunctionInvocationConfiguration(TypedDict, total=False):
    """Limits and options of the loop between a model and its tools; a missing key has its default.

    Attributes:
        enabled: `False`: the model is called once, and its calls are returned unexecuted. `True` by default.
        max_iterations: The most calls of the model with tools in one request; one call without tools follows. 40.
        max_function_calls: The most tool calls in one request, checked after each batch. `None`, the default: any
            number.
        max_consecutive_errors_per_request: The number of failing batches in a row after which the model gets no tools.
            3; 0 means the same as 1.
        terminate_on_unknown_calls: Whether a call of an unknown tool raises `KeyError`, rather than being answered to
            the model with an error.
        additional_tools: Tools that are known but never run here: calls of them are handed back.
        include_detailed_errors: Whether the model also gets the text of an error.
        sync_tools_in_threads: Whether sync functions run in worker threads, so that they neither block the event loop
            nor wait for one another. `True` by default; `False` runs them on the event loop, one after another, for
            functions that use something bound to its thread, such as a connection of `sqlite3`.
        max_duration_s: The number of seconds after which the model gets no tools, checked after each batch. `None`, the
            default: any time.
        error_scope: `"batch"` counts batches with an error; `"tool"` counts for each tool and takes only that one away.
        approval_scope: `"batch"` requests approval for every call of a batch once one of them needs it; `"call"` only
            for that one, and runs the others.
        strict_max_function_calls: Whether calls beyond `max_function_calls` fail also within a batch.

    Example:
        agent = Agent(
            EchoChatClient(),
            tools=[tool(lambda city: "sunny", name="weather")],
            function_invocation_configuration={"max_iterations": 5, "include_detailed_errors": True},
        )
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


_LEAST: Final = {"max_iterations": 1, "max_function_calls": 1, "max_consecutive_errors_per_request": 0}
_CHOICES: Final = {"error_scope": ("batch", "tool"), "approval_scope": ("batch", "call")}
_SWITCHES: Final = frozenset(
    name for name, kind in FunctionInvocationConfiguration.__annotations__.items() if "bool" in str(kind)
)
_KNOWN: Final = tuple(FunctionInvocationConfiguration.__annotations__)
_OPTIONAL: Final = frozenset(("max_function_calls", "max_duration_s"))


def check_configuration(config: Mapping[str, Any]) -> None:
    """Raise a TypeError or ValueError about a key or value of a configuration, if one is wrong."""
    check_mapping("function_invocation_configuration", config, '{"max_iterations": 10}')
    check_known("function_invocation_configuration", config, _KNOWN)
    for key, value in config.items():
        none = "no limit" if key in _OPTIONAL else ""
        if key in _LEAST:
            require_limit(key, value, least=_LEAST[key], none=none)
        elif key == "max_duration_s":
            require_seconds(key, value, none=none)
        elif key in _CHOICES and value not in _CHOICES[key]:
            message = f"{key} is {value!r}. Expected {_CHOICES[key][0]!r} or {_CHOICES[key][1]!r}."
            raise ValueError(message)
        elif key in _SWITCHES and not isinstance(value, bool):
            message = f"{key} is {describe(value)}. Expected True or False."
            raise TypeError(message)


def normalize_function_invocation_configuration(
    config: Mapping[str, Any] | None = None,
) -> FunctionInvocationConfiguration:
    """Return a checked copy of a configuration, with the defaults of its main keys.

    Args:
        config: A `FunctionInvocationConfiguration`; `None` for the defaults alone.

    Raises:
        TypeError: A value is of a wrong type, or the configuration is no mapping.
        ValueError: A key is unknown, a limit is too small, or a scope is neither of its two values.

    Example:
        configuration = normalize_function_invocation_configuration({"max_iterations": 5})
        assert configuration["enabled"]
    """
    checked = FunctionInvocationConfiguration(
        enabled=True,
        max_iterations=DEFAULT_MAX_ITERATIONS,
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
