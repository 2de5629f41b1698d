"""Checks of a checkpoint storage, for tests of your own backend.

Each check is called with a function that returns a new, empty storage. It raises an `AssertionError` that describes the
problem, and returns `False` if the storage does not have the optional capability that the check needs.

Example:
    With pytest::

        @pytest.mark.parametrize("check", storage_suite.checks(), ids=str)
        def test_my_storage(check):
            if not asyncio.run(check(MyStorage)):
                pytest.skip(f"MyStorage has no {check.capability.__name__}")

    Without pytest::

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
    SupportsSaveAll,
)
from agentbench.testing import storage_basics, storage_capabilities
from agentbench.testing.expectations import expect

MakeStorage: TypeAlias = Callable[[], "CheckpointStorage | Awaitable[CheckpointStorage]"]


@dataclass(frozen=True)
class StorageCheck:
    """One check of a storage, which may need an optional `capability`. The module docstring shows how to run checks.

    Example:
        from agentbench.testing import storage_suite

        print([check.name for check in storage_suite.checks()])
    """

    function: Callable[[CheckpointStorage], Awaitable[None]]
    capability: type | None = None

    @property
    def name(self) -> str:
        """The name of the check: a sentence with underscores."""
        return self.function.__name__

    def __str__(self) -> str:
        return self.name

    async def __call__(self, make_storage: MakeStorage) -> bool:
        """Check the new, empty storage that a function returns. Return `False` if the storage lacks the capability.

        Raises:
            AssertionError: The check failed; the text describes the problem.
        """
        returned = make_storage()
        storage = await returned if inspect.isawaitable(returned) else returned
        missing = [name for name in _METHODS if not callable(getattr(storage, name, None))]
        expect(not missing, f"{type(storage).__name__} is not a CheckpointStorage: it lacks {', '.join(missing)}.")
        if self.capability is not None and not isinstance(storage, self.capability):
            return False
        await self.function(storage)
        return True


def checks() -> list[StorageCheck]:
    """Return all checks. Those that every storage must pass come first."""
    return [
        *(StorageCheck(function) for function in storage_basics.CHECKS),
        *(StorageCheck(function, SupportsCheckpointInfos) for function in storage_capabilities.INFO_CHECKS),
        *(StorageCheck(function, SupportsChainNames) for function in storage_capabilities.NAME_CHECKS),
        *(StorageCheck(function, SupportsHeadCheck) for function in storage_capabilities.HEAD_CHECKS),
        *(StorageCheck(function, SupportsPrune) for function in storage_capabilities.PRUNE_CHECKS),
        *(StorageCheck(function, SupportsSaveAll) for function in storage_capabilities.SAVE_ALL_CHECKS),
    ]


_METHODS = ("save", "load", "list_checkpoints", "list_checkpoint_ids", "delete", "get_latest")
