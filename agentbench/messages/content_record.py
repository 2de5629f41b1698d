"""How a piece of content is stored: few slots for what most kinds need, one dictionary for everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict

from agentbench._display import Displayable
from agentbench.messages.annotation import Annotation
from agentbench.messages.usage import UsageDetails

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.messages.content import Content


class ContentFields(TypedDict, total=False):
    """What a piece of content may hold, in the order in which it is written."""

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


class CommonFields(TypedDict, total=False):
    """What any piece of content may have."""

    annotations: Sequence[Annotation] | None
    additional_properties: Mapping[str, Any] | None
    raw_representation: Any


FIELDS: Final = tuple(ContentFields.__annotations__)
_KNOWN: Final = frozenset(FIELDS)
#: Those of texts, calls and results, which are most of a conversation.
_SLOTTED: Final = ("text", "call_id", "name", "arguments", "result", "items")


class ContentRecord(Displayable):
    """The fields of a piece of content; those that its kind does not have are `None`."""

    __slots__ = ("_rare", "additional_properties", "annotations", "raw_representation", "type", *_SLOTTED)

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
    _rare: dict[str, Any] | None

    def __init__(
        self,
        type: str,  # noqa: A002 - the name of the field
        *,
        annotations: Sequence[Annotation] | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        raw_representation: Any = None,
        **fields: Unpack[ContentFields],
    ) -> None:
        self.type = type
        self.text = self.call_id = self.name = self.arguments = self.result = self.items = self._rare = None
        self.annotations = None if annotations is None else list(annotations)
        self.additional_properties = {} if additional_properties is None else dict(additional_properties)
        self.raw_representation = raw_representation
        for name, value in fields.items():
            if name not in _KNOWN:
                problem = f"Content has no field {name!r}. Its fields are {', '.join(FIELDS)}."
                raise TypeError(problem)
            if value is not None:
                setattr(self, name, value)

    def set_fields(self) -> dict[str, Any]:
        """The fields that are not `None`, as they are, in the order of `FIELDS`; without what any content may have."""
        found = {name: value for name in _SLOTTED if (value := getattr(self, name)) is not None}
        if self._rare:
            rare = {name: value for name, value in self._rare.items() if value is not None}
            found = {name: (found | rare)[name] for name in FIELDS if name in found or name in rare}
        return found


def _rare_field(name: str) -> property:
    def read(content: ContentRecord) -> Any:
        rare = content._rare  # noqa: SLF001 - the accessors of the class
        return None if rare is None else rare.get(name)

    def write(content: ContentRecord, value: Any) -> None:
        rare = content._rare  # noqa: SLF001
        if rare is not None:
            rare[name] = value
        elif value is not None:
            content._rare = {name: value}  # noqa: SLF001

    return property(read, write)


for _name in FIELDS:
    if _name not in _SLOTTED:
        setattr(ContentRecord, _name, _rare_field(_name))
