"""Sources of skills, and sources that combine, filter or cache others."""

from __future__ import annotations

import asyncio
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench import _clock
from agentbench._limits import require_seconds
from agentbench.agents.skills.skill import Skill

logger = logging.getLogger("agentbench")


@dataclass(frozen=True)
class SkillsSourceContext:
    """The agent and the session for which a skills source is asked, so that it can choose the skills.

    Args:
        agent: The agent that runs.
        session: The session of the run.

    Example:
        from agentbench import DelegatingSkillsSource, SkillsSourceContext


        class ForAdmins(DelegatingSkillsSource):
            async def get_skills(self, context: SkillsSourceContext | None = None):
                is_admin = context is not None and context.session.state.get("role") == "admin"
                return await super().get_skills(context) if is_admin else []
    """

    agent: Any
    session: Any


class SkillsSource(ABC):
    """Base class of the sources of skills.

    A source whose skills depend on who asks gives `get_skills` an optional parameter `context`, for a
    `SkillsSourceContext`. A provider asks it in every run, instead of once.

    Example:
        from agentbench import InlineSkill, SkillsSource

        class Greetings(SkillsSource):
            async def get_skills(self):
                return [InlineSkill(name="greet", description="How to greet.", instructions="Say their name.")]
    """

    @abstractmethod
    async def get_skills(self) -> list[Skill]:
        """Return the current skills."""

    @property
    def uses_context(self) -> bool:
        """Whether the skills depend on who asks, so that they must not be kept for others."""
        return "context" in inspect.signature(self.get_skills).parameters


async def load_skills(source: SkillsSource, context: SkillsSourceContext | None) -> list[Skill]:
    """Return the skills of a source, which gets the context if it takes one."""
    get_skills: Callable[..., Awaitable[list[Skill]]] = source.get_skills
    return await (get_skills(context=context) if source.uses_context else get_skills())


class InMemorySkillsSource(SkillsSource):
    """A source that returns a list of skills.

    Example:
        skill = InlineSkill(name="menus", description="Plans menus.", instructions="Begin with the soup.")
        source = InMemorySkillsSource([skill])
    """

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._ab_skills = list(skills)

    async def get_skills(self) -> list[Skill]:
        """Return the skills."""
        return list(self._ab_skills)


class AggregatingSkillsSource(SkillsSource):
    """A source that returns the skills of several sources in order.

    Example:
        source = AggregatingSkillsSource([FileSkillsSource("skills"), FileSkillsSource("more-skills")])
    """

    def __init__(self, sources: Sequence[SkillsSource]) -> None:
        self.sources = list(sources)

    @property
    def uses_context(self) -> bool:
        """Whether the skills of a source depend on who asks."""
        return any(source.uses_context for source in self.sources)

    async def get_skills(self, context: SkillsSourceContext | None = None) -> list[Skill]:
        """Return the skills of all sources."""
        return [skill for source in self.sources for skill in await load_skills(source, context)]


class DelegatingSkillsSource(SkillsSource):
    """Base class of sources that wrap another one.

    Args:
        inner_source: The wrapped source.

    Example:
        from agentbench import DelegatingSkillsSource

        class Sorted(DelegatingSkillsSource):
            async def get_skills(self):
                return sorted(await self.inner_source.get_skills(), key=lambda skill: skill.frontmatter.name)
    """

    def __init__(self, inner_source: SkillsSource) -> None:
        self.inner_source = inner_source

    @property
    def uses_context(self) -> bool:
        """Whether this source or the inner one returns skills that depend on who asks."""
        is_passed_on = type(self).get_skills.__module__ == __name__
        return self.inner_source.uses_context if is_passed_on else super().uses_context

    async def get_skills(self, context: SkillsSourceContext | None = None) -> list[Skill]:
        """Return the skills of the inner source."""
        return await load_skills(self.inner_source, context)


class FilteringSkillsSource(DelegatingSkillsSource):
    """A source that returns only the skills for which a predicate is true.

    Args:
        inner_source: The wrapped source.
        predicate: Returns whether to include a skill.

    Example:
        source = FilteringSkillsSource(FileSkillsSource("skills"), lambda skill: not skill.scripts)
    """

    def __init__(self, inner_source: SkillsSource, predicate: Callable[[Skill], bool]) -> None:
        super().__init__(inner_source)
        self.predicate = predicate

    async def get_skills(self, context: SkillsSourceContext | None = None) -> list[Skill]:
        """Return the skills for which the predicate is true."""
        return [skill for skill in await load_skills(self.inner_source, context) if self.predicate(skill)]


class DeduplicatingSkillsSource(DelegatingSkillsSource):
    """A source that returns only the first skill of each name. Names are compared without regard to case.

    Example:
        from agentbench import AggregatingSkillsSource, DeduplicatingSkillsSource, FileSkillsSource

        both = AggregatingSkillsSource([FileSkillsSource("own/skills"), FileSkillsSource("shared/skills")])
        source = DeduplicatingSkillsSource(both)  # an own skill hides a shared one of the same name
    """

    async def get_skills(self, context: SkillsSourceContext | None = None) -> list[Skill]:
        """Return the first skill of each name."""
        first: dict[str, Skill] = {}
        for skill in await load_skills(self.inner_source, context):
            if first.setdefault(skill.frontmatter.name.lower(), skill) is not skill:
                logger.warning("The skill %r is ignored: another skill has the same name.", skill.frontmatter.name)
        return list(first.values())


class CachingSkillsSource(DelegatingSkillsSource):
    """A source that caches the skills of another one. A failure is not cached.

    Args:
        inner_source: The wrapped source.
        ttl: The seconds after which the skills are loaded again; by default they are loaded only once.

    Raises:
        ValueError: `ttl` is not positive, or the skills of the inner source depend on who asks.

    Example:
        source = CachingSkillsSource(FileSkillsSource("skills"), ttl=60)
    """

    def __init__(self, inner_source: SkillsSource, *, ttl: float | None = None) -> None:
        super().__init__(inner_source)
        require_seconds("ttl", ttl, none="ever")
        if inner_source.uses_context:
            message = (
                f"The skills of {type(inner_source).__name__} depend on who asks, so they cannot be cached for "
                "everyone. Cache the sources inside it instead."
            )
            raise ValueError(message)
        self.ttl = ttl
        self._ab_loading: asyncio.Task[list[Skill]] | None = None
        self._ab_skills: tuple[float, list[Skill]] | None = None

    def invalidate(self) -> None:
        """Clear the cache, so that the next request loads the skills again."""
        self._ab_skills = self._ab_loading = None

    async def get_skills(self, context: SkillsSourceContext | None = None) -> list[Skill]:
        """Return the cached skills, or load them. Concurrent requests share one load."""
        now = _clock.runtime_defaults().clock.perf_ns() / 1e9
        if self._ab_skills is not None and (self.ttl is None or now - self._ab_skills[0] < self.ttl):
            return list(self._ab_skills[1])
        loading = self._ab_loading
        if loading is None or loading.get_loop() is not asyncio.get_running_loop():
            loading = self._ab_loading = asyncio.ensure_future(self.inner_source.get_skills())
        try:
            skills = await asyncio.shield(loading)  # cancelling one caller must not cancel the load for the others
            if self._ab_loading is loading:  # otherwise the cache was cleared meanwhile
                self._ab_skills = (now, list(skills))
        finally:
            if loading.done() and self._ab_loading is loading:
                self._ab_loading = None
        return list(skills)
