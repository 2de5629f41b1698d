"""Reading an answer as the value that was asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

_log = logging.getLogger("agentbench")

_HINT: Final = (
    "This is the text of an answer, read as its `value` in the form of response_format. "
    "`text` has it as it is, and `try_value()` gives a default where it does not fit."
)


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
    try:
        if isinstance(response_format, type) and hasattr(response_format, "model_validate_json"):
            return response_format.model_validate_json(text)
        if isinstance(response_format, Mapping):
            return json.loads(text)
    except ValueError as error:
        if hasattr(error, "add_note"):  # since Python 3.11
            error.add_note(_HINT)
        raise
    _log.warning(
        "response_format is %r; expected a pydantic model class or a JSON schema. The value is None.", response_format
    )
    return None
