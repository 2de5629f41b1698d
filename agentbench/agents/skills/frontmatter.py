"""The front matter of a skill, and reading it from a `SKILL.md`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from agentbench._extras import require

MOST_NAME: Final = 64
MOST_DESCRIPTION: Final = 1024
MOST_COMPATIBILITY: Final = 500
MOST_FRONT_MATTER: Final = 16_384
_MOST_LEVELS: Final = 16

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PLAIN_LINE: Final = re.compile(r"""^([\w-]+:[ \t]+)([^\s"'|>\[{&*!#][^\n]*)$""", re.MULTILINE)
_PARTS: Final = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


class SkillFrontmatter:
    """The name, description and other metadata of a skill.

    Args:
        name: The name: at most 64 lowercase letters (a to z) and digits, with single hyphens between them.
        description: The purpose of the skill and when to use it, in at most 1,024 characters.
        license: The license of the skill.
        compatibility: The requirements of the skill, in at most 500 characters.
        allowed_tools: The tools that the skill uses, separated by spaces. This is information only and grants nothing.
        metadata: Other texts by name. The mapping is copied.

    Raises:
        ValueError: The name, the description or the compatibility breaks these rules.

    Example:
        frontmatter = SkillFrontmatter(name="french-menus", description="Translates menus. Use for food in French.")
    """

    def __init__(
        self,
        *,
        name: str,
        description: str,
        license: str | None = None,  # noqa: A002 - the public name
        compatibility: str | None = None,
        allowed_tools: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        check_skill_name(name)
        if not description.strip() or len(description) > MOST_DESCRIPTION:
            message = (
                f"The description of skill {name!r} is {_short_repr(description)}. Expected 1 to 1,024 characters."
            )
            raise ValueError(message)
        if compatibility is not None and len(compatibility) > MOST_COMPATIBILITY:
            message = (
                f"The compatibility of skill {name!r} is {_short_repr(compatibility)}. Expected at most 500 characters."
            )
            raise ValueError(message)
        self.name, self.description, self.license = name, description, license
        self.compatibility, self.allowed_tools = compatibility, allowed_tools
        self.metadata: dict[str, str] = dict(metadata or {})

    def __repr__(self) -> str:
        return f"SkillFrontmatter(name={self.name!r}, description={self.description!r})"


def check_skill_name(name: object) -> None:
    """Raise ValueError unless this is a valid name of a skill, resource or script."""
    if not isinstance(name, str) or len(name) > MOST_NAME or not _NAME.fullmatch(name):
        message = (
            f"{name!r} is not a valid name. Expected 1 to 64 characters a-z and 0-9, with single hyphens between them."
        )
        raise ValueError(message)


def read_skill_md(text: str, most_chars: float = MOST_FRONT_MATTER) -> tuple[SkillFrontmatter, list[str]]:
    """Return the front matter of a `SKILL.md`, and a sentence for each correction that was needed to read it.

    The front matter is YAML between two lines of three hyphens. Unknown fields are ignored. Two common mistakes are
    corrected: values with unquoted colons are read as plain text, and descriptions that are too long are shortened.

    Raises:
        MissingExtraError: PyYAML is not installed.
        ValueError: The front matter is missing, longer than `most_chars`, or has an invalid field.
    """
    match = _PARTS.match(text.replace("\r\n", "\n"))
    if match is None:
        message = "The front matter is missing. Expected YAML between two lines of '---' at the beginning."
        raise ValueError(message)
    if len(match[1]) > most_chars:
        message = f"The front matter has {len(match[1]):,} characters. Expected at most {most_chars:,}."
        raise ValueError(message)
    changes: list[str] = []
    try:
        data = _load_yaml(match[1])
    except ValueError as error:
        quoted = _PLAIN_LINE.sub(lambda line: f"{line[1]}{json.dumps(line[2].strip())}", match[1])
        try:
            data = _load_yaml(quoted)
        except ValueError:
            raise error from None
        changes.append(f"{error} Values were read as plain text. Quote values that contain ': '.")
    if not isinstance(data, dict):
        message = f"The front matter is {_short_repr(data)}. Expected a mapping with name and description."
        raise ValueError(message)
    fields: dict[str, Any] = {
        name: data[key]
        for key, name in _FIELDS.items()
        if isinstance(data.get(key), str) and (data[key] or name in ("name", "description"))
    }
    metadata = data.get("metadata") or {}
    if not isinstance(metadata, dict):
        message = f"The metadata is {_short_repr(metadata)}. Expected a mapping."
        raise ValueError(message)
    fields["metadata"] = {str(key): str(value) for key, value in metadata.items()}
    missing = [name for name in ("name", "description") if name not in fields]
    if missing:
        message = f"The front matter has no {' and no '.join(missing)}. Expected both as text."
        raise ValueError(message)
    length = len(fields["description"])
    if length > MOST_DESCRIPTION:
        fields["description"] = fields["description"][: MOST_DESCRIPTION - 1] + "…"
        changes.append(f"The description has {length:,} characters and was shortened to {MOST_DESCRIPTION:,}.")
    return SkillFrontmatter(**fields), changes


def _load_yaml(text: str) -> Any:
    yaml = require("yaml", extra="skills", purpose="read skills from files")
    try:
        levels = 0
        for token in yaml.scan(text):  # the parser needs seconds for deep nesting, and then overflows the stack
            levels += type(token).__name__.endswith("StartToken")
            levels -= type(token).__name__.endswith("EndToken")
            if levels > _MOST_LEVELS:
                message = f"The front matter is nested too deeply. Expected at most {_MOST_LEVELS} levels."
                raise ValueError(message)
            # A few levels of aliases can expand to more data than fits into memory.
            if isinstance(token, yaml.AliasToken):
                message = "The front matter has YAML aliases. Write each value out instead."
                raise ValueError(message)
        # BaseLoader is as safe as SafeLoader, and keeps numbers and dates as text.
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = (
            "" if mark is None else f" in line {mark.line + 2}"
        )  # the mark counts from 0 and starts after the line of hyphens
        message = f"The front matter is not valid YAML{line}: {getattr(error, 'problem', None) or error}."
        raise ValueError(message) from error


_FIELDS: Final = {
    "name": "name",
    "description": "description",
    "license": "license",
    "compatibility": "compatibility",
    "allowed-tools": "allowed_tools",
}


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_NAME else f"{text[:MOST_NAME]}… ({len(text):,} characters)"
