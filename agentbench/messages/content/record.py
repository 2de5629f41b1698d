"""How a piece of content is stored: slots for texts, which are most of a stream, and a dictionary for all else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict

from agentbench._display import Displayable
from agentbench.messages.content.annotation import Annotation
from agentbench.messages.usage import UsageDetails

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.messages.content.content import Content


class ContentFields(TypedDict, total=False):
    """What a piece of content may hold besides text."""

    protected_data: str | None
    uri: str | None
    media_type: str | None
    message: str | None
    error_code: str | None
    error_details: str | None
    usage_details: UsageDetails | None
    call_id: str | None
    name: str | None
    arguments: str | Mapping[str, Any] | None
    exception: str | None
    result: Any
    items: Sequence[Content] | None
    file_id: str | None
    vector_store_id: str | None
    inputs: Sequence[Content] | None
    outputs: Any
    image_id: str | None
    commands: list[str] | None
    timeout_ms: int | None
    max_output_length: int | None
    status: str | None
    stdout: str | None
    stderr: str | None
    exit_code: int | None
    timed_out: bool | None
    tool_name: str | None
    server_name: str | None
    output: Any
    id: str | None
    function_call: Content | None
    user_input_request: bool | None
    approved: bool | None
    consent_link: str | None


#: The attributes that hold everything.
STORED: Final = ("_rare", "additional_properties", "annotations", "raw_representation", "text", "type")


class CommonFields(TypedDict, total=False):
    """What any piece of content may have."""

    annotations: Sequence[Annotation] | None
    additional_properties: Mapping[str, Any] | None
    raw_representation: Any


_KNOWN: Final = frozenset(ContentFields.__annotations__)
#: The names of all fields, without what any content may have.
FIELDS: Final = ("text", *ContentFields.__annotations__)


class ContentRecord(Displayable):
    """The fields of a piece of content; those that its kind does not have are `None`."""

    if not TYPE_CHECKING:  # type checkers would miss slots for the properties that are added below
        __slots__ = STORED

    type: str
    text: str | None
    protected_data: str | None
    uri: str | None
    media_type: str | None
    message: str | None
    error_code: str | None
    error_details: str | None
    usage_details: UsageDetails | None
    call_id: str | None
    name: str | None
    arguments: str | Mapping[str, Any] | None
    exception: str | None
    result: Any
    items: list[Content] | None
    file_id: str | None
    vector_store_id: str | None
    inputs: list[Content] | None
    outputs: Any
    image_id: str | None
    commands: list[str] | None
    timeout_ms: int | None
    max_output_length: int | None
    status: str | None
    stdout: str | None
    stderr: str | None
    exit_code: int | None
    timed_out: bool | None
    tool_name: str | None
    server_name: str | None
    output: Any
    id: str | None
    function_call: Content | None
    user_input_request: bool | None
    approved: bool | None
    consent_link: str | None
    annotations: list[Annotation] | None
    additional_properties: dict[str, Any]
    raw_representation: Any
    #: The fields that are set, but for the text; never with a `None` in it.
    _rare: dict[str, Any] | None

    def __init__(
        self,
        type: str,  # noqa: A002 - the name of the field
        *,
        text: str | None = None,
        annotations: Sequence[Annotation] | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        raw_representation: Any = None,
        **fields: Unpack[ContentFields],
    ) -> None:
        self.type = type
        self.text = text
        self.annotations = None if annotations is None else list(annotations)
        self.additional_properties = {} if additional_properties is None else dict(additional_properties)
        self.raw_representation = raw_representation
        if not _KNOWN.issuperset(fields):
            unknown = ", ".join(repr(name) for name in fields if name not in _KNOWN)
            problem = f"Content has no field {unknown}. Its fields are {', '.join(FIELDS)}."
            raise TypeError(problem)
        if "approved" in fields and fields["approved"] is not None:
            check_approved(fields["approved"])
        self._rare = {name: value for name, value in fields.items() if value is not None} if fields else None

    def set_fields(self) -> dict[str, Any]:
        """The fields that are not `None`, as they are; without what any content may have."""
        found: dict[str, Any] = {} if self.text is None else {"text": self.text}
        if self._rare:
            found.update(self._rare)
        return found


def check_approved(approved: object) -> None:
    """Let nothing pass for a permission that only looks like one, such as the text `"no"`.

    Raises:
        TypeError: It is not `True` or `False`.
    """
    if not isinstance(approved, bool):
        problem = f"approved is {approved!r}. Expected True or False."
        raise TypeError(problem)


def _rare_field(name: str) -> property:
    def read(content: ContentRecord) -> Any:
        rare = content._rare  # noqa: SLF001 - the accessors of the class
        return None if rare is None else rare.get(name)

    def write(content: ContentRecord, value: Any) -> None:
        rare = content._rare  # noqa: SLF001
        if value is None:
            if rare is not None:
                rare.pop(name, None)
        elif rare is None:
            content._rare = {name: value}  # noqa: SLF001
        else:
            rare[name] = value

    return property(read, write)


for _name in _KNOWN:
    setattr(ContentRecord, _name, _rare_field(_name))
