"""Skills that are defined in code: as an object with decorated functions, or as a class with decorated methods."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from agentbench.agents.skills.frontmatter import SkillFrontmatter, check_skill_name
from agentbench.agents.skills.skill import Skill, SkillResource, SkillScript, content_of
from agentbench.agents.tools.function_tool import FunctionTool

_F = TypeVar("_F", bound=Callable[..., Any])


class InlineSkillResource(SkillResource):
    """A resource that is a value, or that a function returns when it is read.

    Args:
        name: Its name in the skill.
        description: What it holds.
        content: The value; any type.
        function: Returns the value, plain or async. With `**kwargs` it gets those of the run.

    Raises:
        ValueError: There are both a content and a function, or neither; or the name is blank.

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
        """Return the value, or what the function returns."""
        if self.function is None:
            return self.content
        return await _result(self.function(**(kwargs if _takes_kwargs(self.function) else {})))


class InlineSkillScript(SkillScript):
    """A script that is a function.

    Args:
        name: Its name in the skill.
        function: The function, plain or async. With `**kwargs` it also gets those of the run.
        description: What it does; by default the function's docstring.

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
        self._tool = FunctionTool(function, name="script")

    @property
    def parameters_schema(self) -> dict[str, Any] | None:
        """The JSON schema of the parameters; `None` if there are none."""
        schema = self._tool.parameters()
        return schema if schema.get("properties") else None

    async def run(self, skill: Skill, args: dict[str, Any] | list[str] | None = None, **kwargs: Any) -> Any:
        """Call the function with arguments by name.

        Raises:
            TypeError: The arguments are not a mapping, do not fit, or the run has a keyword of the same name.
        """
        if args is not None and not isinstance(args, dict):
            message = f"Script {self.name!r} got a {type(args).__name__} of arguments. Expected them by name."
            raise TypeError(message)
        if both := set(args or {}) & set(kwargs):
            message = (
                f"Script {self.name!r} gets {', '.join(sorted(both))} from the model and from the run. Rename one."
            )
            raise TypeError(message)
        valid = self._tool.validate_arguments(args or {})
        return await _result(self.function(**valid, **(kwargs if _takes_kwargs(self.function) else {})))


class InlineSkill(Skill):
    """A skill that is defined in code; add resources and scripts by its decorators.

    Args:
        frontmatter: Name, description and further facts; or pass the two by themselves.
        instructions: What to do, for the model.
        resources: What can be read.
        scripts: What can be run.
        name: Its name, instead of a front matter.
        description: What it is good for, instead of a front matter.

    Raises:
        TypeError: There are both a front matter and a name or description, or neither.
        ValueError: The name or the description breaks the rules of `SkillFrontmatter`.

    Example:
        skill = InlineSkill(name="menus", description="Plans menus.", instructions="Read the prices first.")


        @skill.resource
        def prices() -> str:
            "What things cost."
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
        super().__init__(frontmatter=frontmatter)
        self.instructions = instructions
        self._resources: list[SkillResource] = list(resources or ())
        self._scripts: list[SkillScript] = list(scripts or ())

    @property
    def content(self) -> str:
        """The text for the model: name, description, instructions, and lists of resources and scripts."""
        return content_of(self, self.instructions)

    @property
    def resources(self) -> list[SkillResource]:
        """The resources; the list itself, which may be extended."""
        return self._resources

    @property
    def scripts(self) -> list[SkillScript]:
        """The scripts; the list itself, which may be extended."""
        return self._scripts

    @overload
    def resource(self, function: _F) -> _F: ...
    @overload
    def resource(self, *, name: str | None = None, description: str | None = None) -> Callable[[_F], _F]: ...
    def resource(
        self, function: Callable[..., Any] | None = None, *, name: str | None = None, description: str | None = None
    ) -> Any:
        """Add a function as a resource, and return it as it is; its name and docstring are the defaults."""

        def add(function: _F) -> _F:
            described = description or inspect.getdoc(function)
            self._resources.append(
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
        """Add a function as a script, and return it as it is; its name and docstring are the defaults."""

        def add(function: _F) -> _F:
            script = InlineSkillScript(name=name or function.__name__, function=function, description=description)
            self._scripts.append(script)
            return function

        return add if function is None else add(function)


_MARK = "_skill_part"


class ClassSkill(Skill):
    """The base of skills that are defined as a class: a subclass has `instructions`, and decorated methods.

    A method's name with hyphens for underscores is the name of its resource or script. A resource may be a property,
    with `@property` outside.

    Args:
        frontmatter: Name, description and further facts.

    Raises:
        ValueError: When resources or scripts are read: two of them have one name.

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
        self._parts: dict[str, list[Any]] = {}

    @property
    @abstractmethod
    def instructions(self) -> str:
        """The instructions for the model."""

    @property
    def content(self) -> str:
        """The text for the model: name, description, instructions, and lists of resources and scripts."""
        return content_of(self, self.instructions)

    @property
    def resources(self) -> list[SkillResource]:
        """The resources, in a new list."""
        return list(self._parts_of("resource"))

    @property
    def scripts(self) -> list[SkillScript]:
        """The scripts, in a new list."""
        return list(self._parts_of("script"))

    @staticmethod
    def resource(function: Any = None, *, name: str | None = None, description: str | None = None) -> Any:
        """Mark a method as a resource.

        Raises:
            TypeError: The method is a property already: put `@property` outside.
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

    def _parts_of(self, kind: str) -> list[Any]:
        if kind in self._parts:
            return self._parts[kind]
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
                message = f"{type(self).__name__} has two of the name {name!r}. Give one of them another name=."
                raise ValueError(message)
            described = description or inspect.getdoc(function)
            if kind == "script":
                parts[name] = InlineSkillScript(name=name, function=getattr(self, attribute), description=described)
            elif isinstance(member, property):
                read = member.__get__
                parts[name] = InlineSkillResource(
                    name=name, description=described, function=lambda read=read: read(self)
                )
            else:
                parts[name] = InlineSkillResource(name=name, description=described, function=getattr(self, attribute))
        self._parts[kind] = list(parts.values())
        return self._parts[kind]


def _mark(kind: str, function: Any, name: str | None, description: str | None) -> Any:
    if name is not None:
        check_skill_name(name)

    def mark(function: Any) -> Any:
        if isinstance(function, property):
            message = f"@ClassSkill.{kind} stands outside of @property. Expected @property above @ClassSkill.{kind}."
            raise TypeError(message)
        setattr(function, _MARK, (kind, name, description))
        return function

    return mark if function is None else mark(function)


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _takes_kwargs(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(each.kind is each.VAR_KEYWORD for each in parameters)
