"""Skills in folders: a `SKILL.md` with resources and scripts. Files outside the folder cannot be accessed."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from agentbench._files.private_file import read_private
from agentbench._limits import require_limit
from agentbench._user_code import warn_user
from agentbench._workers import run_in_thread
from agentbench.agents.skills.script_runner import SCRIPT_ENDINGS, subprocess_script_runner
from agentbench.agents.skills.skill import (
    Skill,
    SkillFrontmatter,
    SkillResource,
    SkillScript,
    SkillScriptRunner,
    StoredSkill,
    read_skill_md,
)
from agentbench.agents.skills.sources import SkillsSource

logger = logging.getLogger("agentbench")

_SKILL_MD: Final = "SKILL.md"
_DEPTH: Final = 2
_MOST_BYTES: Final = 2**20
_MOST_FILES: Final = 1000
_SAMPLE_BYTES: Final = 1024  # enough to detect binary files and to read the first line of a script
_IGNORED_FOLDERS: Final = frozenset({"__pycache__", "node_modules"})  # created by tools, not part of the skill


class FileSkill(StoredSkill):
    """A skill in a folder.

    Args:
        frontmatter: The front matter of its `SKILL.md`.
        content: The whole text of its `SKILL.md`.
        path: The path of the folder.
        resources: The resources that can be read.
        scripts: The scripts that can be run.

    Example:
        from agentbench import FileSkillsSource, run_sync

        for skill in run_sync(FileSkillsSource("skills").get_skills()):
            print(skill.frontmatter.name, [resource.name for resource in skill.resources])
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
        super().__init__(frontmatter=frontmatter, content=content, resources=resources, scripts=scripts)
        self.path = os.fspath(path)


class _FileResource(SkillResource):
    """A file in the folder of a skill."""

    def __init__(self, *, name: str, folder: str, max_bytes: int) -> None:
        super().__init__(name=name)
        self._ab_folder, self._ab_max_bytes = folder, max_bytes

    async def read(self, **kwargs: Any) -> str:
        """Return the text of the file. The path is checked again, because the file may have been replaced by a link."""
        return await run_in_thread(_text_in, self._ab_folder, self.name, self._ab_max_bytes)


class FileSkillScript(SkillScript):
    """A script in the folder of a skill. It can only be run with a runner that you pass; a model can also read it.

    Args:
        name: The path of the script, relative to the folder.
        full_path: The absolute path of the script.
        description: A description of the script.
        runner: The function that runs the script; see `subprocess_script_runner`.
        max_bytes: The maximum size of a script that can be read.

    Raises:
        ValueError: The path is not absolute.

    Example:
        from agentbench import FileSkillsSource, subprocess_script_runner

        source = FileSkillsSource("skills", script_runner=subprocess_script_runner())
    """

    def __init__(
        self,
        *,
        name: str,
        full_path: str,
        description: str | None = None,
        runner: SkillScriptRunner | None = None,
        max_bytes: int = _MOST_BYTES,
    ) -> None:
        super().__init__(name=name, description=description)
        if not os.path.isabs(full_path):
            message = f"The path of script {name!r} is {full_path!r}. Expected an absolute path."
            raise ValueError(message)
        require_limit("max_bytes", max_bytes, least=1)
        self.full_path, self.runner, self._ab_max_bytes = full_path, runner, max_bytes

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments: a list of strings, as on a command line."""
        return {"type": "array", "items": {"type": "string"}}

    async def run(self, skill: Skill, args: dict[str, Any] | list[str] | None = None, **kwargs: Any) -> Any:
        """Run the script with its runner.

        Raises:
            TypeError: The skill is not a `FileSkill`.
            ValueError: The script has no runner, or is not (or no longer) a regular file in the folder of the skill.
        """
        if not isinstance(skill, FileSkill):
            message = f"Script {self.name!r} needs a skill with a folder, but got {skill!r}. Expected a FileSkill."
            raise TypeError(message)
        if self.runner is None:
            message = (
                f"Script {self.name!r} has no runner. Pass script_runner=, for example subprocess_script_runner()."
            )
            raise ValueError(message)
        if not await run_in_thread(_is_in_skill, self.full_path, skill.path):
            message = f"Script {self.name!r} is not a regular file in {skill.path!r}. Symbolic links are not allowed."
            raise ValueError(message)
        result = self.runner(skill, self, args)
        return await result if inspect.isawaitable(result) else result

    async def read(self, skill: FileSkill) -> str:
        """Return the source of the script."""
        return await run_in_thread(_text_in, skill.path, self.name, self._ab_max_bytes)


class FileSkillsSource(SkillsSource):
    """A source of skills in folders: each folder with a `SKILL.md`, up to two levels below each path.

    Every file below the folder of a skill belongs to it. A file is a script if its ending or its `#!` line says so;
    otherwise it is a resource if it contains text. Hidden files and folders, `__pycache__` and `node_modules` are
    ignored, and symbolic links below a path are never followed. A skill that cannot be read is skipped; this and a
    missing path cause a `RuntimeWarning`.

    Args:
        skill_paths: One or more folders. Each is a skill or contains skills.
        script_runner: The function that runs scripts. Without one, scripts are listed but cannot be run.
        resource_extensions: The file endings of resources; by default all text files are resources.
        script_extensions: The file endings of scripts; by default those of `subprocess_script_runner`.
        resource_directories: The directories of a skill that contain resources, without their subdirectories; `"."` is
            the folder of the skill. By default all directories.
        script_directories: The directories of a skill that contain scripts; by default all directories.
        max_resource_bytes: The maximum size of a resource, and of a `SKILL.md`.
        max_files: The maximum number of files of a skill. The others are ignored with a warning.

    Raises:
        TypeError: `script_runner` is `subprocess_script_runner` itself; call it to create a runner.
        ValueError: The name of a directory is empty.

    Example:
        source = FileSkillsSource("skills", script_runner=subprocess_script_runner(timeout=10))
        agent = Agent(EchoChatClient(), context_providers=[SkillsProvider(source)])
    """

    def __init__(  # noqa: PLR0913 - the public signature
        self,
        skill_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        script_runner: SkillScriptRunner | None = None,
        resource_extensions: Iterable[str] | None = None,
        script_extensions: Iterable[str] | None = None,
        resource_directories: Iterable[str] | None = None,
        script_directories: Iterable[str] | None = None,
        max_resource_bytes: int = _MOST_BYTES,
        max_files: int = _MOST_FILES,
    ) -> None:
        runner: Any = script_runner
        if inspect.unwrap(runner) is inspect.unwrap(subprocess_script_runner):
            message = (
                "script_runner is subprocess_script_runner, which creates runners. Expected subprocess_script_runner()."
            )
            raise TypeError(message)
        paths = [skill_paths] if isinstance(skill_paths, (str, os.PathLike)) else list(skill_paths)
        self.skill_paths = [os.fspath(path) for path in paths]
        require_limit("max_resource_bytes", max_resource_bytes, least=1)
        require_limit("max_files", max_files, least=1)
        self.script_runner, self.max_resource_bytes, self.max_files = script_runner, max_resource_bytes, max_files
        self._ab_resource_endings = _endings(resource_extensions)
        self._ab_script_endings = _endings(script_extensions)
        self._ab_resource_folders = _folders(resource_directories)
        self._ab_script_folders = _folders(script_directories)

    async def get_skills(self) -> list[Skill]:
        """Return the skills that the folders contain now. If two have the same name, the first one is returned."""
        problems: list[str] = []
        skills = await run_in_thread(self._ab_find, problems)
        for problem in problems:
            logger.warning("%s", problem)
            warn_user(problem, RuntimeWarning)
        return skills

    def _ab_find(self, problems: list[str]) -> list[Skill]:
        skills: dict[str, FileSkill] = {}
        for path in filter(None, self.skill_paths):
            if not os.path.isdir(path):
                problems.append(f"The skill folder {path!r} does not exist. Check the path.")
            for folder in _skill_folders(os.path.realpath(path), _DEPTH):
                try:
                    skill = self._ab_read(folder, problems)
                except (OSError, RecursionError, ValueError) as error:
                    file = os.path.join(folder, _SKILL_MD)
                    problems.append(f"The skill in {folder} is skipped. {file}: {error}")
                    continue
                name = skill.frontmatter.name
                if name not in skills:
                    skills[name] = skill
                elif skills[name].path != folder:
                    problems.append(f"The skill in {folder} is skipped: another skill is called {name!r}.")
        return list(skills.values())

    def _ab_read(self, folder: str, problems: list[str]) -> FileSkill:
        content = _text_in(folder, _SKILL_MD, self.max_resource_bytes)
        frontmatter, changes = read_skill_md(content)
        problems += [f"{os.path.join(folder, _SKILL_MD)}: {change}" for change in changes]
        if frontmatter.name != os.path.basename(folder):
            message = f"The skill is called {frontmatter.name!r}. Expected the name of its folder."
            raise ValueError(message)
        resources: list[SkillResource] = []
        scripts: list[SkillScript] = []
        for count, name in enumerate(_files(folder)):
            if count == self.max_files:
                problems.append(f"{folder} has more than max_files={count:,} files. The others are ignored.")
                break
            if not _is_inside(folder, name):
                problems.append(f"{name} in the skill {folder} is skipped: it is not a regular file, or it is a link.")
            elif self._ab_is_script(folder, name):
                path = os.path.join(folder, *name.split("/"))
                runner, most = self.script_runner, self.max_resource_bytes
                scripts.append(FileSkillScript(name=name, full_path=path, runner=runner, max_bytes=most))
            elif self._ab_is_resource(folder, name):
                resources.append(_FileResource(name=name, folder=folder, max_bytes=self.max_resource_bytes))
        for parts in (resources, scripts):
            parts.sort(key=lambda part: part.name)
        return FileSkill(frontmatter=frontmatter, content=content, path=folder, resources=resources, scripts=scripts)

    def _ab_is_script(self, folder: str, name: str) -> bool:
        if self._ab_script_folders is not None and (os.path.dirname(name) or ".") not in self._ab_script_folders:
            return False
        if self._ab_script_endings is not None:
            return name.lower().endswith(self._ab_script_endings)
        return name.lower().endswith(SCRIPT_ENDINGS) or _sample(folder, name).startswith(b"#!")

    def _ab_is_resource(self, folder: str, name: str) -> bool:
        if self._ab_resource_folders is not None and (os.path.dirname(name) or ".") not in self._ab_resource_folders:
            return False
        if self._ab_resource_endings is not None:
            return name.lower().endswith(self._ab_resource_endings)
        return b"\0" not in _sample(folder, name)


def _skill_folders(folder: str, depth: int) -> Iterator[str]:
    """Yield the folders with a `SKILL.md` in the order of their names. A skill's folder is not searched further."""
    try:
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError:  # the folder does not exist or cannot be read
        return
    if any(entry.name == _SKILL_MD for entry in ordered):
        yield folder
    elif depth:
        for entry in ordered:
            if entry.is_dir(follow_symlinks=False):
                yield from _skill_folders(entry.path, depth - 1)


def _files(folder: str) -> Iterator[str]:
    """Yield the paths of the files of a skill, relative to its folder."""
    for path, directories, files in os.walk(folder):
        directories[:] = sorted(
            name for name in directories if not name.startswith(".") and name not in _IGNORED_FOLDERS
        )
        directory = Path(os.path.relpath(path, folder)).as_posix()
        links = [name for name in directories if os.path.islink(os.path.join(path, name))]
        for name in sorted([*files, *links]):
            relative = name if directory == "." else f"{directory}/{name}"
            if not name.startswith(".") and relative.lower() != _SKILL_MD.lower():
                yield relative


def _sample(folder: str, name: str) -> bytes:
    """Return the beginning of a file. For an unreadable file return a NUL byte, so that it counts as binary."""
    try:
        with open(os.path.join(folder, *name.split("/")), "rb") as file:
            return file.read(_SAMPLE_BYTES)
    except OSError:
        return b"\0"


def _is_in_skill(path: str, folder: str) -> bool:
    """Return whether a path is that of a regular file in the folder of a skill, whichever path led to the folder."""
    for parent in reversed(Path(path).parents):
        if os.path.exists(parent) and os.path.samefile(parent, folder):
            return _is_inside(folder, Path(path).relative_to(parent).as_posix())
    return False


def _is_inside(folder: str, name: str) -> bool:
    """Return whether a name is the path of a regular file in a folder, with no symbolic link in the path."""
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
        message = f"{name!r} is not a regular file in the folder of its skill. Links and paths outside are not allowed."
        raise ValueError(message)
    data, _ = read_private(os.path.join(folder, *name.split("/")), max_bytes)
    return data.decode("utf-8-sig")


def _endings(extensions: Iterable[str] | None) -> tuple[str, ...] | None:
    if extensions is None:
        return None
    return tuple(("" if one.startswith(".") else ".") + one.lower() for one in extensions)


def _folders(directories: Iterable[str] | None) -> set[str] | None:
    """Return the normalized names of directories. Those outside the folder of a skill are ignored with a warning."""
    if directories is None:
        return None
    names = set[str]()
    for directory in directories:
        name = directory.replace("\\", "/")
        if not name.strip():
            message = (
                f"The name of a directory is {directory!r}. Expected a directory in the folder of a skill, or '.'."
            )
            raise ValueError(message)
        if name.startswith("/") or name[1:2] == ":" or ".." in name.split("/"):
            logger.warning("The directory %r is ignored: it is not in the folder of a skill.", directory)
            continue
        names.add("/".join(part for part in name.split("/") if part not in ("", ".")) or ".")
    return names
