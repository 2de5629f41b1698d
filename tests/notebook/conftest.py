"""Settings and the choice of a renderer belong to the process: each test finds and leaves them as they were."""

from collections.abc import Iterator

import pytest

from agentbench._clock import CountingIds, TickingClock, set_runtime_defaults
from agentbench.notebook.graph import renderers
from agentbench.notebook.runtime import settings


@pytest.fixture(autouse=True)
def own_settings() -> Iterator[None]:
    # A patcher of its own: what a test patches is put back before this ends.
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AGENTBENCH_RENDERER", raising=False)
        patch.setattr(settings, "_current", settings.Settings())
        forget_renderers()
        yield
        forget_renderers()


def forget_renderers() -> None:
    for cached in (renderers.automatic, renderers._look_for, renderers.run_program):
        cached.cache_clear()


@pytest.fixture
def ticking() -> Iterator[None]:
    """A clock that counts."""
    before = set_runtime_defaults(clock=TickingClock())
    yield
    set_runtime_defaults(clock=before.clock)


@pytest.fixture
def counted(ticking: None) -> Iterator[None]:
    """A clock and ids that count."""
    before = set_runtime_defaults(ids=CountingIds())
    yield
    set_runtime_defaults(ids=before.ids)
