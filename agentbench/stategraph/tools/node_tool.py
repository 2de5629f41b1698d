"""A tool of a `ToolNode`: what a model sees of it, and how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from agentbench._signatures.reading import readable_by_pydantic
from agentbench._workers import run_in_thread
from agentbench.messages.content.content import Content
from agentbench.observability.tool_reports import emitter_of, is_emitter

_INJECTED = ("state", "config", "tool_call_id", "emit", "runtime", "store")
_OF_MODELS = {str, int, float, bool}


class NodeTool:
    """A function, or an agent's tool, with the schema of its arguments for a model.

    A tool with a parameter that the graph fills is called as a function; any other tool of an agent by its `invoke`.
    """

    def __init__(self, tool: Any) -> None:
        self.tool = tool
        self.needs_approval = getattr(tool, "approval_mode", None) == "always_require"
        self.tags = frozenset(getattr(tool, "tags", ()))
        self.capabilities = [*getattr(tool, "capabilities", ())]
        self._is_plain = not callable(getattr(tool, "invoke", None))
        function = tool if self._is_plain else getattr(tool, "func", None)
        if self._is_plain and not hasattr(tool, "__name__"):
            message = f"{tool!r} is not a tool. Expected a named function, or an agent's tool."
            raise TypeError(message)
        self.name: str = tool.__name__ if self._is_plain else tool.name
        self._emitters: list[str] = []
        self._injected: list[str] = []
        self._is_async = inspect.iscoroutinefunction(function)
        parameters = {} if function is None else inspect.signature(function).parameters
        # The annotations of a function that an agent's tool calls by itself may name what cannot be imported here.
        if self._is_plain or not parameters.keys().isdisjoint(_INJECTED):
            self._read_parameters(parameters, get_type_hints(function, include_extras=True))
        self.is_function = self._is_plain or bool(self._injected)

    def _read_parameters(self, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]) -> None:
        """Find the parameters that the graph fills; `@tool` leaves a text or number named `state` to the model."""
        fields: dict[str, Any] = {}
        for name, parameter in parameters.items():
            hint = hints.get(name, Any)
            is_of_model = not self._is_plain and not _OF_MODELS.isdisjoint((hint, *get_args(hint)))
            if is_emitter(hint):
                self._emitters.append(name)
            elif name == "tool_call_id" or (name in _INJECTED and not is_of_model):
                self._injected.append(name)
            else:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[name] = readable_by_pydantic(hint), default
        config = ConfigDict(extra="forbid", protected_namespaces=())
        self._model: type[BaseModel] = create_model(f"{self.name}_input", __config__=config, **fields)

    def spec(self) -> dict[str, Any]:
        """Return name, description and schema in the format of chat services."""
        if not self.is_function:
            spec: dict[str, Any] = self.tool.to_json_schema_spec()
            return spec
        described = (inspect.getdoc(self.tool) if self._is_plain else self.tool.description) or ""
        function = {"name": self.name, "description": described, "parameters": self._model.model_json_schema()}
        return {"type": "function", "function": function}

    def arguments(self, call: Content) -> dict[str, Any]:
        """Return the validated arguments of a call; `ValueError` names what is wrong with them."""
        given = call.parse_arguments() or {}
        if not self.is_function:
            return given
        try:
            valid = self._model.model_validate(given)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
            )
            message = f"The arguments of {self.name} do not fit: {problems}."
            raise ValueError(message) from error
        return {name: getattr(valid, name) for name in valid.model_fields_set}

    async def call(self, arguments: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        """Call the function with the model's arguments and those of the graph."""
        if not self.is_function:
            return await self.tool.invoke(
                arguments=arguments, tool_call_id=given["tool_call_id"], skip_parsing=True, in_thread=True
            )
        call: Callable[..., Any] = self.tool
        filled = {**arguments, **{name: given[name] for name in self._injected}}
        filled |= {name: emitter_of(self.name, given["tool_call_id"]) for name in self._emitters}
        return await call(**filled) if self._is_async else await run_in_thread(call, **filled)
