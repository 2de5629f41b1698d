"""Images, sounds and files, as both APIs need to know them."""

from __future__ import annotations

import logging
import mimetypes
from typing import Any
from urllib.parse import urlsplit

from agentbench.messages.content.content import Content

logger = logging.getLogger("agentbench.openai")

# The only sounds that are accepted, by media type.
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


def media_group(content: Content) -> str:
    """Return the kind of a `data` or `uri` content: `image`, `audio`, `video`, or `file`."""
    media_type, uri = content.media_type, content.uri or ""
    if not media_type and not uri.startswith("data:"):
        media_type = mimetypes.guess_type(urlsplit(uri).path)[0]
    group = (media_type or "").partition("/")[0].lower()
    return group if group in ("image", "audio", "video") else "file"


def audio_part(content: Content) -> dict[str, Any] | None:
    """Return a sound as it is sent; `None` if services do not accept its format, or it is only an address."""
    kind = _AUDIO_FORMATS.get((content.media_type or "").partition(";")[0].strip().lower())
    if kind is None or content.type != "data":
        logger.debug("Audio of type %r is not sent: only wav and mp3 data are accepted.", content.media_type)
        return None
    return {"type": "input_audio", "input_audio": {"data": (content.uri or "").partition(",")[2], "format": kind}}


def file_fields(content: Content) -> dict[str, Any]:
    """Return the data of a file, and its name, from the additional properties or the content's `name`."""
    name = content.additional_properties.get("filename") or content.name
    return {"file_data": content.uri, **({"filename": name} if isinstance(name, str) else {})}


def image_detail(content: Content) -> str | None:
    """Return the resolution in which the model gets an image: `low`, `high`, `auto`; `None` without one."""
    detail = content.additional_properties.get("detail")
    return detail if isinstance(detail, str) else None
