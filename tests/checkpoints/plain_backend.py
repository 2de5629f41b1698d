"""The least that a backend can be: dictionaries. What tests of everything above backends keep checkpoints in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.checkpoints.parts.content_storage import ContentAddressedStorage
from agentbench.checkpoints.parts.joining import live_parts
from agentbench.checkpoints.storage import require_head
from agentbench.exceptions import CheckpointNotFoundError


class PlainBackend:
    is_local = False

    def __init__(self) -> None:
        self.records: dict[str, CheckpointRecord] = {}
        self.parts_of: dict[str, dict[str, str]] = {}
        self.generations: dict[str, int] = {}
        self.puts: list[tuple[CheckpointRecord, dict[str, str]]] = []
        self.fetches: list[set[str]] = []

    def generation(self, workflow_name: str) -> int:
        return self.generations.get(workflow_name, 0)

    def put(
        self,
        record: CheckpointRecord,
        parts: Mapping[str, str],
        *,
        generation: int,
        expected_seq: int | None = None,
        patient: bool = True,
    ) -> None:
        chain = record.workflow_name
        if generation != self.generation(chain):
            raise StalePartsError
        if expected_seq is not None:
            last = self.latest(chain)
            require_head(chain, last.seq if last else 0, expected_seq)
        self.puts.append((record, dict(parts)))
        self.parts_of.setdefault(chain, {}).update(parts)
        self.records.pop(record.checkpoint_id, None)
        self.records[record.checkpoint_id] = record

    def put_chain(self, records: Sequence[CheckpointRecord], parts: Mapping[str, str], *, generation: int) -> None:
        chain = records[0].workflow_name
        if generation != self.generation(chain):
            raise StalePartsError
        last = self.latest(chain)
        require_head(chain, last.seq if last else 0, 0)
        if known := [record.checkpoint_id for record in records if record.checkpoint_id in self.records]:
            raise ValueError(known)
        self.parts_of.setdefault(chain, {}).update(parts)
        self.records.update({record.checkpoint_id: record for record in records})

    def get(self, checkpoint_id: str) -> CheckpointRecord | None:
        return self.records.get(checkpoint_id)

    def latest(self, workflow_name: str) -> CheckpointRecord | None:
        chain = self._chain(workflow_name)
        return chain[-1] if chain else None

    def heads(
        self, workflow_name: str, *, run_id: str | None = None, before: str | None = None, limit: int | None = None
    ) -> list[CheckpointRecord]:
        found = self._chain(workflow_name)
        if before is not None:
            ids = [record.checkpoint_id for record in found]
            if before not in ids:
                raise CheckpointNotFoundError(before)
            found = found[: ids.index(before)]
        found = [replace(each, content="") for each in found if run_id is None or each.run_id == run_id]
        return found if limit is None else found[max(0, len(found) - limit) :]

    def outlines(self, workflow_name: str) -> list[CheckpointRecord]:
        return self.heads(workflow_name)

    def ids(self, workflow_name: str) -> list[str]:
        return [record.checkpoint_id for record in self._chain(workflow_name)]

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        self.fetches.append(set(ids))
        kept = self.parts_of.get(workflow_name, {})
        return {name: kept[name] for name in ids if name in kept}

    def chains(self, prefix: str = "") -> list[str]:
        return sorted({r.workflow_name for r in self.records.values() if r.workflow_name.startswith(prefix)})

    def delete(self, workflow_name: str, ids: Sequence[str], *, sweep: bool) -> int:
        gone = [i for i in ids if i in self.records and self.records[i].workflow_name == workflow_name]
        for each in gone:
            del self.records[each]
        if sweep:
            live = live_parts((r.content for r in self._chain(workflow_name)), lambda n: self.parts(workflow_name, n))
            kept = self.parts_of.get(workflow_name, {})
            self.parts_of[workflow_name] = {name: text for name, text in kept.items() if name in live}
            self.generations[workflow_name] = self.generation(workflow_name) + 1
        return len(gone)

    def close(self) -> None:
        pass

    def _chain(self, workflow_name: str) -> list[CheckpointRecord]:
        found = [record for record in self.records.values() if record.workflow_name == workflow_name]
        return sorted(found, key=lambda record: (record.seq, record.timestamp))


class PlainStorage(ContentAddressedStorage):
    def __init__(self, backend: PlainBackend | None = None, *, keep_last: int | None = None) -> None:
        self.backend = backend or PlainBackend()
        super().__init__(self.backend, keep_last=keep_last)

    def __repr__(self) -> str:
        return "PlainStorage()"
