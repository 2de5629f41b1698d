"""Which schema a tool has; made when it is first needed, for that loads pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from agentbench._copying import isolate
from agentbench.agents.tools.arguments import InputSchema, ModelSchema
from agentbench.agents.tools.json_arguments import JsonSchema
from agentbench.agents.tools.schema import is_model_class
from agentbench.agents.tools.signature import ToolSignature

InputModel: TypeAlias = type[Any] | Mapping[str, Any] | None
"""A pydantic model class, a JSON schema, or `None` for what the signature says."""


class LazySchema:
    """The schema of a tool, shared by its copies.

    Attributes:
        given: What the user described the arguments with, if anything.
        signature: The parameters of the function, if there is one.
    """

    __slots__ = ("_made", "_tool_name", "given", "signature")

    def __init__(self, tool_name: str, given: InputModel, signature: ToolSignature | None) -> None:
        if given is not None and not isinstance(given, Mapping) and not is_model_class(given):
            message = (
                f"input_model={given!r} of tool {tool_name!r} describes no arguments. "
                "Expected a pydantic model class, a JSON schema as a dict, or None to go by the function's signature."
            )
            raise TypeError(message)
        self._tool_name, self.signature = tool_name, signature
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
            return JsonSchema({"properties": {}, "title": f"{self._tool_name}_input", "type": "object"})
        return ModelSchema.of_signature(self._tool_name, self.signature)

    def __reduce__(self) -> tuple[Any, ...]:
        # What was made holds parts that cannot be stored; it is made again.
        return LazySchema, (self._tool_name, self.given, self.signature)
