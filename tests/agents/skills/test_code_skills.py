"""Skills in code, as objects and as classes; and sources of skills."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from agentbench import (
    Agent,
    AggregatingSkillsSource,
    CachingSkillsSource,
    ClassSkill,
    DeduplicatingSkillsSource,
    DelegatingSkillsSource,
    FilteringSkillsSource,
    InlineSkill,
    InlineSkillResource,
    InlineSkillScript,
    InMemorySkillsSource,
    ScriptedChatClient,
    Skill,
    SkillFrontmatter,
    SkillsProvider,
    SkillsSource,
    SkillsSourceContext,
)
from tests.parts.errors import raises


def skill_of(name: str = "menus", **more: Any) -> InlineSkill:
    return InlineSkill(name=name, description="Plans <menus>.", instructions="Use & enjoy.", **more)


async def test_a_skill_with_decorated_functions():
    skill = skill_of()

    @skill.resource
    async def prices() -> str:
        """What things cost."""
        return "bread: 2"

    @skill.resource(name="who", description="The user.")
    def user(**kwargs: Any) -> Any:
        return kwargs

    @skill.script
    def total(prices: list[float], tip: float = 0) -> float:
        """Add prices."""
        return sum(prices) + tip

    @skill.script(name="hello")
    async def greet(**kwargs: Any) -> str:
        return f"hello {kwargs}"

    assert total([1.0]) == 1
    assert [await one.read(user="Ada") for one in skill.resources] == ["bread: 2", {"user": "Ada"}]
    assert [one.description for one in skill.resources] == ["What things cost.", "The user."]
    skill.resource(name="bare")(lambda: "")
    assert skill.resources[-1].description is None
    add, hello = skill.scripts
    assert await add.run(skill, {"prices": ["1.5", 2]}, user="Ada") == 3.5
    assert await hello.run(skill, None, user="Ada") == "hello {'user': 'Ada'}"
    assert add.parameters_schema is not None
    assert set(add.parameters_schema["properties"]) == {"prices", "tip"}
    assert hello.parameters_schema is None
    content = skill.content
    assert "<description>Plans &lt;menus&gt;.</description>" in content
    assert "<instructions>\nUse & enjoy.\n</instructions>" in content
    assert '<resource name="prices" description="What things cost."/>' in content
    assert '<script name="hello"></script>' in content
    skill.resource(name="late")(lambda: "x")
    assert 'name="late"' in skill.content


async def test_wrong_arguments_of_scripts():
    def go(place: str) -> str:
        return place

    skill, script = skill_of(), InlineSkillScript(name="go", function=go)
    with pytest.raises(TypeError):
        await script.run(skill, ["Oslo"])
    with pytest.raises(TypeError):
        await script.run(skill, {"place": "Oslo"}, place="Rome")
    with raises(TypeError, "place"):
        await script.run(skill, {})


def test_resources_and_skills_that_make_no_sense():
    for arguments in ({}, {"content": "c", "function": lambda: "f"}):
        with raises(ValueError):
            InlineSkillResource(name="r", **arguments)  # type: ignore[arg-type]
    with raises(ValueError, "blank"):
        InlineSkillResource(name=" ", content="c")
    frontmatter = SkillFrontmatter(name="a", description="d")
    for given in ({}, {"name": "a"}, {"frontmatter": frontmatter, "name": "a"}):
        with pytest.raises(TypeError):
            InlineSkill(instructions="i", **given)
    assert InlineSkill(frontmatter=frontmatter, instructions="i").frontmatter is frontmatter


class Menus(ClassSkill):
    reads = 0

    def __init__(self) -> None:
        super().__init__(frontmatter=SkillFrontmatter(name="menus", description="Plans menus."))

    @property
    def instructions(self) -> str:
        return "Read the prices."

    @property
    @ClassSkill.resource
    def all_prices(self) -> str:
        """What things cost."""
        self.reads += 1
        return f"bread: {self.reads}"

    @ClassSkill.resource(name="who", description="The user.")
    async def user(self, **kwargs: Any) -> Any:
        return kwargs

    @ClassSkill.script
    def add_up(self, prices: list[float]) -> float:
        return sum(prices)


async def test_a_skill_as_a_class():
    class Better(Menus):
        @ClassSkill.script(name="greet")
        def hello(self) -> str:
            return "hello"

    skill = Better()
    assert skill.reads == 0
    assert [one.name for one in skill.resources] == ["all-prices", "who"]
    assert "All" not in skill.content
    assert skill.reads == 0
    assert [await one.read(user="Ada") for one in skill.resources] == ["bread: 1", {"user": "Ada"}]
    assert [one.name for one in skill.scripts] == ["add-up", "greet"]
    assert await skill.scripts[0].run(skill, {"prices": [1, 2]}) == 3
    skill.scripts.clear()
    assert len(skill.scripts) == 2
    assert 'description="What things cost."' in skill.content


def test_decorators_of_classes_in_the_wrong_place():
    with pytest.raises(TypeError):

        class Wrong(Menus):
            @ClassSkill.resource  # type: ignore[prop-decorator]
            @property
            def x(self) -> str:
                return ""

    with raises(ValueError):
        ClassSkill.script(name="Bad Name")

    class Twice(Menus):
        @ClassSkill.resource(name="who")
        def again(self) -> str:
            return ""

    with raises(ValueError, "who"):
        _ = Twice().resources


class Counting(SkillsSource):
    """Counts how often it is asked; fails as often as it is told to."""

    def __init__(self, *skills: Skill, failures: int = 0) -> None:
        self.skills, self.failures, self.asked = list(skills), failures, 0

    async def get_skills(self) -> list[Skill]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.asked <= self.failures:
            raise OSError("not now")
        return self.skills


async def test_sources_are_put_together(caplog: pytest.LogCaptureFixture):
    one, two = skill_of("one"), skill_of("two")
    again = skill_of("one")
    again.frontmatter.name = "ONE"
    both = AggregatingSkillsSource([InMemorySkillsSource([two, one]), InMemorySkillsSource([again])])
    assert await both.get_skills() == [two, one, again]
    with caplog.at_level(logging.WARNING, "agentbench"):
        assert await DeduplicatingSkillsSource(both).get_skills() == [two, one]
    assert "'ONE' is ignored" in caplog.text
    assert await FilteringSkillsSource(both, lambda skill: skill is one).get_skills() == [one]


async def test_a_cache_loads_once_for_all_and_no_failure():
    source = Counting(skill_of(), failures=1)
    cached = CachingSkillsSource(source)
    with raises(OSError, "not now"):
        await cached.get_skills()
    results = await asyncio.gather(*(cached.get_skills() for _ in range(5)))
    assert source.asked == 2
    assert all(found == source.skills for found in results)
    results[0].clear()
    assert await cached.get_skills() == source.skills
    cached.invalidate()
    await cached.get_skills()
    assert source.asked == 3
    with raises(ValueError, "ttl"):
        CachingSkillsSource(source, ttl=0)


async def test_a_caller_that_leaves_takes_nobody_along():
    source = Counting(skill_of())
    cached = CachingSkillsSource(source)
    first, second = asyncio.ensure_future(cached.get_skills()), asyncio.ensure_future(cached.get_skills())
    await asyncio.sleep(0)
    first.cancel()
    assert await second == source.skills
    assert source.asked == 1


async def test_a_cache_grows_old():
    source = Counting(skill_of())
    cached = CachingSkillsSource(source, ttl=1e-9)
    await cached.get_skills()
    await cached.get_skills()
    assert source.asked == 2


class ForAdmins(DelegatingSkillsSource):
    async def get_skills(self, context: SkillsSourceContext | None = None) -> list[Skill]:
        is_admin = context is not None and context.session.state.get("role") == "admin"
        return await super().get_skills(context) if is_admin else []


async def test_a_source_may_depend_on_who_asks():
    inner = Counting(skill_of("one"))
    source = AggregatingSkillsSource([DeduplicatingSkillsSource(ForAdmins(CachingSkillsSource(inner)))])
    client = ScriptedChatClient(["done"] * 4)
    agent = Agent(client, context_providers=[SkillsProvider(source)])
    for role in ("admin", "guest", "admin", "guest"):
        session = agent.create_session()
        session.state["role"] = role
        await agent.run("go", session=session)
    offered = ["load_skill" in {one.name for one in call.options.get("tools") or ()} for call in client.calls]
    assert offered == [True, False, True, False]
    assert inner.asked == 1


async def test_skills_that_depend_on_who_asks_are_not_cached_for_everyone():
    source = ForAdmins(InMemorySkillsSource([skill_of("one")]))
    assert await source.get_skills() == []
    with raises(ValueError):
        CachingSkillsSource(FilteringSkillsSource(source, lambda skill: True))
