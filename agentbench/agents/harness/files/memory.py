"""A memory that an agent keeps as files of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentbench._files.stored_text import stem_of
from agentbench.agents.harness.files.access import FileTools
from agentbench.agents.harness.files.store import AgentFileStore
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

_MOST_FILES: Final = 100
_LONGEST_LINE: Final = 120
"""What the model sees of its memory at the beginning of a run: this many files, and so much of their first lines."""


class FileMemoryProvider(ContextProvider):
    """Gives an agent a memory of text files that it writes, reads and edits itself.

    Each run shows the names of the files and their first lines to the model. The tools are named after the provider:
    `file_memory_write`, `file_memory_read` and so on.

    Args:
        store: The store. Each owner has a folder in it.
        source_id: The id of the provider, unique in an agent.
        owner_state_key: The key of `session.state` that contains the owner, whose sessions share one memory. By default
            each session has its own.
        instructions: Instructions for the model, instead of the default ones.

    Raises:
        TypeError: `store` is not an `AgentFileStore`.

    Example:
        memory = FileMemoryProvider(FileSystemAgentFileStore("memory"), owner_state_key="user")
        agent = Agent(EchoChatClient(), context_providers=[memory])
        session = agent.create_session()
        session.state["user"] = "ada"
    """

    def __init__(
        self,
        store: AgentFileStore,
        *,
        source_id: str = "file_memory",
        owner_state_key: str | None = None,
        instructions: str | None = None,
    ) -> None:
        super().__init__(source_id)
        self.store, self.owner_state_key = store, owner_state_key
        self.instructions = (
            f"You have a memory of text files; the tools that begin with {source_id} work on it. Write down what you "
            "will need later: decisions, findings, what the user wants. Begin each file with a line that says what is "
            "in it, keep one subject in a file, and correct what has changed. Read a file before you rely on it."
            if instructions is None
            else instructions
        )
        self.__tools = FileTools(store, source_id, self._ab_folder_of).tools

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the instructions, the tools, and a message with the names and first lines of the files.

        Raises:
            RuntimeError: The session has no owner although the provider was created with `owner_state_key`.
        """
        overview = await self._ab_overview(self._ab_folder_of(session))
        context.extend_instructions(self, self.instructions)
        context.extend_tools(self, self.__tools)
        context.extend_messages(self, [Message("user", overview)])

    def _ab_folder_of(self, session: AgentSession) -> str:
        if self.owner_state_key is None:
            return stem_of(session.session_id, ignores_case=True)
        owner = session.state.get(self.owner_state_key)
        if not owner:
            message = f"{session!r} has no state {self.owner_state_key!r}. Expected the owner of its memory there."
            raise RuntimeError(message)
        return stem_of(str(owner), ignores_case=True)  # the file system of a store may ignore case

    async def _ab_overview(self, folder: str) -> str:
        try:
            entries = await self.store.list_children(folder)
        except FileNotFoundError:
            entries = []
        lines = [
            f"- {entry.name}: {await self._ab_first_line(f'{folder}/{entry.name}')}"
            if entry.type == "file"
            else f"- {entry.name}/"
            for entry in entries[:_MOST_FILES]
        ]
        if not lines:
            return "Your memory is empty."
        more = [f"... and {len(entries) - _MOST_FILES} more"] if len(entries) > _MOST_FILES else []
        return "\n".join(["Your memory:", *lines, *more])

    async def _ab_first_line(self, path: str) -> str:
        try:
            text = await self.store.read(path)
        except (OSError, ValueError):
            return "(not readable)"
        return text.strip().partition("\n")[0][:_LONGEST_LINE]
