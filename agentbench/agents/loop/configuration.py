"""Limits of the tool loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, cast

from agentbench._limits import require_limit, require_seconds
from agentbench._user_code import warn_user
from agentbench.agents.arguments import check_known, check_mapping, describe

DEFAULT_MAX_ITERATIONS: Final = 40
"""The default maximum of model calls with tools per request."""


class FunctionInvocationConfiguration(TypedDict, total=False):
    """Limits and options of the tool loop. Missing keys have their defaults.

    Attributes:
        enabled: Whether tool calls are executed. If false, the model is called once and its calls are returned.
            Default `True`.
        max_iterations: Maximum number of model calls with tools per request, before a last call without tools.
            Default 40.
        max_function_calls: Maximum number of tool calls per request, checked after each batch. `None`, the default, is
            no limit.
        max_consecutive_errors_per_request: Number of consecutive failing batches after which the model gets no tools.
            Default 3; 0 means the same as 1.
        terminate_on_unknown_calls: Whether a call of an unknown tool raises `KeyError` instead of returning an error to
            the model.
        additional_tools: Tools that are offered but not executed here; their calls are returned to the caller.
        include_detailed_errors: Whether the model also gets the texts of errors.
        sync_tools_in_threads: Whether sync functions run in worker threads, so that they do not block the event loop or
            each other. Default `True`. `False` runs them one by one on the event loop, for functions with thread-bound
            objects, such as an `sqlite3` connection.
        max_duration_seconds: Number of seconds after which the model gets no tools, checked after each batch. `None`,
            the default, means no limit.
        error_scope: `"batch"` counts batches with an error; `"tool"` counts per tool and disables only that tool.
        approval_scope: `"batch"` requests approval for all calls of a batch if one of them needs it; `"call"` only for
            that call, and runs the others.
        strict_max_function_calls: Whether calls beyond `max_function_calls` also fail within a batch.

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
    max_duration_seconds: float | None
    error_scope: Literal["batch", "tool"]
    approval_scope: Literal["batch", "call"]
    strict_max_function_calls: bool


_LEAST: Final = {"max_iterations": 1, "max_function_calls": 1, "max_consecutive_errors_per_request": 0}
_CHOICES: Final = {"error_scope": ("batch", "tool"), "approval_scope": ("batch", "call")}
_SWITCHES: Final = frozenset(
    name for name, kind in FunctionInvocationConfiguration.__annotations__.items() if "bool" in str(kind)
)
_KNOWN: Final = tuple(FunctionInvocationConfiguration.__annotations__)
_OPTIONAL: Final = frozenset(("max_function_calls", "max_duration_seconds"))


def check_configuration(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration with its current names; raise TypeError or ValueError if a key or value is invalid."""
    check_mapping("function_invocation_configuration", config, '{"max_iterations": 10}')
    if "max_duration_s" in config:
        warn_user("max_duration_s is now called max_duration_seconds.", DeprecationWarning)
        config = {"max_duration_seconds" if key == "max_duration_s" else key: config[key] for key in config}
    check_known("function_invocation_configuration", config, _KNOWN)
    for key, value in config.items():
        none = "no limit" if key in _OPTIONAL else ""
        if key in _LEAST:
            require_limit(key, value, least=_LEAST[key], none=none)
        elif key == "max_duration_seconds":
            require_seconds(key, value, none=none)
        elif key in _CHOICES and value not in _CHOICES[key]:
            message = f"{key} is {value!r}. Expected {_CHOICES[key][0]!r} or {_CHOICES[key][1]!r}."
            raise ValueError(message)
        elif key in _SWITCHES and not isinstance(value, bool):
            message = f"{key} is {describe(value)}. Expected True or False."
            raise TypeError(message)
    return config


def normalize_function_invocation_configuration(
    config: Mapping[str, Any] | None = None,
) -> FunctionInvocationConfiguration:
    """Check a configuration, and return a copy with the defaults of its main keys.

    Args:
        config: A `FunctionInvocationConfiguration`; `None` for the defaults.

    Raises:
        TypeError: A value has the wrong type, or the configuration is not a mapping.
        ValueError: A key is unknown, a limit is too small, or a scope is invalid.

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
    checked.update(cast("FunctionInvocationConfiguration", check_configuration(config)))
    checked["additional_tools"] = list(checked["additional_tools"] or ())
    return checked
