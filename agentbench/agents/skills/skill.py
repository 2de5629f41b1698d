"""Base classes of skills and their parts: resources and scripts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from agentbench.agents.skills.frontmatter import SkillFrontmatter


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


@runtime_checkable
class SkillScriptRunner(Protocol):
    """A sync or async function that runs a script of a skill in a folder with arguments.

    Example:
        async def run_in_sandbox(skill, script, args):
            return await sandbox.run(script.full_path, args)
    """

    def __call__(self, skill: Any, script: Any, args: Any = None) -> Any:
        """Run a script and return its result."""


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
