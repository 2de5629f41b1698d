"""Images, sounds and files, as both APIs need to know them."""

from __future__ import annotations

import mimetypes
from typing import NamedTuple
from urllib.parse import urlsplit

from agentbench.messages.content.content import Content

# The only sounds that are accepted, by media type.
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


class Audio(NamedTuple):
    """A sound as it is sent: base64 text and its format."""

    data: str
    format: str


def media_group(content: Content) -> str:
    """Return the kind of a `data` or `uri` content: `image`, `audio`, `video`, or `file`."""
    media_type, uri = content.media_type, content.uri or ""
    if not media_type and not uri.startswith("data:"):
        media_type = mimetypes.guess_type(urlsplit(uri).path)[0]
    group = (media_type or "").partition("/")[0].lower()
    return group if group in ("image", "audio", "video") else "file"


def audio_of(content: Content) -> Audio | None:
    """Return the sound in a content; `None` if services do not accept its format, or it is only an address."""
    kind = _AUDIO_FORMATS.get((content.media_type or "").partition(";")[0].strip().lower())
    if kind is None or content.type != "data":
        return None
    return Audio((content.uri or "").partition(",")[2], kind)


def file_name(content: Content) -> str | None:
    """Return the name of a file, from its additional properties or its `name`."""
    name = content.additional_properties.get("filename") or content.name
    return name if isinstance(name, str) else None


def image_detail(content: Content) -> str | None:
    """Return the resolution in which the model gets an image: `low`, `high`, `auto`; `None` without one."""
    detail = content.additional_properties.get("detail")
    return detail if isinstance(detail, str) else None
