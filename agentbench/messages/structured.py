"""Reading an answer as the value that was asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger("agentbench")


def parse_value(text: str, response_format: Any) -> Any:
    """Read a text in the form that was asked for.

    Args:
        text: The answer.
        response_format: A pydantic model class, or a JSON schema as a mapping.

    Returns:
        An instance of the model, else what the JSON holds; `None` without a format, and for an empty text.

    Raises:
        ValueError: The text is no JSON, or does not fit the model (pydantic's `ValidationError`).
    """
    if response_format is None or not text:
        return None
    if isinstance(response_format, type) and hasattr(response_format, "model_validate_json"):
        return response_format.model_validate_json(text)
    if isinstance(response_format, Mapping):
        return json.loads(text)
    _log.warning(
        "response_format is %r; expected a pydantic model class or a JSON schema. The value is None.", response_format
    )
    return None
