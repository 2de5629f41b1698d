"""Stores of sessions: a snapshot of each session by an id, in memory or in JSON files."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from agentbench._files.stored_text import folder_ignores_case, read_json, replace_text, stem_of
from agentbench._workers import run_in_thread
from agentbench.agents.arguments import describe
from agentbench.agents.sessions.session import AgentSession

_ID: Final = "stored_as"
"""Key of the id in a snapshot, beside the fields of the session: a long id is not the name of its file."""


class SessionStore:
    """Snapshots of sessions in memory, by an id that you choose, such as that of a user or a conversation.

    A snapshot is a copy: `set` makes one, and `get` returns a new session, so later changes of a session do not change
    the snapshot. Values of the state have to be serializable, as for `AgentSession.to_dict`.

    Example:
        store = SessionStore()
        session = await store.get("ada") or agent.create_session()
        await agent.run("My name is Ada.", session=session)
        await store.set("ada", session)
    """

    def __init__(self) -> None:
        self._ab_snapshots: dict[str, str] = {}

    async def get(self, session_id: str) -> AgentSession | None:
        """Return a new session from the snapshot, or None if there is none.

        Raises:
            TypeError: The id is not text.
            ValueError: The snapshot cannot be read.
        """
        text = self._ab_snapshots.get(_checked(session_id))
        return None if text is None else AgentSession.from_dict(json.loads(text))

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Store a snapshot of a session; it replaces an earlier one with this id.

        Raises:
            TypeError: The id is not text, `session` is not a session, or a value in its state cannot be serialized.
        """
        self._ab_snapshots[_checked(session_id)] = _snapshot(session_id, session)

    async def delete(self, session_id: str) -> bool:
        """Remove a snapshot; return whether there was one."""
        return self._ab_snapshots.pop(_checked(session_id), None) is not None

    async def list_ids(self) -> list[str]:
        """Return the ids of all snapshots, sorted."""
        return sorted(self._ab_snapshots)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._ab_snapshots)} sessions)"


class FileSessionStore(SessionStore):
    """Snapshots of sessions in JSON files, which only their owner can read. Otherwise like `SessionStore`.

    Each file is replaced in one step; links are not followed. `AgentSession.from_dict` reads the content of a file.

    Args:
        storage_path: The folder; it is created with its parents if it does not exist.

    Raises:
        ValueError: The path is empty.
        OSError: The folder cannot be created, because the path is a file.

    Example:
        store = FileSessionStore("sessions")
        await store.set("ada", session)
        print(await store.list_ids())
    """

    def __init__(self, storage_path: str | os.PathLike[str]) -> None:
        super().__init__()
        folder = os.fspath(storage_path)
        if not folder:
            message = "storage_path is empty. Expected the path of a folder; '.' is the current one."
            raise ValueError(message)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._ab_folder = os.path.realpath(folder)
        self._ab_ignores_case = folder_ignores_case(self._ab_folder)

    @property
    def storage_path(self) -> Path:
        """The folder of the files, with symbolic links resolved."""
        return Path(self._ab_folder)

    async def get(self, session_id: str) -> AgentSession | None:
        """Return a new session from the file, or None if there is none.

        Raises:
            TypeError: The id is not text.
            ValueError: The file is a link, or is not a session.
            OSError: The file cannot be read.
        """
        found = await run_in_thread(read_json, self._ab_folder, self._ab_path_of(session_id))
        return None if found is None else AgentSession.from_dict(found)

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Write a snapshot of a session to its file, which is replaced.

        Raises:
            TypeError: The id is not text, `session` is not a session, or a value in its state cannot be serialized.
            ValueError: The file is a link.
            OSError: The file cannot be written.
        """
        await run_in_thread(replace_text, self._ab_folder, self._ab_path_of(session_id), _snapshot(session_id, session))

    async def delete(self, session_id: str) -> bool:
        """Remove the file of a snapshot; return whether there was one."""
        with suppress(FileNotFoundError):
            os.unlink(self._ab_path_of(session_id))
            return True
        return False

    async def list_ids(self) -> list[str]:
        """Return the ids of all snapshots, sorted; files of other content are left out."""
        return await run_in_thread(self._ab_list_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._ab_folder!r})"

    def _ab_path_of(self, session_id: str) -> str:
        stem = stem_of(_checked(session_id), ignores_case=self._ab_ignores_case)
        return os.path.join(self._ab_folder, f"{stem}.json")

    def _ab_list_ids(self) -> list[str]:
        ids: list[str] = []
        names: list[str] = []
        with suppress(FileNotFoundError):  # the folder was removed; the next `set` creates it
            names = os.listdir(self._ab_folder)
        for name in names:
            with suppress(ValueError, OSError):
                found: Any = read_json(self._ab_folder, os.path.join(self._ab_folder, name))
                if isinstance(found, dict) and isinstance(found.get(_ID), str):
                    ids.append(found[_ID])
        return sorted(ids)


def _checked(session_id: object) -> str:
    if not isinstance(session_id, str):
        message = f"The id of a stored session is {session_id!r}. Expected text: pass str(...)."
        raise TypeError(message)
    return session_id


def _snapshot(session_id: str, session: AgentSession) -> str:
    checked: object = session
    if not isinstance(checked, AgentSession):
        message = f"The session to store is {describe(session)}. Expected an AgentSession, from agent.create_session()."
        raise TypeError(message)
    return json.dumps({**session.to_dict(), _ID: session_id})
