"""One piece of a message: text, data, a tool call, its result, or a request for user input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, Unpack, cast

from agentbench._copying import register_frozen
from agentbench._display import drawn_by
from agentbench.exceptions import ContentError
from agentbench.messages.content.addition import add_contents
from agentbench.messages.content.fields import NO_FIELDS, CommonFields, ContentRecord, SetFields
from agentbench.messages.content.media import data_uri, read_uri
from agentbench.messages.usage import UsageDetails
from agentbench.serialization.callable_text import plain_if_callable
from agentbench.serialization.plain import to_plain, write_plain

EDITED_ARGUMENTS = "edited_arguments"
"""Key in the additional properties of an approval and of the result of its call. The value holds the arguments that
replace those of the model."""

ALWAYS_APPROVE = "always_approve"
"""Key in the additional properties of an approval that is also for later calls: of the `tool`, or with the same
`arguments`."""

STANDING = "standing"
"""Key in the additional properties of an approval request: whether an approval can also be for later calls."""

ASKED_TOOL = "tool"
"""Key in the additional properties of an approval request: the identity of the tool that the person is asked about, or
`None` if the agent does not know it."""

HANDOFF = "_handoff"
"""Key in the additional properties of the result of a handoff: the node to which the conversation goes."""

_DECISIONS = (EDITED_ARGUMENTS, ALWAYS_APPROVE)

ELICITATION = "elicitation"
"""Key in the additional properties of an approval request: a question of an MCP server. Read it with `question_in`."""

_new = object.__new__


@drawn_by("agentbench.notebook.cards.conversation.views:content_bundle")
class Content(ContentRecord):
    """One piece of a message, of any type. Fields that its type does not have are `None`.

    Two contents are equal if their dictionaries are equal. They have no hash, because they can be changed until they
    are saved.

    Args:
        type: The type, such as `"text"`. Each type has a class method that makes it.
        text: The text, for types that have one.
        annotations: Sources that the content cites.
        additional_properties: Additional values by name; copied into a new dictionary.
        raw_representation: The object that the service sent. Not serialized and not compared.
        **fields: The fields of the type.

    Raises:
        TypeError: A field name is unknown, or `approved` is neither `True` nor `False`.

    Example:
        from agentbench import Content

        Content.from_text("Good morning")
        Content.from_function_call("call-1", "get_weather", arguments='{"city": "Oslo"}')
    """

    __slots__ = ()
    __hash__: ClassVar[None]

    @classmethod
    def from_text(cls, text: str, **common: Unpack[CommonFields]) -> Self:
        """Make content for text that a user or a model wrote."""
        source: object = text
        if type(source) is not str:
            if not isinstance(source, str):
                message = f"Expected text, but got {type(source).__name__}. Convert a number with str(...)."
                raise TypeError(message)
            text = plain_if_callable(text)
        return cls("text", text=text, **common) if common else cls._bare("text", text, NO_FIELDS)

    @classmethod
    def _bare(cls, kind: str, text: str | None, rare: SetFields) -> Self:
        # Skips the constructor, because a streamed answer creates one per token.
        content = _new(cls)
        content.type = kind
        content.text = text
        content.annotations = content.raw_representation = None
        content.additional_properties = {}
        content._rare = rare  # noqa: SLF001 - the instance is new
        return content

    @classmethod
    def from_text_reasoning(
        cls,
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        text: str | None = None,
        protected_data: str | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for the reasoning of a model before its answer."""
        return cls("text_reasoning", id=id, text=text, protected_data=protected_data, **common)

    @classmethod
    def from_data(cls, data: bytes | bytearray | memoryview, media_type: str, **common: Unpack[CommonFields]) -> Self:
        """Make content from bytes, such as an image; they are stored as a `data:` URI."""
        return cls("data", uri=data_uri(data, media_type), media_type=media_type, **common)

    @classmethod
    def from_uri(cls, uri: str, *, media_type: str | None = None, **common: Unpack[CommonFields]) -> Self:
        """Make content from a URI. The media type of a base64 `data:` URI is read from the URI."""
        kind, found = read_uri(uri, media_type)
        return cls(kind, uri=uri, media_type=found, **common)

    @classmethod
    def from_error(
        cls,
        *,
        message: str | None = None,
        error_code: str | None = None,
        error_details: str | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for an error that a service reported instead of an answer or within it."""
        return cls("error", message=message, error_code=error_code, error_details=error_details, **common)

    @classmethod
    def from_function_call(
        cls,
        call_id: str,
        name: str,
        *,
        arguments: str | Mapping[str, Any] | None = None,
        exception: str | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for a model's tool call; the arguments are the model's JSON text, or a mapping."""
        if common:
            return cls("function_call", call_id=call_id, name=name, arguments=arguments, exception=exception, **common)
        fields = SetFields(call_id=call_id, name=name)
        if arguments is not None:
            fields.arguments = plain_if_callable(arguments)
        if exception is not None:
            fields.exception = exception
        return cls._bare("function_call", None, fields)

    @classmethod
    def from_function_result(
        cls, call_id: str, *, result: Any = None, exception: str | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """Make content for the result of a call, with its text in `result` and all parts in `items`.

        `result` is text, a list of contents, or any other value, which becomes JSON if possible, else `str()`.
        """
        items = [item for item in result if isinstance(item, Content)] if isinstance(result, list) else None
        if items is not None and len(items) == len(result):
            text = "\n".join([item.text for item in items if item.type == "text" and item.text])
        else:
            text = _text_of_result(result)
            items = [cls.from_text(text)]
        if common:
            return cls("function_result", call_id=call_id, result=text, items=items, exception=exception, **common)
        fields = SetFields(call_id=call_id, result=text, items=items)
        if exception is not None:
            fields.exception = exception
        return cls._bare("function_result", None, fields)

    @classmethod
    def from_usage(cls, usage_details: UsageDetails, **common: Unpack[CommonFields]) -> Self:
        """Make content for the token counts in a stream."""
        return cls("usage", usage_details=usage_details, **common)

    @classmethod
    def from_hosted_file(
        cls, file_id: str, *, media_type: str | None = None, name: str | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """Make content for a file that the service stores."""
        return cls("hosted_file", file_id=file_id, media_type=media_type, name=name, **common)

    @classmethod
    def from_hosted_vector_store(cls, vector_store_id: str, **common: Unpack[CommonFields]) -> Self:
        """Make content for a vector store of the service."""
        return cls("hosted_vector_store", vector_store_id=vector_store_id, **common)

    @classmethod
    def from_code_interpreter_tool_call(
        cls, *, call_id: str | None = None, inputs: Sequence[Content] | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """Make content for code that the service runs."""
        return cls("code_interpreter_tool_call", call_id=call_id, inputs=_as_list(inputs), **common)

    @classmethod
    def from_code_interpreter_tool_result(
        cls, *, call_id: str | None = None, outputs: Sequence[Content] | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """Make content for the output of code that the service ran."""
        return cls("code_interpreter_tool_result", call_id=call_id, outputs=_as_list(outputs), **common)

    @classmethod
    def from_image_generation_tool_call(cls, *, image_id: str | None = None, **common: Unpack[CommonFields]) -> Self:
        """Make content for a request to the service to generate an image."""
        return cls("image_generation_tool_call", image_id=image_id, **common)

    @classmethod
    def from_image_generation_tool_result(
        cls, *, image_id: str | None = None, outputs: Any = None, **common: Unpack[CommonFields]
    ) -> Self:
        """Make content for an image that the service generated."""
        return cls("image_generation_tool_result", image_id=image_id, outputs=outputs, **common)

    @classmethod
    def from_mcp_server_tool_call(
        cls,
        call_id: str,
        tool_name: str,
        *,
        server_name: str | None = None,
        arguments: str | Mapping[str, Any] | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for the service's call of an MCP server's tool."""
        return cls(
            "mcp_server_tool_call",
            call_id=call_id,
            tool_name=tool_name,
            server_name=server_name,
            arguments=arguments,
            **common,
        )

    @classmethod
    def from_mcp_server_tool_result(cls, call_id: str, *, output: Any = None, **common: Unpack[CommonFields]) -> Self:
        """Make content for the output of an MCP server's tool that the service called."""
        return cls("mcp_server_tool_result", call_id=call_id, output=output, **common)

    @classmethod
    def from_search_tool_call(
        cls,
        call_id: str,
        *,
        tool_name: str,
        arguments: str | Mapping[str, Any] | None = None,
        status: str | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for a search by the service."""
        return cls(
            "search_tool_call", call_id=call_id, tool_name=tool_name, arguments=arguments, status=status, **common
        )

    @classmethod
    def from_search_tool_result(
        cls,
        call_id: str,
        *,
        tool_name: str,
        result: Any = None,
        items: Sequence[Content] | None = None,
        status: str | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for the results of a search by the service."""
        return cls(
            "search_tool_result",
            call_id=call_id,
            tool_name=tool_name,
            result=result,
            items=_as_list(items),
            status=status,
            **common,
        )

    @classmethod
    def from_shell_tool_call(
        cls,
        *,
        call_id: str | None = None,
        commands: list[str] | None = None,
        timeout_ms: int | None = None,
        max_output_length: int | None = None,
        status: str | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for commands that a model wants to run in a shell."""
        return cls(
            "shell_tool_call",
            call_id=call_id,
            commands=commands,
            timeout_ms=timeout_ms,
            max_output_length=max_output_length,
            status=status,
            **common,
        )

    @classmethod
    def from_shell_tool_result(
        cls,
        *,
        call_id: str | None = None,
        outputs: Sequence[Content] | None = None,
        max_output_length: int | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for the output of commands, with one `shell_command_output` per command."""
        return cls(
            "shell_tool_result",
            call_id=call_id,
            outputs=_as_list(outputs),
            max_output_length=max_output_length,
            **common,
        )

    @classmethod
    def from_shell_command_output(
        cls,
        *,
        stdout: str | None = None,
        stderr: str | None = None,
        exit_code: int | None = None,
        timed_out: bool | None = None,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for the output of one command."""
        found: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "exit_code": exit_code, "timed_out": timed_out}
        return cls("shell_command_output", **found, **common)

    @classmethod
    def from_function_approval_request(
        cls,
        id: str,  # noqa: A002 - the name of the field
        function_call: Content,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content that requests a person's approval of a call."""
        kind = "function_approval_request"
        return cls(kind, id=id, function_call=function_call, user_input_request=True, **common)

    @classmethod
    def from_function_approval_response(
        cls,
        approved: bool,
        id: str,  # noqa: A002 - the name of the field
        function_call: Content,
        **common: Unpack[CommonFields],
    ) -> Self:
        """Make content for a person's answer to an approval request; `approved` is `True` or `False`."""
        decision: object = approved
        if not isinstance(decision, bool):  # a constructor takes `None` too
            message = f"approved is {approved!r}. Expected True or False."
            raise TypeError(message)
        return cls("function_approval_response", approved=approved, id=id, function_call=function_call, **common)

    @classmethod
    def from_oauth_consent_request(cls, consent_link: str, **common: Unpack[CommonFields]) -> Self:
        """Make content that requests a person to open a link and consent there."""
        return cls("oauth_consent_request", consent_link=consent_link, user_input_request=True, **common)

    def to_function_approval_response(self, approved: bool, *, arguments: Mapping[str, Any] | None = None) -> Self:
        """Make the answer to this approval request.

        Put it into a message of the role `user` in the input of a run; anywhere else it approves nothing. It is valid
        once, until the model answers again; a later one is sent to the model as a separate call.

        Args:
            approved: Whether the call may be made.
            arguments: Complete arguments of the call, replacing those of the model.

        Raises:
            ContentError: This content is not a complete approval request.
            TypeError: `approved` is not `True` or `False`.
        """
        if self.type != "function_approval_request" or self.id is None or self.function_call is None:
            message = f"Only an approval request with an id and a call can be answered; this content is {self!r}."
            raise ContentError(message)
        properties = {key: value for key, value in self.additional_properties.items() if key not in _DECISIONS}
        if arguments is not None:
            properties[EDITED_ARGUMENTS] = dict(arguments)
        return type(self).from_function_approval_response(
            approved,
            self.id,
            self.function_call,
            annotations=self.annotations,
            additional_properties=properties,
            raw_representation=self.raw_representation,
        )

    @property
    def answer_hint(self) -> str:
        """How to answer this request, for error messages; empty for content that is not a request."""
        if self.type == "function_approval_request":
            return "Answer with request.data.to_function_approval_response(True), or with False."
        if self.type == "function_call":
            return f"Answer with Content.from_function_result({self.call_id!r}, result=...)."
        return ""

    def is_answered_by(self, answer: Content) -> bool:
        """Return whether a content answers this request; for content that is not a request always `True`."""
        kinds = {"function_approval_request": "function_approval_response", "function_call": "function_result"}
        expected = kinds.get(self.type)
        return expected is None or (
            answer.type == expected and (answer.id or answer.call_id) == (self.id or self.call_id)
        )

    def __add__(self, other: object) -> Self:
        """Join this content with its next piece in a stream; raise `ContentError` if they do not match."""
        if not isinstance(other, Content):
            return NotImplemented
        return add_contents(self, cast("Self", other))


def question_in(request: Content) -> Mapping[str, Any] | None:
    """Return the question that an MCP server asks a person, if the approval request contains one.

    Its call has a name that no tool can have, so a request that looks like a question cannot approve a tool.
    """
    call = request.function_call
    return request.additional_properties.get(ELICITATION) if call is not None and " " in (call.name or "") else None


def _as_list(contents: Sequence[Content] | None) -> list[Content] | None:
    return None if contents is None else list(contents)


def _text_of_result(result: Any) -> str:
    if result is None or isinstance(result, str):
        return plain_if_callable(result or "")  # type: ignore[no-any-return]
    return write_plain(to_plain(result))


register_frozen(Content)
