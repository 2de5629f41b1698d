"""Skills in folders: a `SKILL.md` with resources and scripts beside it. Nothing outside of its folder can be named."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from agentbench._files.private_file import read_private
from agentbench.agents.skills.frontmatter import SkillFrontmatter, read_skill_md
from agentbench.agents.skills.script_runner import subprocess_script_runner
from agentbench.agents.skills.skill import Skill, SkillResource, SkillScript, SkillScriptRunner, scripts_block
from agentbench.agents.skills.sources import SkillsSource

logger = logging.getLogger("agentbench")

_SKILL_MD: Final = "SKILL.md"
_DEPTH: Final = 2
_MOST_BYTES: Final = 2**20


class FileSkill(Skill):
    """A skill in a folder.

    Args:
        frontmatter: What its `SKILL.md` says of it.
        content: The whole `SKILL.md`.
        path: The folder.
        resources: What can be read.
        scripts: What can be run.
    """

    def __init__(
        self,
        *,
        frontmatter: SkillFrontmatter,
        content: str,
        path: str | os.PathLike[str],
        resources: Sequence[SkillResource] | None = None,
        scripts: Sequence[SkillScript] | None = None,
    ) -> None:
        super().__init__(frontmatter=frontmatter)
        self.path = os.fspath(path)
        self._content = content
        self._resources, self._scripts = list(resources or ()), list(scripts or ())

    @property
    def content(self) -> str:
        """What the model gets: the `SKILL.md`, and a list of scripts with their arguments."""
        return "\n".join([self._content, *scripts_block(self.scripts)])

    @property
    def resources(self) -> list[SkillResource]:
        """What can be read."""
        return self._resources

    @property
    def scripts(self) -> list[SkillScript]:
        """What can be run."""
        return self._scripts


class _FileResource(SkillResource):
    """A file in the folder of a skill."""

    def __init__(self, *, name: str, folder: str, max_bytes: int) -> None:
        super().__init__(name=name)
        self._folder, self._max_bytes = folder, max_bytes

    async def read(self, **kwargs: Any) -> str:
        """Return the text of the file, which is checked again: it may be another one since it was found."""
        return await asyncio.to_thread(_text_in, self._folder, self.name, self._max_bytes)


class FileSkillScript(SkillScript):
    """A script in the folder of a skill. It runs only by a runner that you pass.

    Args:
        name: Its path in the folder.
        full_path: Its whole path.
        description: What it does.
        runner: Runs it; see `subprocess_script_runner`.

    Raises:
        ValueError: The path is not absolute.
    """

    def __init__(
        self, *, name: str, full_path: str, description: str | None = None, runner: SkillScriptRunner | None = None
    ) -> None:
        super().__init__(name=name, description=description)
        if not os.path.isabs(full_path):
            message = f"The path of script {name!r} is {full_path!r}. Expected an absolute one."
            raise ValueError(message)
        self.full_path, self.runner = full_path, runner

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The arguments: a list of texts, as on a command line."""
        return {"type": "array", "items": {"type": "string"}}

    async def run(self, skill: Skill, args: dict[str, Any] | list[str] | None = None, **kwargs: Any) -> Any:
        """Let the runner run the script.

        Raises:
            TypeError: The skill is in no folder.
            ValueError: There is no runner, or the script is not, or no longer, a plain file in the folder of the skill.
        """
        if not isinstance(skill, FileSkill):
            message = f"Script {self.name!r} belongs to a folder, and {skill!r} is in none. Expected a FileSkill."
            raise TypeError(message)
        if self.runner is None:
            message = f"Script {self.name!r} has no runner. Pass script_runner=, such as subprocess_script_runner()."
            raise ValueError(message)
        if not await asyncio.to_thread(_is_in_skill, self.full_path, skill.path):
            message = f"Script {self.name!r} is no plain file in {skill.path!r}. Links and other folders are refused."
            raise ValueError(message)
        result = self.runner(skill, self, args)
        return await result if inspect.isawaitable(result) else result


class FileSkillsSource(SkillsSource):
    """Finds skills in folders: those with a `SKILL.md`, up to two levels below each path.

    A folder that breaks the rules is skipped, and the log says why. Symbolic links below a path are never followed.

    Args:
        skill_paths: A folder or several: of skills, or each a skill itself. Missing ones are ignored.
        script_runner: Runs the scripts; without one they are listed and cannot be run.
        resource_extensions: Which files are resources; by default texts, tables and data.
        script_extensions: Which files are scripts; by default `.py`.
        resource_directories: Where resources are, in the folder of a skill; `"."` is the folder itself.
        script_directories: Where scripts are.
        max_resource_bytes: The most bytes of a resource, and of a `SKILL.md`.

    Raises:
        ValueError: The name of a directory is empty.

    Example:
        source = FileSkillsSource("skills", script_runner=subprocess_script_runner(timeout=10))
        agent = Agent(EchoChatClient(), context_providers=[SkillsProvider(source)])
    """

    def __init__(
        self,
        skill_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        script_runner: SkillScriptRunner | None = None,
        resource_extensions: Iterable[str] | None = None,
        script_extensions: Iterable[str] | None = None,
        resource_directories: Iterable[str] | None = None,
        script_directories: Iterable[str] | None = None,
        max_resource_bytes: int = _MOST_BYTES,
    ) -> None:
        given: object = script_runner
        if given is subprocess_script_runner:
            message = "script_runner=subprocess_script_runner makes runners. Expected one: subprocess_script_runner()."
            raise TypeError(message)
        paths = [skill_paths] if isinstance(skill_paths, (str, os.PathLike)) else list(skill_paths)
        self.skill_paths = [os.fspath(path) for path in paths]
        self.script_runner, self.max_resource_bytes = script_runner, max_resource_bytes
        self._resource_endings = _endings(
            resource_extensions, (".md", ".json", ".yaml", ".yml", ".csv", ".xml", ".txt")
        )
        self._script_endings = _endings(script_extensions, (".py",))
        self._resource_folders = _folders(resource_directories, ("references", "assets"))
        self._script_folders = _folders(script_directories, ("scripts",))

    async def get_skills(self) -> list[Skill]:
        """Return the skills that are there now; of two with one name the first."""
        return await asyncio.to_thread(self._find)

    def _find(self) -> list[Skill]:
        skills: dict[str, Skill] = {}
        for path in self.skill_paths:
            for folder in _skill_folders(os.path.realpath(path), _DEPTH) if path else ():
                try:
                    skill = self._read(folder)
                except (OSError, RecursionError, ValueError) as error:
                    logger.error("The skill in %s is skipped: %s", folder, error)
                    continue
                name = skill.frontmatter.name
                if name in skills:
                    logger.warning("The skill in %s is skipped: there is another one called %r.", folder, name)
                else:
                    skills[name] = skill
        return list(skills.values())

    def _read(self, folder: str) -> FileSkill:
        content = _text_in(folder, _SKILL_MD, self.max_resource_bytes)
        frontmatter = read_skill_md(content)
        if frontmatter.name != os.path.basename(folder):
            message = f"It is called {frontmatter.name!r}. Expected the name of its folder."
            raise ValueError(message)
        resources = [
            _FileResource(name=name, folder=folder, max_bytes=self.max_resource_bytes)
            for name in _files(folder, self._resource_folders, self._resource_endings)
        ]
        scripts = [
            FileSkillScript(name=name, full_path=os.path.join(folder, *name.split("/")), runner=self.script_runner)
            for name in _files(folder, self._script_folders, self._script_endings)
        ]
        return FileSkill(frontmatter=frontmatter, content=content, path=folder, resources=resources, scripts=scripts)


def _skill_folders(folder: str, depth: int) -> Iterator[str]:
    """Yield the folders with a `SKILL.md`, in the order of their names; there are no skills inside of skills."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:  # no folder, or none that may be read
        return
    if any(entry.name == _SKILL_MD for entry in found):
        yield folder
    elif depth:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                yield from _skill_folders(entry.path, depth - 1)


def _files(folder: str, directories: Iterable[str], endings: tuple[str, ...]) -> list[str]:
    """Return the names of plain files in directories of a skill, as paths from its folder."""
    names = []
    for directory in directories:
        path = os.path.join(folder, *directory.split("/"))
        for name in os.listdir(path) if os.path.isdir(path) else ():
            relative = name if directory == "." else f"{directory}/{name}"
            if not name.lower().endswith(endings) or relative.lower() == _SKILL_MD.lower():
                continue
            if _is_inside(folder, relative):
                names.append(relative)
            else:
                logger.warning(
                    "%s in the skill %s is skipped: it is no plain file, or behind a link.", relative, folder
                )
    return sorted(names)


def _is_in_skill(path: str, folder: str) -> bool:
    return _is_inside(folder, Path(os.path.relpath(path, folder)).as_posix())


def _is_inside(folder: str, name: str) -> bool:
    """Whether a name leads to a plain file in a folder, and no part of the way is a link."""
    parts = name.split("/")
    if os.path.isabs(name) or ".." in parts:
        return False
    path = folder
    for part in parts:
        path = os.path.join(path, part)
        if os.path.islink(path):
            return False
    return os.path.isfile(path)


def _text_in(folder: str, name: str, max_bytes: int) -> str:
    if not _is_inside(folder, name):
        message = f"{name!r} is no plain file in its folder. Links and other folders are refused."
        raise ValueError(message)
    data, _ = read_private(os.path.join(folder, *name.split("/")), max_bytes)
    return data.decode("utf-8-sig")


def _endings(extensions: Iterable[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    given = default if extensions is None else extensions
    return tuple(("" if one.startswith(".") else ".") + one.lower() for one in given)


def _folders(directories: Iterable[str] | None, default: tuple[str, ...]) -> list[str]:
    """Return the names of directories in their plain form; those that lead out are left out, with a warning."""
    found: dict[str, None] = {}
    for given in default if directories is None else directories:
        name = given.replace("\\", "/")
        if not name.strip():
            message = f"The name of a directory is {given!r}. Expected one in the folder of a skill, or '.'."
            raise ValueError(message)
        if name.startswith("/") or name[1:2] == ":" or ".." in name.split("/"):
            logger.warning("The directory %r is left out: it is not in the folder of a skill.", given)
            continue
        found["/".join(part for part in name.split("/") if part not in ("", ".")) or "."] = None
    return list(found)
