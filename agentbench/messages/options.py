"""Options of a model call."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypedDict, cast

from agentbench.exceptions import ContentError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ResponseModelT = TypeVar("ResponseModelT", default=Any)
    OptionsCoT = TypeVar("OptionsCoT", covariant=True, default=Any)
else:  # defaults need Python 3.13, and only type checkers use them
    OptionsCoT = typing.TypeVar("OptionsCoT", covariant=True)

_MODES: Final = ("auto", "required", "none")
_MERGED: Final = frozenset(("logit_bias", "metadata", "additional_properties"))
"""Dictionary options, which are merged key by key."""


class ToolMode(TypedDict, total=False):
    """Whether a model may, must or must not call tools, and which.

    Example:
        from agentbench import ToolMode

        mode: ToolMode = {"mode": "required", "required_function_name": "search"}
    """

    mode: Literal["auto", "required", "none"]
    required_function_name: str
    allowed_tools: list[str]


class _Options(TypedDict, total=False):
    model: str
    temperature: float
    top_p: float
    max_tokens: int
    stop: str | Sequence[str]
    seed: int
    logit_bias: dict[str | int, float]
    frequency_penalty: float
    presence_penalty: float
    tools: Any
    tool_choice: ToolMode | Literal["auto", "required", "none"] | None
    allow_multiple_tool_calls: bool
    metadata: dict[str, Any]
    user: str
    store: bool
    conversation_id: str
    instructions: str


if TYPE_CHECKING:

    class ChatOptions(_Options, Generic[ResponseModelT], total=False):  # noqa: D101 - as below
        response_format: type[ResponseModelT] | Mapping[str, Any] | None

else:  # at run time any dictionary type can be subscripted

    class ChatOptions(_Options, total=False):
        """Options of a model call, all of them optional. Unknown keys are passed on to the client.

        Attributes:
            model: Name of the model.
            temperature: Randomness of the answer; 0 is the least.
            top_p: Cumulative probability of the tokens to choose from.
            max_tokens: Maximum length of the answer in tokens.
            stop: Texts that end the answer.
            seed: Number that makes answers repeatable, if the service supports it.
            logit_bias: Change in likelihood per token.
            frequency_penalty: Penalty for tokens by how often they were used.
            presence_penalty: Penalty for tokens that were used.
            tools: Functions and tools that the model may call.
            tool_choice: Whether the model may, must or must not call tools, and which.
            allow_multiple_tool_calls: Whether one answer may contain several calls.
            metadata: Values for the service to store with the call.
            user: Id of the user, for the service.
            store: Whether the service stores the conversation.
            conversation_id: Id of the conversation that the service stores.
            instructions: Text that is sent before the messages.
            response_format: Format of the answer: a pydantic model class, or a JSON schema.

        Example:
            from agentbench import Agent, ChatOptions, EchoChatClient

            options: ChatOptions = {"temperature": 0, "max_tokens": 200}
            Agent(EchoChatClient(), default_options=options)
        """

        response_format: Any


def validate_tool_mode(tool_choice: ToolMode | Mapping[str, Any] | str | None) -> ToolMode | None:
    """Convert a tool choice, a mode or a dictionary with one, to a new dictionary; `None` for `None`.

    Raises:
        ContentError: The mode is unknown, or another key does not fit the mode.

    Example:
        from agentbench import validate_tool_mode

        assert validate_tool_mode("required") == {"mode": "required"}
    """
    if tool_choice is None:
        return None
    choice: dict[str, Any] = {"mode": tool_choice} if isinstance(tool_choice, str) else dict(tool_choice)
    mode, allowed = choice.get("mode"), choice.get("allowed_tools")
    problem = None
    if mode not in _MODES:
        problem = f"Unknown tool mode {mode!r}. Expected one of {', '.join(_MODES)}."
    elif mode != "required" and "required_function_name" in choice:
        problem = f"required_function_name requires the mode 'required', but the mode is {mode!r}."
    elif allowed is not None and mode == "none":
        problem = "allowed_tools requires the mode 'auto' or 'required', but the mode is 'none'."
    elif allowed is not None:
        choice["allowed_tools"] = list(allowed) if isinstance(allowed, Sequence) else [allowed]
        if isinstance(allowed, str) or not all(isinstance(name, str) for name in choice["allowed_tools"]):
            problem = f"allowed_tools is {allowed!r}. Expected a list of tool names."
    if problem:
        raise ContentError(problem)
    return cast("ToolMode", choice)


def merge_chat_options(base: Mapping[str, Any] | None, override: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge two dictionaries of options into a new one.

    Values of `override` win, except `None` and an empty tool choice. Instructions are joined by a line break, tools are
    appended, and dictionaries are merged.

    Example:
        from agentbench import merge_chat_options

        options = merge_chat_options({"temperature": 0.2, "seed": 1}, {"temperature": 0.7})
        assert options == {"temperature": 0.7, "seed": 1}
    """
    merged = {name: _copy(value) for name, value in (base or {}).items()}
    for name, value in (override or {}).items():
        if value is None or (name == "tool_choice" and not value):
            continue
        before = merged.get(name)
        if name == "instructions":
            merged[name] = "\n".join([text for text in (before, value) if text])
        elif name == "tools":
            merged[name] = tools = as_list(before)
            for tool in as_list(value):
                if tool not in tools:
                    tools.append(tool)
        elif name in _MERGED and isinstance(before, Mapping):
            merged[name] = {**before, **value}
        else:
            merged[name] = _copy(value)
    return merged


def _copy(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict) else value


def as_list(tools: Any) -> list[Any]:
    """Return one or several tools as a list."""
    if tools is None:
        return []
    return list(tools) if isinstance(tools, Iterable) and not isinstance(tools, (str, Mapping)) else [tools]
