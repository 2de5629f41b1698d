"""Base classes of skills and their parts: front matter, resources and scripts."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable
from xml.sax.saxutils import escape, quoteattr

from agentbench._extras import require


class _SkillPart:
    """A named part of a skill."""

    def __init__(self, *, name: str, description: str | None = None) -> None:
        if not name or not name.strip():
            message = f"The name of a {type(self).__name__} is {name!r}. Expected non-blank text."
            raise ValueError(message)
        self.name, self.description = name, description

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"


class SkillResource(_SkillPart, ABC):
    """A readable part of a skill, such as a table, a reference or an example.

    Args:
        name: The name of the resource in its skill.
        description: A description of the content.

    Example:
        @skill.resource
        def prices() -> str:
            "The price list."
            return "bread: 2 EUR"
    """

    @abstractmethod
    async def read(self, **kwargs: Any) -> Any:
        """Return the content. `kwargs` are the keyword arguments of the run, which the model does not see."""


class SkillScript(_SkillPart, ABC):
    """An executable part of a skill.

    Args:
        name: The name of the script in its skill.
        description: A description of the script.

    Example:
        @skill.script(name="total", description="Adds prices.")
        def add(prices: list[float]) -> float:
            return sum(prices)
    """

    @property
    def parameters_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the arguments; `None` if there are none."""
        return None

    @abstractmethod
    async def run(self, skill: Skill, args: dict[str, Any] | list[str] | None = None, **kwargs: Any) -> Any:
        """Run the script with arguments from the model and return its result."""


class Skill(ABC):
    """Instructions for a kind of task. The model sees the name and the description, and loads the rest on demand.

    Args:
        frontmatter: The name, description and other metadata.

    Attributes:
        resources: The resources that can be read.
        scripts: The scripts that can be run.

    Example:
        from agentbench import InlineSkill

        skill = InlineSkill(name="greet", description="How to greet guests.", instructions="Say their name.")
        assert "Say their name." in skill.content
    """

    def __init__(self, *, frontmatter: SkillFrontmatter) -> None:
        self.frontmatter = frontmatter

    @property
    @abstractmethod
    def content(self) -> str:
        """The text that the model gets when it loads the skill."""

    @property
    def resources(self) -> list[SkillResource]:
        """The resources of the skill."""
        return []

    @property
    def scripts(self) -> list[SkillScript]:
        """The scripts of the skill."""
        return []

    def __repr__(self) -> str:
        counts = f"resources={len(self.resources)}, scripts={len(self.scripts)}"
        return f"{type(self).__name__}({self.frontmatter.name!r}, {counts})"


class StoredSkill(Skill):
    """A skill that consists of a text, and lists of resources and scripts."""

    def __init__(
        self,
        *,
        frontmatter: SkillFrontmatter,
        content: str,
        resources: Sequence[SkillResource] | None = None,
        scripts: Sequence[SkillScript] | None = None,
    ) -> None:
        super().__init__(frontmatter=frontmatter)
        self._ab_content = content
        self._ab_resources, self._ab_scripts = list(resources or ()), list(scripts or ())

    @property
    def content(self) -> str:
        """The text for the model: the text of the skill, and the list of scripts with their arguments."""
        return "\n".join([self._ab_content, *scripts_block(self.scripts)])

    @property
    def resources(self) -> list[SkillResource]:
        """The resources. The list itself is returned, so you can append to it."""
        return self._ab_resources

    @property
    def scripts(self) -> list[SkillScript]:
        """The scripts. The list itself is returned, so you can append to it."""
        return self._ab_scripts


@runtime_checkable
class SkillScriptRunner(Protocol):
    """A sync or async function that runs a script of a skill in a folder with arguments.

    Example:
        async def run_in_sandbox(skill, script, args):
            return await sandbox.run(script.full_path, args)
    """

    def __call__(self, skill: Any, script: Any, args: Any = None) -> Any:
        """Run a script and return its result."""


SkillScriptArgumentParser: TypeAlias = Callable[[Any], Sequence[str]]
"""Converts the arguments that a model passes to a script (by name, a list, or text) to the words of a command line."""


def content_of(skill: Skill, instructions: str) -> str:
    """Return the content of a skill that is defined in code."""
    lines = [
        f"<name>{escape(skill.frontmatter.name)}</name>",
        f"<description>{escape(skill.frontmatter.description)}</description>",
        "",
        f"<instructions>\n{instructions}\n</instructions>",
    ]
    if skill.resources:
        lines += ["", "<resources>", *(_element("resource", one) + "/>" for one in skill.resources), "</resources>"]
    return "\n".join([*lines, *scripts_block(skill.scripts)])


def scripts_block(scripts: Sequence[SkillScript]) -> list[str]:
    """Return the lines that describe scripts to a model."""
    if not scripts:
        return []
    lines = ["", "<scripts>"]
    for script in scripts:
        schema = script.parameters_schema
        inner = "" if schema is None else f"<parameters_schema>{escape(json.dumps(schema))}</parameters_schema>"
        lines.append(f"{_element('script', script)}>{inner}</script>")
    return [*lines, "</scripts>"]


def _element(tag: str, part: _SkillPart) -> str:
    description = "" if part.description is None else f" description={quoteattr(part.description)}"
    return f"  <{tag} name={quoteattr(part.name)}{description}"


# ---- front matter


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
        metadata: Other texts by name; `None` if there are none. The mapping is copied.

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
        self.metadata: dict[str, str] | None = dict(metadata) if metadata else None

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
