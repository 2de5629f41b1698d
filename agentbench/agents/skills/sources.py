"""Sources of skills, and sources that combine, filter or cache others."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from agentbench import _clock
from agentbench._limits import require_seconds
from agentbench.agents.skills.skill import Skill

logger = logging.getLogger("agentbench")


class SkillsSource(ABC):
    """Base class of the sources of skills.

    Example:
        from agentbench import InlineSkill, SkillsSource

        class Greetings(SkillsSource):
            async def get_skills(self):
                return [InlineSkill(name="greet", description="How to greet.", instructions="Say their name.")]
    """

    @abstractmethod
    async def get_skills(self) -> list[Skill]:
        """Return the current skills."""


class InMemorySkillsSource(SkillsSource):
    """A source that returns a list of skills.

    Example:
        skill = InlineSkill(name="menus", description="Plans menus.", instructions="Begin with the soup.")
        source = InMemorySkillsSource([skill])
    """

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills = list(skills)

    async def get_skills(self) -> list[Skill]:
        """Return the skills."""
        return list(self._skills)


class AggregatingSkillsSource(SkillsSource):
    """A source that returns the skills of several sources in order.

    Example:
        source = AggregatingSkillsSource([FileSkillsSource("skills"), FileSkillsSource("more-skills")])
    """

    def __init__(self, sources: Sequence[SkillsSource]) -> None:
        self.sources = list(sources)

    async def get_skills(self) -> list[Skill]:
        """Return the skills of all sources."""
        return [skill for source in self.sources for skill in await source.get_skills()]


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

    async def get_skills(self) -> list[Skill]:
        """Return the skills of the inner source."""
        return await self.inner_source.get_skills()


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

    async def get_skills(self) -> list[Skill]:
        """Return the skills for which the predicate is true."""
        return [skill for skill in await self.inner_source.get_skills() if self.predicate(skill)]


class DeduplicatingSkillsSource(DelegatingSkillsSource):
    """A source that returns only the first skill of each name. Names are compared without regard to case.

    Example:
        from agentbench import AggregatingSkillsSource, DeduplicatingSkillsSource, FileSkillsSource

        both = AggregatingSkillsSource([FileSkillsSource("own/skills"), FileSkillsSource("shared/skills")])
        source = DeduplicatingSkillsSource(both)  # an own skill hides a shared one of the same name
    """

    async def get_skills(self) -> list[Skill]:
        """Return the first skill of each name."""
        first: dict[str, Skill] = {}
        for skill in await self.inner_source.get_skills():
            if first.setdefault(skill.frontmatter.name.lower(), skill) is not skill:
                logger.warning("The skill %r is ignored: another skill has the same name.", skill.frontmatter.name)
        return list(first.values())


class CachingSkillsSource(DelegatingSkillsSource):
    """A source that caches the skills of another one. A failure is not cached.

    Args:
        inner_source: The wrapped source.
        ttl: The seconds after which the skills are loaded again; by default they are loaded only once.

    Raises:
        ValueError: `ttl` is not positive.

    Example:
        source = CachingSkillsSource(FileSkillsSource("skills"), ttl=60)
    """

    def __init__(self, inner_source: SkillsSource, *, ttl: float | None = None) -> None:
        super().__init__(inner_source)
        require_seconds("ttl", ttl, none="ever")
        self.ttl = ttl
        self._loading: asyncio.Task[list[Skill]] | None = None
        self._skills: tuple[float, list[Skill]] | None = None

    def invalidate(self) -> None:
        """Clear the cache, so that the next request loads the skills again."""
        self._skills = self._loading = None

    async def get_skills(self) -> list[Skill]:
        """Return the cached skills, or load them. Concurrent requests share one load."""
        now = _clock.runtime_defaults().clock.perf_ns() / 1e9
        if self._skills is not None and (self.ttl is None or now - self._skills[0] < self.ttl):
            return list(self._skills[1])
        loading = self._loading
        if loading is None or loading.get_loop() is not asyncio.get_running_loop():
            loading = self._loading = asyncio.ensure_future(self.inner_source.get_skills())
        try:
            skills = await asyncio.shield(loading)  # cancelling one caller must not cancel the load for the others
            if self._loading is loading:  # otherwise the cache was cleared meanwhile
                self._skills = (now, list(skills))
        finally:
            if loading.done() and self._loading is loading:
                self._loading = None
        return list(skills)
