"""`SkillsProvider`: names skills in the instructions of an agent, and adds tools that load them."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from xml.sax.saxutils import escape

from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.agents.skills.file_skills import FileSkill, FileSkillScript, FileSkillsSource
from agentbench.agents.skills.skill import Skill, SkillScriptRunner
from agentbench.agents.skills.sources import (
    DeduplicatingSkillsSource,
    InMemorySkillsSource,
    SkillsSource,
    SkillsSourceContext,
    load_skills,
)
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.observability.feature_stages import ExperimentalFeature, experimental

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

logger = logging.getLogger("agentbench")

_TEMPLATE = (
    "You have skills: instructions for particular kinds of work.\n<skills>\n{skills}\n</skills>\nWhen a task fits the "
    "description of a skill, load it with load_skill before you begin, and follow it. Use the names exactly as they "
    "are listed, and load no more than you need.{resource_instructions}{runner_instructions}"
)
_RESOURCES = "\nA loaded skill lists its resources; read the ones that it refers to with read_skill_resource."
_SCRIPTS = "\nA loaded skill lists its scripts; run one with run_skill_script when it tells you to."

_PLACEHOLDERS = ("skills", "resource_instructions", "runner_instructions")


class _Offer(NamedTuple):
    """The instructions and tools for an agent with skills."""

    instructions: str
    tools: list[FunctionTool]


@experimental(feature_id=ExperimentalFeature.SKILLS)
class SkillsProvider(ContextProvider):
    """Offers skills to an agent. The model sees their names and descriptions, and loads what it needs with tools.

    If a resource or script fails, the model gets a short error text and the error is logged.

    Args:
        source: A source of skills, one skill, or several. Of several with the same name, only the first is used.
        instruction_template: The instructions for the model, instead of the default ones. They must contain `{skills}`.
            They must also contain `{resource_instructions}` if there are resources, and `{runner_instructions}` if
            there are scripts.
        require_script_approval: Whether a person must approve each script before it runs.
        disable_caching: Whether to load the skills from the source in every run instead of once.
        source_id: The id of the provider, unique in an agent; by default `agent_skills`.

    Raises:
        TypeError: The source is a path (use `from_paths`), or is not a source of skills.
        ValueError: A placeholder of the template is missing or unknown, or the template has a stray brace.

    Example:
        skill = InlineSkill(name="menus", description="Plans menus.", instructions="Begin with the soup.")
        agent = Agent(EchoChatClient(), context_providers=[SkillsProvider(skill)])
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "agent_skills"

    def __init__(
        self,
        source: SkillsSource | Skill | Sequence[Skill],
        *,
        instruction_template: str | None = None,
        require_script_approval: bool = False,
        disable_caching: bool = False,
        source_id: str | None = None,
    ) -> None:
        super().__init__(source_id or self.DEFAULT_SOURCE_ID)
        self.source = _as_source(source)
        self.instruction_template = instruction_template or _TEMPLATE
        self.require_script_approval, self.disable_caching = require_script_approval, disable_caching
        _check_template(self.instruction_template, needed=["skills"])
        self._ab_offer: _Offer | None = None

    @classmethod
    def from_paths(
        cls,
        skill_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        script_runner: SkillScriptRunner | None = None,
        resource_extensions: Iterable[str] | None = None,
        script_extensions: Iterable[str] | None = None,
        resource_directories: Iterable[str] | None = None,
        script_directories: Iterable[str] | None = None,
        **options: Any,
    ) -> SkillsProvider:
        """Return a provider of the skills in folders. Of several with the same name, only the first is used.

        Args:
            skill_paths: One or more folders.
            script_runner: The function that runs scripts.
            resource_extensions: The file endings of resources. `FileSkillsSource` documents this and the next three.
            script_extensions: The file endings of scripts.
            resource_directories: The directories of resources; by default all.
            script_directories: The directories of scripts; by default all.
            **options: Other arguments of the provider, such as `require_script_approval=True`.

        Example:
            provider = SkillsProvider.from_paths("skills")
        """
        source = FileSkillsSource(
            skill_paths,
            script_runner=script_runner,
            resource_extensions=resource_extensions,
            script_extensions=script_extensions,
            resource_directories=resource_directories,
            script_directories=script_directories,
        )
        return cls(DeduplicatingSkillsSource(source), **options)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add instructions and tools if there are skills."""
        offer = self._ab_offer
        if offer is None:
            offer = self._ab_make_offer(await load_skills(self.source, SkillsSourceContext(agent, session)))
            if not (self.disable_caching or self.source.uses_context):
                self._ab_offer = offer
        if offer.tools:
            context.extend_instructions(self, offer.instructions)
            context.extend_tools(self, offer.tools)

    def _ab_make_offer(self, skills: list[Skill]) -> _Offer:
        if not skills:
            return _Offer("", [])
        tools = _Tools({skill.frontmatter.name.lower(): skill for skill in skills})
        has_resources = any(skill.resources for skill in skills)
        has_scripts = any(skill.scripts for skill in skills)
        texts = {
            "skills": "\n".join(map(_skill_entry, sorted(skills, key=lambda skill: skill.frontmatter.name))),
            "resource_instructions": _RESOURCES if has_resources else "",
            "runner_instructions": _SCRIPTS if has_scripts else "",
        }
        _check_template(self.instruction_template, needed=[name for name, text in texts.items() if text])
        offered = [FunctionTool(tools.load_skill)]
        if has_resources:
            offered.append(FunctionTool(tools.read_skill_resource))
        if has_scripts:
            mode = "always_require" if self.require_script_approval else "never_require"
            schema = {**_SCRIPT_ARGUMENTS}
            offered.append(FunctionTool(tools.run_skill_script, approval_mode=mode, input_model=schema))  # type: ignore[arg-type]
        return _Offer(self.instruction_template.format(**texts), offered)


_SCRIPT_ARGUMENTS = {
    "type": "object",
    "properties": {
        "skill_name": {"type": "string"},
        "script_name": {"type": "string"},
        "args": {
            "anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}],
            "description": "As the schema of the script says: by name, or a list of strings.",
        },
    },
    "required": ["skill_name", "script_name"],
}


class _Tools:
    """The tools with which a model loads skills. Skills and their parts are only looked up by name."""

    def __init__(self, skills: dict[str, Skill]) -> None:
        self._skills = skills

    def load_skill(self, skill_name: str) -> str:
        """Load the instructions of a skill."""
        skill = self._skills.get(skill_name.strip().lower())
        return _no("skill", skill_name, self._names()) if skill is None else skill.content

    async def read_skill_resource(self, context: FunctionInvocationContext, skill_name: str, resource_name: str) -> Any:
        """Read a resource of a skill."""
        skill = self._skills.get(skill_name.strip().lower())
        if skill is None:
            return _no("skill", skill_name, self._names())
        resource = _find_part(skill.resources, resource_name)
        if resource is not None:
            return await _result_or_error(f"Reading {resource_name!r}", lambda: resource.read(**context.kwargs))
        script = _find_part(skill.scripts, resource_name)
        if isinstance(skill, FileSkill) and isinstance(script, FileSkillScript):
            return await _result_or_error(f"Reading {resource_name!r}", lambda: script.read(skill))
        return _no("resource", resource_name, [one.name for one in skill.resources])

    async def run_skill_script(
        self, context: FunctionInvocationContext, skill_name: str, script_name: str, args: Any = None
    ) -> Any:
        """Run a script of a skill."""
        skill = self._skills.get(skill_name.strip().lower())
        if skill is None:
            return _no("skill", skill_name, self._names())
        script = _find_part(skill.scripts, script_name)
        if script is None:
            return _no("script", script_name, [one.name for one in skill.scripts])
        return await _result_or_error(f"Running {script_name!r}", lambda: script.run(skill, args, **context.kwargs))

    def _names(self) -> list[str]:
        return [skill.frontmatter.name for skill in self._skills.values()]


async def _result_or_error(what: str, act: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await act()
    except Exception as error:
        logger.error("%s failed: %s", what, type(error).__name__)
        logger.debug("%s failed.", what, exc_info=error)
        return f"Error: {what} failed."


def _find_part(parts: Sequence[Any], name: str) -> Any:
    wanted = name.strip().lower().removeprefix("./")
    return next((part for part in parts if part.name.lower() == wanted), None)


def _no(kind: str, name: str, names: Sequence[str]) -> str:
    return f"Error: There is no {kind} {name!r}. There are: {', '.join(sorted(names)) or 'none'}."


def _skill_entry(skill: Skill) -> str:
    facts = skill.frontmatter
    return (
        f"  <skill>\n    <name>{escape(facts.name)}</name>\n"
        f"    <description>{escape(facts.description)}</description>\n  </skill>"
    )


def _as_source(source: Any) -> SkillsSource:
    if isinstance(source, (str, os.PathLike)):
        message = f"{source!r} is a path. Use SkillsProvider.from_paths({source!r})."
        raise TypeError(message)
    if isinstance(source, SkillsSource):
        return source
    skills = [source] if isinstance(source, Skill) else list(source)
    for skill in skills:
        if not isinstance(skill, Skill):
            message = f"{skill!r} is not a skill. Expected a SkillsSource, a Skill, or several skills."
            raise TypeError(message)
    return DeduplicatingSkillsSource(InMemorySkillsSource(skills))


def _check_template(template: str, *, needed: Sequence[str]) -> None:
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        message = f"The instruction template has a stray brace: {error}. Write a brace as {{{{ or }}}}."
        raise ValueError(message) from error
    unknown = [name for name in names if name not in _PLACEHOLDERS]
    missing = [name for name in needed if name not in names]
    if unknown or missing:
        problem = f"has the unknown placeholder {unknown[0]!r}" if unknown else f"lacks the placeholder {missing[0]!r}"
        message = (
            f"The instruction template {problem}. Expected {{skills}}, with resources also "
            "{resource_instructions}, and with scripts also {runner_instructions}."
        )
        raise ValueError(message)
