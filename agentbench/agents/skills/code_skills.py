"""Skills that are defined in code: an object with decorated functions, or a class with decorated methods."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from agentbench.agents.skills.skill import (
    Skill,
    SkillFrontmatter,
    SkillResource,
    SkillScript,
    StoredSkill,
    check_skill_name,
    content_of,
)
from agentbench.agents.tools.function_tool import FunctionTool

_F = TypeVar("_F", bound=Callable[..., Any])


class InlineSkillResource(SkillResource):
    """A resource whose content is a value, or the result of a function.

    Args:
        name: The name of the resource in its skill.
        description: A description of the content.
        content: The value, of any type.
        function: A sync or async function that returns the value. If it accepts `**kwargs`, it gets the keyword
            arguments of the run.

    Raises:
        ValueError: Both or neither of `content` and `function` are set, or the name is blank.

    Example:
        resource = InlineSkillResource(name="prices", content="bread: 2 EUR")
        print(await resource.read())
    """

    def __init__(
        self,
        *,
        name: str,
        description: str | None = None,
        content: Any = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(name=name, description=description)
        if (content is None) == (function is None):
            message = f"Resource {name!r} has {'both' if function else 'neither'} content and function. Expected one."
            raise ValueError(message)
        self.content, self.function = content, function

    async def read(self, **kwargs: Any) -> Any:
        """Return the value, or the result of the function."""
        if self.function is None:
            return self.content
        return await _result(self.function(**(kwargs if _takes_kwargs(self.function) else {})))


class InlineSkillScript(SkillScript):
    """A script that is a function.

    Args:
        name: The name of the script in its skill.
        function: The sync or async function. If it accepts `**kwargs`, it also gets the keyword arguments of the run.
        description: A description of the script; by default the function's docstring.

    Example:
        def total(prices: list[float]) -> float:
            return sum(prices)


        skill = InlineSkill(name="cash", description="Counts money.", instructions="Use the script.")
        script = InlineSkillScript(name="total", function=total)
        assert await script.run(skill, {"prices": [1.5, 2]}) == 3.5
    """

    def __init__(self, *, name: str, function: Callable[..., Any], description: str | None = None) -> None:
        super().__init__(name=name, description=description or inspect.getdoc(function))
        self.function = function
        self._ab_tool = FunctionTool(function, name="script")

    @property
    def parameters_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the parameters; `None` if there are none."""
        schema = self._ab_tool.parameters()
        return schema if schema.get("properties") else None

    async def run(self, skill: Skill, args: dict[str, Any] | list[str] | None = None, **kwargs: Any) -> Any:
        """Call the function with keyword arguments.

        Raises:
            TypeError: The arguments are not a mapping, are invalid, or share a name with a keyword argument of the run.
        """
        if args is not None and not isinstance(args, dict):
            message = f"The arguments of script {self.name!r} are a {type(args).__name__}. Expected a mapping."
            raise TypeError(message)
        if both := set(args or {}) & set(kwargs):
            names = ", ".join(sorted(both))
            message = f"Both the model and the run pass {names} to script {self.name!r}. Rename one of the arguments."
            raise TypeError(message)
        valid = self._ab_tool.validate_arguments(args or {})
        return await _result(self.function(**valid, **(kwargs if _takes_kwargs(self.function) else {})))


class InlineSkill(StoredSkill):
    """A skill that is defined in code. Its decorators add resources and scripts.

    Args:
        frontmatter: The name, description and other metadata. Pass either this or `name` and `description`.
        instructions: The instructions for the model.
        resources: The resources that can be read.
        scripts: The scripts that can be run.
        name: The name of the skill, if there is no front matter.
        description: The purpose of the skill, if there is no front matter.

    Raises:
        TypeError: Both or neither of `frontmatter` and `name` with `description` are passed.
        ValueError: The name or the description breaks the rules of `SkillFrontmatter`.

    Example:
        skill = InlineSkill(name="menus", description="Plans menus.", instructions="Read the prices first.")


        @skill.resource
        def prices() -> str:
            "The price list."
            return "bread: 2 EUR"


        @skill.script(name="total", description="Adds prices.")
        def add(prices: list[float]) -> float:
            return sum(prices)
    """

    def __init__(
        self,
        *,
        frontmatter: SkillFrontmatter | None = None,
        instructions: str,
        resources: Sequence[SkillResource] | None = None,
        scripts: Sequence[SkillScript] | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        if frontmatter is None and name is not None and description is not None:
            frontmatter = SkillFrontmatter(name=name, description=description)
        elif frontmatter is None or name is not None or description is not None:
            message = "Expected either frontmatter=SkillFrontmatter(...), or name= and description=."
            raise TypeError(message)
        super().__init__(frontmatter=frontmatter, content=instructions, resources=resources, scripts=scripts)
        self.instructions = instructions

    @property
    def content(self) -> str:
        """The text for the model: name, description, instructions, and the lists of resources and scripts."""
        return content_of(self, self.instructions)

    @overload
    def resource(self, function: _F) -> _F: ...
    @overload
    def resource(self, *, name: str | None = None, description: str | None = None) -> Callable[[_F], _F]: ...
    def resource(
        self, function: Callable[..., Any] | None = None, *, name: str | None = None, description: str | None = None
    ) -> Any:
        """Add a function as a resource and return it unchanged. Name and docstring of the function are the defaults."""

        def add(function: _F) -> _F:
            described = description or inspect.getdoc(function)
            self._ab_resources.append(
                InlineSkillResource(name=name or function.__name__, description=described, function=function)
            )
            return function

        return add if function is None else add(function)

    @overload
    def script(self, function: _F) -> _F: ...
    @overload
    def script(self, *, name: str | None = None, description: str | None = None) -> Callable[[_F], _F]: ...
    def script(
        self, function: Callable[..., Any] | None = None, *, name: str | None = None, description: str | None = None
    ) -> Any:
        """Add a function as a script and return it unchanged. Name and docstring of the function are the defaults."""

        def add(function: _F) -> _F:
            script = InlineSkillScript(name=name or function.__name__, function=function, description=description)
            self._ab_scripts.append(script)
            return function

        return add if function is None else add(function)


_MARK = "_skill_part"


class ClassSkill(Skill):
    """Base class of skills that are defined as a class with `instructions` and decorated methods.

    By default, a resource or script is named like its method, with hyphens instead of underscores. A resource may be a
    property; write `@property` above the decorator.

    Args:
        frontmatter: The name, description and other metadata.

    Raises:
        ValueError: Two resources or two scripts have the same name; raised when they are first read.

    Example:
        class Menus(ClassSkill):
            def __init__(self):
                super().__init__(frontmatter=SkillFrontmatter(name="menus", description="Plans menus."))

            @property
            def instructions(self):
                return "Read the prices first."

            @property
            @ClassSkill.resource
            def prices(self):
                return "bread: 2 EUR"

            @ClassSkill.script(name="total")
            def add(self, prices: list[float]) -> float:
                return sum(prices)
    """

    def __init__(self, *, frontmatter: SkillFrontmatter) -> None:
        super().__init__(frontmatter=frontmatter)
        self._ab_parts: dict[str, list[Any]] = {}

    @property
    @abstractmethod
    def instructions(self) -> str:
        """The instructions for the model."""

    @property
    def content(self) -> str:
        """The text for the model: name, description, instructions, and the lists of resources and scripts."""
        return content_of(self, self.instructions)

    @property
    def resources(self) -> list[SkillResource]:
        """A new list of the resources."""
        return list(self._ab_parts_of("resource"))

    @property
    def scripts(self) -> list[SkillScript]:
        """A new list of the scripts."""
        return list(self._ab_parts_of("script"))

    @staticmethod
    def resource(function: Any = None, *, name: str | None = None, description: str | None = None) -> Any:
        """Mark a method as a resource.

        Raises:
            TypeError: The method is already a property. Write `@property` above this decorator.
            ValueError: The name breaks the rules for names.
        """
        return _mark("resource", function, name, description)

    @staticmethod
    def script(function: Any = None, *, name: str | None = None, description: str | None = None) -> Any:
        """Mark a method as a script.

        Raises:
            TypeError: The method is a property.
            ValueError: The name breaks the rules for names.
        """
        return _mark("script", function, name, description)

    def _ab_parts_of(self, kind: str) -> list[Any]:
        if kind in self._ab_parts:
            return self._ab_parts[kind]
        parts: dict[str, Any] = {}
        for attribute in dict.fromkeys(name for cls in reversed(type(self).__mro__) for name in vars(cls)):
            member = inspect.getattr_static(type(self), attribute)
            function = member.fget if isinstance(member, property) else member
            mark = getattr(function, _MARK, None)
            if mark is None or mark[0] != kind:
                continue
            _, name, description = mark
            name = name or attribute.replace("_", "-")
            if name in parts:
                message = f"{type(self).__name__} has two {kind}s named {name!r}. Pass another name= to one of them."
                raise ValueError(message)
            described = description or inspect.getdoc(function)
            if kind == "script":
                parts[name] = InlineSkillScript(name=name, function=getattr(self, attribute), description=described)
                continue
            is_property = isinstance(member, property)
            read = (lambda get=member.__get__: get(self)) if is_property else getattr(self, attribute)
            parts[name] = InlineSkillResource(name=name, description=described, function=read)
        self._ab_parts[kind] = list(parts.values())
        return self._ab_parts[kind]


def _mark(kind: str, function: Any, name: str | None, description: str | None) -> Any:
    if name is not None:
        check_skill_name(name)

    def mark(function: Any) -> Any:
        if isinstance(function, property):
            message = f"@ClassSkill.{kind} is above @property. Expected @property above @ClassSkill.{kind}."
            raise TypeError(message)
        setattr(function, _MARK, (kind, name, description))
        return function

    return mark if function is None else mark(function)


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _takes_kwargs(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
