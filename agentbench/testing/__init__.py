"""For the tests of people who build on agentbench: suites that their own parts must pass. Loads no test framework.

Every name is found when it is first touched.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbench.testing import storage_suite as storage_suite
    from agentbench.testing.storage_suite import StorageCheck as StorageCheck

__all__ = ["StorageCheck", "storage_suite"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    suite = import_module(f"{__name__}.storage_suite")
    return suite if name == "storage_suite" else getattr(suite, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
