"""What every checkpoint storage must do, to be run on a backend of your own.

Each check is called with a function that returns a new, empty storage. It raises an `AssertionError` that says what was
wrong, and returns `False` where the storage lacks the optional capability that the check is about.

Example:
    With pytest::

        @pytest.mark.parametrize("check", storage_suite.checks(), ids=str)
        def test_my_storage(check):
            if not asyncio.run(check(MyStorage)):
                pytest.skip(f"MyStorage has no {check.capability.__name__}")

    and without it::

        for check in storage_suite.checks():
            await check(MyStorage)
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from agentbench.checkpoints.storage import (
    CheckpointStorage,
    SupportsChainNames,
    SupportsCheckpointInfos,
    SupportsHeadCheck,
    SupportsPrune,
)
from agentbench.testing import storage_basics, storage_capabilities
from agentbench.testing.expectations import expect

MakeStorage: TypeAlias = Callable[[], "CheckpointStorage | Awaitable[CheckpointStorage]"]


@dataclass(frozen=True)
class StorageCheck:
    """One thing that a storage must do, or one with an optional `capability`; an example is in the module.

    Example:
        from agentbench.testing import storage_suite

        print([check.name for check in storage_suite.checks()])
    """

    function: Callable[[CheckpointStorage], Awaitable[None]]
    capability: type | None = None

    @property
    def name(self) -> str:
        """The name of the check, a sentence with underscores."""
        return self.function.__name__

    def __str__(self) -> str:
        return self.name

    async def __call__(self, make_storage: MakeStorage) -> bool:
        """Check a new, empty storage that a function returns; `False` if the storage lacks the capability.

        Raises:
            AssertionError: The storage does not do it; the text says what it did instead.
        """
        made = make_storage()
        storage = await made if inspect.isawaitable(made) else made
        missing = [name for name in _METHODS if not callable(getattr(storage, name, None))]
        expect(not missing, f"{type(storage).__name__} is no CheckpointStorage: it has no {', '.join(missing)}.")
        if self.capability is not None and not isinstance(storage, self.capability):
            return False
        await self.function(storage)
        return True


def checks() -> list[StorageCheck]:
    """Return all checks, those that every storage must pass first."""
    return [
        *(StorageCheck(function) for function in storage_basics.CHECKS),
        *(StorageCheck(function, SupportsCheckpointInfos) for function in storage_capabilities.INFO_CHECKS),
        *(StorageCheck(function, SupportsChainNames) for function in storage_capabilities.NAME_CHECKS),
        *(StorageCheck(function, SupportsHeadCheck) for function in storage_capabilities.HEAD_CHECKS),
        *(StorageCheck(function, SupportsPrune) for function in storage_capabilities.PRUNE_CHECKS),
    ]


_METHODS = ("save", "load", "list_checkpoints", "list_checkpoint_ids", "delete", "get_latest")
