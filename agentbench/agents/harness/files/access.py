"""Tools with which an agent works on the files of a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, cast

from agentbench.agents.arguments import describe
from agentbench.agents.harness.files.store import AgentFileStore, normalize_path
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.agents.tools.function_tool import ApprovalMode, FunctionTool
from agentbench.exceptions import FileStoreError, ToolResultError

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

_MOST_CHARACTERS: Final = 30_000
"""Maximum number of characters of a file that a model reads in one call."""


class FileTools:
    """The tools over one store, or over a folder of it that depends on the session.

    Args:
        store: The store.
        prefix: The beginning of the names of the tools.
        folder_of: Returns the folder of a session in the store; the paths of the model are relative to it.
        read_only: Whether to leave out the tools that change files.
        require_approval: Whether a person has to approve the calls of these tools.
    """

    def __init__(
        self,
        store: AgentFileStore,
        prefix: str,
        folder_of: Callable[[AgentSession], str] = lambda session: "",
        *,
        read_only: bool = False,
        require_approval: bool = False,
    ) -> None:
        if not isinstance(cast("object", store), AgentFileStore):
            message = f"store is {describe(store)}. Expected an AgentFileStore: FileSystemAgentFileStore('workspace')."
            raise TypeError(message)
        self._store, self._folder_of = store, folder_of
        self.tools = [
            FunctionTool(self.list_folder, name=f"{prefix}_list"),
            FunctionTool(self.read, name=f"{prefix}_read"),
            FunctionTool(self.search, name=f"{prefix}_search"),
        ]
        if not read_only:
            mode: ApprovalMode = "always_require" if require_approval else "never_require"
            self.tools += [
                FunctionTool(self.write, name=f"{prefix}_write", approval_mode=mode),
                FunctionTool(self.edit, name=f"{prefix}_edit", approval_mode=mode),
                FunctionTool(self.delete, name=f"{prefix}_delete", approval_mode=mode),
            ]

    async def list_folder(self, context: FunctionInvocationContext, directory: str = "") -> str:
        """List the files and folders in a folder; without a folder, those at the top."""
        with _told_to_the_model(directory):
            try:
                entries = await self._store.list_children(self._place(context, directory))
            except FileNotFoundError:
                if normalize_path(directory):
                    raise
                entries = []  # the folder of a session is created with its first file
        return json.dumps([asdict(entry) for entry in entries], ensure_ascii=False)

    async def read(self, context: FunctionInvocationContext, path: str, first_line: int = 1) -> str:
        """Read a file, from a line on. A long file is cut, and the last line says how to continue."""
        with _told_to_the_model(path):
            text = await self._store.read(self._place(context, path))
        lines = text.splitlines(keepends=True)
        return _beginning(lines, max(first_line, 1) - 1)

    async def search(
        self, context: FunctionInvocationContext, query: str, directory: str = "", file_pattern: str = "*"
    ) -> str:
        """Find the lines that contain a text, in all files of a folder whose names match a pattern such as *.md."""
        folder = self._folder_of(context.session)
        with _told_to_the_model(directory):
            try:
                found = await self._store.search(query, self._place(context, directory), file_pattern=file_pattern)
            except FileNotFoundError:
                if normalize_path(directory):
                    raise
                found = []  # as in list_folder
        results = [asdict(result) for result in found]
        for result in results:
            result["file_name"] = result["file_name"].removeprefix(f"{folder}/") if folder else result["file_name"]
        return json.dumps(results, ensure_ascii=False)

    async def write(self, context: FunctionInvocationContext, path: str, content: str) -> str:
        """Create a file, or replace the whole file."""
        with _told_to_the_model(path):
            await self._store.write(self._place(context, path), content)
        return f"Wrote {path}."

    async def edit(
        self,
        context: FunctionInvocationContext,
        path: str,
        old_text: str,
        new_text: str,
        replace_all: bool = False,
    ) -> str:
        """Replace a piece of a file. The old text must occur exactly once, unless all occurrences are replaced."""
        with _told_to_the_model(path):
            place = self._place(context, path)
            count = await self._store.edit(place, old_text, new_text, replace_all=replace_all)
        return f"Replaced {count} {'piece' if count == 1 else 'pieces'} of {path}."

    async def delete(self, context: FunctionInvocationContext, path: str) -> str:
        """Delete a file."""
        with _told_to_the_model(path):
            is_deleted = await self._store.delete(self._place(context, path))
        return f"Deleted {path}." if is_deleted else f"There is no file {path}."

    def _place(self, context: FunctionInvocationContext, path: str) -> str:
        """Return the path in the store of a path of the model, which does not leave the session's folder."""
        folder, below = self._folder_of(context.session), normalize_path(path)
        return f"{folder}/{below}" if folder and below else folder or below


class FileAccessProvider(ContextProvider):
    """Gives an agent tools for the files of a store: list, read, search, write, edit and delete.

    The tools are named after the provider: `file_access_list`, `file_access_read` and so on.

    Args:
        store: The store. All sessions share its files.
        source_id: The id of the provider, unique in an agent.
        instructions: Instructions for the model, instead of the default ones.
        read_only: Whether to leave out the tools that change files.
        require_write_approval: Whether a person has to approve each change.

    Raises:
        TypeError: `store` is not an `AgentFileStore`.

    Example:
        files = FileAccessProvider(FileSystemAgentFileStore("workspace"), require_write_approval=True)
        agent = Agent(EchoChatClient(), context_providers=[files])
    """

    def __init__(
        self,
        store: AgentFileStore,
        *,
        source_id: str = "file_access",
        instructions: str | None = None,
        read_only: bool = False,
        require_write_approval: bool = False,
    ) -> None:
        super().__init__(source_id)
        self.store = store
        self.instructions = (
            f"You have files that you share with the user; the tools that begin with {source_id} work on them. Paths "
            "are relative to the top folder. Read a file before you change it."
            if instructions is None
            else instructions
        )
        self.__tools = FileTools(store, source_id, read_only=read_only, require_approval=require_write_approval).tools

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the instructions and the tools."""
        context.extend_instructions(self, self.instructions)
        context.extend_tools(self, self.__tools)


@contextmanager
def _told_to_the_model(path: str) -> Iterator[None]:
    """Let the model read why a store refused its path, so that it can correct its call."""
    try:
        yield
    except FileStoreError as error:
        message = f"{path!r}: {error.problem}"
        raise ToolResultError(message, error) from error
    except FileNotFoundError as error:
        message = f"There is no {path!r}. List its folder to see what there is."
        raise ToolResultError(message, error) from error


def _beginning(lines: list[str], start: int) -> str:
    """Return as many lines as a model reads in one call, at least a part of the first one."""
    if start >= len(lines):
        return f"[There is no line {start + 1}: the file has {len(lines)} lines.]" if lines else "[The file is empty.]"
    end, size = start, 0
    while end < len(lines) and (size + len(lines[end]) <= _MOST_CHARACTERS or end == start):
        size += len(lines[end])
        end += 1
    text = "".join(lines[start:end])
    notes = []
    if size > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS] + "\n"
        notes.append(f"Line {end} is cut after {_MOST_CHARACTERS:,} of its {size:,} characters; search it for more.")
    if end < len(lines):
        notes.append(f"Lines {start + 1} to {end} of {len(lines)}. Continue with first_line={end + 1}.")
    return f"{text}[{' '.join(notes)}]" if notes else text
