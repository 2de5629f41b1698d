"""Records and parts in Redis."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from agentbench._extras import require
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.joining import live_parts
from agentbench.checkpoints.redis_storage import scripts
from agentbench.checkpoints.redis_storage.client import RedisClient, connect
from agentbench.checkpoints.storage import require_head
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException

_SWEEP_ATTEMPTS: Final = 50
"""Other writers may interrupt a sweep this many times; unneeded parts then stay until the next one."""
_FOREIGN: Final = ("DAMAGED", "WRONGTYPE")
"""Texts in replies about keys that are not ours, from the scripts and from Redis itself."""

_Entry: TypeAlias = tuple[int, str, str]
"""Sequence number, timestamp, id."""
_log = logging.getLogger(__name__)


class RedisBackend:
    """Stores records and parts under the keys described in `checkpoints/redis.py`, with its arguments and errors."""

    def __init__(self, url_or_client: str | RedisClient, *, prefix: str) -> None:
        if not prefix or "{" in prefix or "}" in prefix:
            message = f"prefix is {prefix!r}; expected some text without braces, such as 'agentbench'."
            raise ValueError(message)
        self._client, self.place, self._is_own = connect(url_or_client)
        self._errors = require("redis.exceptions", extra="redis", purpose="keep checkpoints in Redis")
        self._prefix = prefix
        self._root = _encode(f"{{{prefix}}}:")

    @property
    def is_local(self) -> bool:
        """Always false, because a server is not local files."""
        return False

    def generation(self, workflow_name: str) -> int:
        """See `StorageBackend`. A restarted server has another generation, since it may have lost the latest data."""
        run, _, counter = self._run(scripts.GENERATION, workflow_name).decode().partition(":")
        return int(run, 16) << 64 | int(counter)

    def put(
        self,
        record: CheckpointRecord,
        parts: Mapping[str, str],
        *,
        generation: int,
        expected_seq: int | None = None,
        patient: bool = True,
    ) -> None:
        """See `StorageBackend`."""
        answer: bytes = self._run(
            scripts.PUT,
            record.workflow_name,
            record.checkpoint_id,
            secrets.token_hex(8),
            _generation_text(generation),
            "" if expected_seq is None else _sortable(expected_seq),
            _sortable(record.seq) + _without_nul(record.timestamp),
            _run_line(record.run_id) + record.head,
            record.content,
            *(text for part in parts.items() for text in part),
        )
        if answer == b"stale":
            raise StalePartsError
        if answer.startswith(b"head"):
            require_head(record.workflow_name, int(answer[4:], 16), expected_seq or 0)

    def put_chain(self, records: Sequence[CheckpointRecord], parts: Mapping[str, str], *, generation: int) -> None:
        """See `StorageBackend.put_chain`."""
        chain = records[0].workflow_name
        sent = [
            (r.checkpoint_id, _sortable(r.seq) + _without_nul(r.timestamp), _run_line(r.run_id) + r.head, r.content)
            for r in records
        ]
        answer: bytes = self._run(
            scripts.PUT_CHAIN,
            chain,
            secrets.token_hex(8),
            _generation_text(generation),
            str(len(records)),
            *(text for record in sent for text in record),
            *(text for part in parts.items() for text in part),
        )
        if answer == b"stale":
            raise StalePartsError
        if answer.startswith(b"head"):
            require_head(chain, int(answer[4:], 16), 0)
        if answer.startswith(b"known"):
            message = f"there is a checkpoint {_decode(answer[5:])!r} already"
            raise ValueError(message)

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        """See `StorageBackend`."""
        wanted = list(dict.fromkeys(ids))
        if not sweep:
            return int(self._run(scripts.REMOVE, workflow_name, *wanted)) if wanted else 0
        unused = {name.decode() for name in self._send("HKEYS", self._key("parts", workflow_name))}
        since = "-1"
        for _ in range(_SWEEP_ATTEMPTS):
            state, since, *contents = self._run(scripts.CONTENTS, workflow_name, since, *wanted)
            unused -= live_parts(map(_decode_or_empty, contents), lambda ids: self.parts(workflow_name, ids))
            removed = int(self._run(scripts.SWEEP, workflow_name, state, str(len(wanted)), *wanted, *unused))
            if removed >= 0:
                return removed
        return self.delete(workflow_name, wanted, sweep=False)

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        """See `StorageBackend`."""
        return _whole(self._run(scripts.GET, checkpoint_id))

    def latest(self, workflow_name: str) -> CheckpointRecord | None:
        """See `StorageBackend`."""
        return _whole(self._run(scripts.LATEST, workflow_name))

    def heads(
        self, workflow_name: str, *, run_id: str | None = None, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRecord]:
        """See `StorageBackend`. A record with an unreadable head is listed with an empty one."""
        found = self._run(
            scripts.HEADS,
            workflow_name,
            "" if before is None else f"={before}",
            "inf" if limit is None else str(limit),
            "" if run_id is None else _run_line(run_id),
        )
        if found is None:
            raise CheckpointNotFoundError(str(before))
        entries = map(partial(_readable_entry, workflow_name), reversed(found[::2]))
        pairs = zip(entries, reversed(found[1::2]), strict=True)
        return [_record(workflow_name, entry, head) for entry, head in pairs if entry is not None]

    def outlines(self, workflow_name: str) -> list[CheckpointRecord]:
        """See `StorageBackend`. Heads are not expensive here."""
        return self.heads(workflow_name)

    def ids(self, workflow_name: str) -> list[str]:
        """See `StorageBackend`."""
        entries = map(
            partial(_readable_entry, workflow_name), self._send("ZRANGE", self._key("order", workflow_name), 0, -1)
        )
        return [entry[2] for entry in entries if entry is not None]

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        """See `StorageBackend`."""
        wanted = list(ids)
        found = self._send("HMGET", self._key("parts", workflow_name), *wanted) if wanted else []
        return {name: _decode_or_empty(text) for name, text in zip(wanted, found, strict=True) if text is not None}

    def chains(self, prefix: str = "") -> list[str]:
        """See `StorageBackend`."""
        begins = _encode(prefix)  # a byte 255 comes after all text
        names = self._send("ZRANGEBYLEX", self._root + b"chains", b"[" + begins, b"(" + begins + b"\xff")
        return list(map(_decode, names))

    def close(self) -> None:
        """See `StorageBackend`. A client that was passed in stays open."""
        if self._is_own:  # its next command connects again
            self._client.connection_pool.disconnect()  # type: ignore[attr-defined]  # all that are made here have one

    def _key(self, kind: str, workflow_name: str) -> bytes:
        return self._root + _encode(f"{kind}:{workflow_name}")

    def _run(self, script: scripts.Script, *arguments: str | bytes) -> Any:
        """Run a script by its name, and send its text only if the server does not know it."""
        values = (1, self._root, *arguments)
        try:
            return self._send("EVALSHA", script.sha, *values)
        except self._errors.NoScriptError:
            return self._send("EVAL", script.text, *values)

    def _send(self, command: str, *arguments: str | bytes | int) -> Any:
        """Send texts as they are, and receive bytes, also from a client that decodes."""
        sent = [_encode(each) if isinstance(each, str) else each for each in arguments]
        try:
            return self._client.execute_command(command, *sent, NEVER_DECODE=True)
        except self._errors.ResponseError as error:
            if not any(sign in str(error) for sign in _FOREIGN):
                raise
            reason = str(error).partition(" script: ")[0]
            message = (
                f"Redis has a key with the prefix {self._prefix!r} that is damaged or not ours: {reason}. "
                "Expected keys that only agentbench writes. Remove the wrong key, or use another prefix."
            )
            raise WorkflowCheckpointException(message, error) from error


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _decode_or_empty(data: bytes | None) -> str:
    """Return a text, or an empty one if it is missing or damaged, which its reader rejects."""
    try:
        return _decode(data or b"")
    except UnicodeDecodeError:
        return ""


def _generation_text(generation: int) -> str:
    return f"{generation >> 64:016x}:{generation & (1 << 64) - 1}"


def _sortable(seq: int) -> str:
    """Return a number of any size as text that sorts like the numbers."""
    digits = f"{seq:x}"
    return f"{len(digits):04x}{digits}"


def _without_nul(text: str) -> str:
    """Return a text without NUL that sorts like the original."""
    return text.replace("\1", "\1\2").replace("\0", "\1\1")


def _with_nul(text: str) -> str:
    return text.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in text else text


def _run_line(run_id: str | None) -> str:
    return json.dumps(run_id) + "\n"


@lru_cache(maxsize=64)  # the checkpoints of a list are of few runs
def _run_of(line: str) -> Any:
    return json.loads(line)


def _read_entry(chain: str, entry: bytes) -> _Entry:
    try:
        text = _decode(entry)
        end = 4 + int(text[:4], 16)
        timestamp, _, rest = text[end:].partition("\0")
        return int(text[4:end], 16), _with_nul(timestamp), rest[16:]
    except ValueError as error:
        message = (
            f"In Redis, the order of chain {chain!r} contains {entry!r}, which is damaged or belongs to another "
            "program. Expected entries that only agentbench writes. Remove it (ZREM)."
        )
        raise WorkflowCheckpointException(message, error) from error


def _readable_entry(chain: str, entry: bytes) -> _Entry | None:
    try:
        return _read_entry(chain, entry)
    except WorkflowCheckpointException as error:
        _log.warning("Left out of a list: %s", error)
        return None


def _whole(found: Sequence[Any] | None) -> CheckpointRecord | None:
    if found is None:
        return None
    chain = _decode(found[0])
    return _record(chain, _read_entry(chain, found[1]), found[2], found[3])


def _record(chain: str, entry: _Entry, head: bytes | None, content: bytes | None = None) -> CheckpointRecord:
    """Build a record. Missing or invalid text makes head or content empty, which marks the record as damaged."""
    seq, timestamp, checkpoint_id = entry
    run_line, _, text = _decode_or_empty(head).partition("\n")
    try:
        run_id = _run_of(run_line)
    except ValueError:
        run_id, text = None, ""
    return CheckpointRecord(checkpoint_id, chain, seq, timestamp, run_id, text, _decode_or_empty(content))
