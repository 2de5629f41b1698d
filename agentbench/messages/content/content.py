"""One piece of a message: text, data, a call of a tool, its result, a request to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from agentbench._copying import register_frozen
from agentbench._display import drawn_by
from agentbench.exceptions import ContentError
from agentbench.messages.content.addition import add_contents
from agentbench.messages.content.fields import NO_FIELDS, CommonFields, ContentRecord, SetFields
from agentbench.messages.content.media import data_uri, read_uri
from agentbench.messages.usage import UsageDetails
from agentbench.serialization.plain import to_plain, write_plain

EDITED_ARGUMENTS = "edited_arguments"
"""Key in the additional properties of an approval and of the result of its call: what the call is made with, in place
of the model's arguments."""

ELICITATION = "elicitation"
"""Key in the additional properties of an approval request: the question of a server, to be read with `question_in`."""

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_new = object.__new__


@drawn_by("agentbench.notebook.cards.conversation.views:content_bundle")
class Content(ContentRecord):
    """One piece of a message, of any kind; the fields that its kind does not have are `None`.

    Two contents are equal when their dictionaries are; they have no hash, since they can be changed until they are
    saved.

    Args:
        type: The kind, such as `"text"`. There is a class method for each kind.
        text: Text of the kinds that have one.
        annotations: Sources that it cites.
        additional_properties: Further values by name; copied into a new dictionary.
        raw_representation: The object that the service sent. Never written, never compared.
        **fields: The fields of the kind.

    Raises:
        TypeError: There is no field of one of the names, or `approved` is neither `True` nor `False`.

    Example:
        from agentbench import Content

        Content.from_text("Good morning")
        Content.from_function_call("call-1", "get_weather", arguments='{"city": "Oslo"}')
    """

    __slots__ = ()
    __hash__: ClassVar[None]

    @classmethod
    def from_text(cls, text: str, **common: Unpack[CommonFields]) -> Self:
        """Text that a person or a model wrote."""
        source: object = text
        if type(source) is not str and not isinstance(source, str):
            message = f"The text is of type {type(source).__name__}. Expected text; for a number, str(...) of it."
            raise TypeError(message)
        return cls("text", text=text, **common) if common else cls._bare("text", text, NO_FIELDS)

    @classmethod
    def _bare(cls, kind: str, text: str | None, rare: SetFields) -> Self:
        # A streamed answer makes one of these per token, so they go without the constructor.
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
        """The reasoning of a model before its answer."""
        return cls("text_reasoning", id=id, text=text, protected_data=protected_data, **common)

    @classmethod
    def from_data(cls, data: bytes | bytearray | memoryview, media_type: str, **common: Unpack[CommonFields]) -> Self:
        """Bytes, such as an image, stored as a `data:` URI."""
        return cls("data", uri=data_uri(data, media_type), media_type=media_type, **common)

    @classmethod
    def from_uri(cls, uri: str, *, media_type: str | None = None, **common: Unpack[CommonFields]) -> Self:
        """An address, or data within a `data:` URI in base64, whose media type is then read from it."""
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
        """A failure that a service reported instead of, or within, an answer."""
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
        """A model's call of a tool; the arguments are JSON text as the model wrote it, or a mapping."""
        if common:
            return cls("function_call", call_id=call_id, name=name, arguments=arguments, exception=exception, **common)
        fields = SetFields(call_id=call_id, name=name)
        if arguments is not None:
            fields.arguments = arguments
        if exception is not None:
            fields.exception = exception
        return cls._bare("function_call", None, fields)

    @classmethod
    def from_function_result(
        cls, call_id: str, *, result: Any = None, exception: str | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """The result of a call: text in `result`, and all parts in `items`.

        The argument is text, a list of contents, or any value, which is written as JSON, else by `str()`.
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
        """Numbers of tokens, as they come in a stream."""
        return cls("usage", usage_details=usage_details, **common)

    @classmethod
    def from_hosted_file(
        cls, file_id: str, *, media_type: str | None = None, name: str | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """A file that the service stores."""
        return cls("hosted_file", file_id=file_id, media_type=media_type, name=name, **common)

    @classmethod
    def from_hosted_vector_store(cls, vector_store_id: str, **common: Unpack[CommonFields]) -> Self:
        """A vector store of the service."""
        return cls("hosted_vector_store", vector_store_id=vector_store_id, **common)

    @classmethod
    def from_code_interpreter_tool_call(
        cls, *, call_id: str | None = None, inputs: Sequence[Content] | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """Code that the service runs."""
        return cls("code_interpreter_tool_call", call_id=call_id, inputs=_as_list(inputs), **common)

    @classmethod
    def from_code_interpreter_tool_result(
        cls, *, call_id: str | None = None, outputs: Sequence[Content] | None = None, **common: Unpack[CommonFields]
    ) -> Self:
        """The output of code that the service ran."""
        return cls("code_interpreter_tool_result", call_id=call_id, outputs=_as_list(outputs), **common)

    @classmethod
    def from_image_generation_tool_call(cls, *, image_id: str | None = None, **common: Unpack[CommonFields]) -> Self:
        """An image that the service draws."""
        return cls("image_generation_tool_call", image_id=image_id, **common)

    @classmethod
    def from_image_generation_tool_result(
        cls, *, image_id: str | None = None, outputs: Any = None, **common: Unpack[CommonFields]
    ) -> Self:
        """An image that the service drew."""
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
        """A call of an MCP server's tool, made by the service."""
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
        """The output of an MCP server's tool that the service called."""
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
        """A search that the service makes."""
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
        """The findings of a search of the service."""
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
        """Commands that a model wants to run in a shell."""
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
        """The output of commands, one `shell_command_output` each."""
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
        """The output of one command."""
        found: dict[str, Any] = {"stdout": stdout, "stderr": stderr, "exit_code": exit_code, "timed_out": timed_out}
        return cls("shell_command_output", **found, **common)

    @classmethod
    def from_function_approval_request(
        cls,
        id: str,  # noqa: A002 - the name of the field
        function_call: Content,
        **common: Unpack[CommonFields],
    ) -> Self:
        """The request to a person to approve a call."""
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
        """The answer of a person to the request to approve a call; `approved` is `True` or `False`."""
        decision: object = approved
        if not isinstance(decision, bool):  # a constructor takes `None` too
            message = f"approved is {approved!r}. Expected True or False."
            raise TypeError(message)
        return cls("function_approval_response", approved=approved, id=id, function_call=function_call, **common)

    @classmethod
    def from_oauth_consent_request(cls, consent_link: str, **common: Unpack[CommonFields]) -> Self:
        """The request to a person to open a link and consent there."""
        return cls("oauth_consent_request", consent_link=consent_link, user_input_request=True, **common)

    def to_function_approval_response(self, approved: bool, *, arguments: Mapping[str, Any] | None = None) -> Self:
        """Return the answer to this approval request.

        Put it into a message of the role `user` in the input of a run; anywhere else it approves nothing. It counts
        once, until the model answers again; a later one reaches the model as a call of its own.

        Args:
            approved: Whether the call may be made.
            arguments: All arguments to make it with, in place of those that the model chose.

        Raises:
            ContentError: This content is no approval request, or an incomplete one.
            TypeError: `approved` is not `True` or `False`.
        """
        if self.type != "function_approval_request" or self.id is None or self.function_call is None:
            message = f"Only an approval request with an id and a call can be answered; this content is {self!r}."
            raise ContentError(message)
        properties = {key: value for key, value in self.additional_properties.items() if key != EDITED_ARGUMENTS}
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
        """How this request is answered, for error messages; empty for contents that request nothing."""
        if self.type == "function_approval_request":
            return "Answer with request.data.to_function_approval_response(True), or with False."
        if self.type == "function_call":
            return f"Answer with Content.from_function_result({self.call_id!r}, result=...)."
        return ""

    def is_answered_by(self, answer: Content) -> bool:
        """Whether a content is an answer to this request; anything may be one to a content that requests nothing."""
        kinds = {"function_approval_request": "function_approval_response", "function_call": "function_result"}
        expected = kinds.get(self.type)
        return expected is None or (
            answer.type == expected and (answer.id or answer.call_id) == (self.id or self.call_id)
        )

    def __add__(self, other: object) -> Self:
        """Join with a content that continues this one, as in a stream; a `ContentError` if it does not."""
        if not isinstance(other, Content):
            return NotImplemented
        return add_contents(self, cast("Self", other))


def question_in(request: Content) -> Mapping[str, Any] | None:
    """Return the question of a server to a person, if that is what an approval request holds.

    No tool can have the name of its call: a request that looks like a question cannot approve a tool.
    """
    call = request.function_call
    return request.additional_properties.get(ELICITATION) if call is not None and " " in (call.name or "") else None


def _as_list(contents: Sequence[Content] | None) -> list[Content] | None:
    return None if contents is None else list(contents)


def _text_of_result(result: Any) -> str:
    if result is None or isinstance(result, str):
        return result or ""
    return write_plain(to_plain(result))


register_frozen(Content)
