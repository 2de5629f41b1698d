"""Goes on from every checkpoint in a folder, in a process of its own: `python -m ...resume FOLDER`, prints JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from agentbench import FileCheckpointStorage
from agentbench.checkpoints import list_infos
from tests.orchestrations.patterns.teams import PATTERNS, texts


async def main(folder: str) -> None:
    found: dict[str, list[str]] = {}
    for name, make in PATTERNS.items():
        for info in await list_infos(FileCheckpointStorage(f"{folder}/{name}"), workflow_name=name):
            storage = FileCheckpointStorage(f"{folder}/{name}")
            result = await make(name=name).build().run(checkpoint_id=info, checkpoint_storage=storage)
            found.setdefault(name, []).append(texts(result.outputs))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
