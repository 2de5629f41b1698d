"""Which schema a tool has; made when it is first needed, for that loads pydantic."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeAlias

from agentbench._copying import isolate
from agentbench.agents.tools.arguments import InputSchema, ModelSchema
from agentbench.agents.tools.json_arguments import JsonSchema
from agentbench.agents.tools.schema import is_model_class
from agentbench.agents.tools.signature import ToolSignature, read_signature

InputModel: TypeAlias = type[Any] | Mapping[str, Any] | None
"""A pydantic model class, a JSON schema, or `None` for what the signature says."""


_of_functions: weakref.WeakKeyDictionary[Callable[..., Any], LazySchema] = weakref.WeakKeyDictionary()
"""Schemas of functions met before; weak, for the functions of notebook cells that are run again."""


def schema_of(func: Callable[..., Any] | None, tool_name: str, given: InputModel) -> LazySchema:
    """Return the schema of a tool. Tools of one name and function share theirs, which is costly to make.

    Raises:
        TypeError: The function is a class or no function, or `given` describes no arguments.
        ValueError: The function has two context parameters, or does not say its parameters.
    """
    if func is None:
        return LazySchema(tool_name, given, None)
    if given is not None or not isinstance(func, FunctionType):
        return LazySchema(tool_name, given, read_signature(func, ctx_is_context=given is not None))
    known = _of_functions.get(func)
    if known is None or known.tool_name != tool_name:
        signature = read_signature(func)
        known = LazySchema(tool_name, None, signature)
        if signature.pending is None:
            _of_functions[func] = known
    return known


class LazySchema:
    """The schema of a tool, shared by its copies.

    Attributes:
        tool_name: The name of the tool.
        given: What the user described the arguments with, if anything.
        signature: The parameters of the function, if there is one.
    """

    __slots__ = ("_made", "given", "signature", "tool_name")

    def __init__(self, tool_name: str, given: InputModel, signature: ToolSignature | None) -> None:
        if given is not None and not isinstance(given, Mapping) and not is_model_class(given):
            message = (
                f"input_model={given!r} of tool {tool_name!r} describes no arguments. "
                "Expected a pydantic model class, a JSON schema as a dict, or None to go by the function's signature."
            )
            raise TypeError(message)
        self.tool_name, self.signature = tool_name, signature
        self.given = isolate(dict(given)) if isinstance(given, Mapping) else given
        self._made: InputSchema | None = None

    def get(self) -> InputSchema:
        """Return the schema.

        Raises:
            TypeError: The type of a parameter is not known or has no JSON schema.
        """
        made = self._made
        if made is None:
            made = self._made = self._make()
        return made

    def _make(self) -> InputSchema:
        if isinstance(self.given, Mapping):
            return JsonSchema(self.given, self.signature)
        if self.given is not None:
            return ModelSchema.of_model(self.given, self.signature)
        if self.signature is None:
            return JsonSchema({"properties": {}, "title": f"{self.tool_name}_input", "type": "object"})
        return ModelSchema.of_signature(self.tool_name, self.signature)

    def __reduce__(self) -> tuple[Any, ...]:
        # What was made holds parts that cannot be stored; it is made again.
        return LazySchema, (self.tool_name, self.given, self.signature)
