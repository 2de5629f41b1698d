"""Runs and checkpoint chains as pandas data frames. pandas is loaded when the first frame is built."""

from typing import TYPE_CHECKING, Any

from agentbench.notebook.checkpoint_frames import checkpoints_frame, lineage_frame, messages_frame
from agentbench.notebook.event_frames import events_frame, timeline_frame
from agentbench.notebook.frame_sources import Since
from agentbench.notebook.run_frames import requests_frame, runs_frame
from agentbench.notebook.state_frames import state_frame
from agentbench.notebook.usage_frames import Prices, usage_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Frames",
    "checkpoints_frame",
    "events_frame",
    "lineage_frame",
    "messages_frame",
    "requests_frame",
    "runs_frame",
    "state_frame",
    "timeline_frame",
    "usage_frame",
]


class Frames:
    """All frames of one source, each built anew when it is asked for.

    Args:
        source: A storage, a run, a result, or a list of those. A run that saves checkpoints is a source for all frames.

    Example:
        ```python
        frames = Frames(run)
        frames.timeline()
        frames.state(wide=True)
        ```
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    def checkpoints(self, *, since: Since | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Checkpoints; see `checkpoints_frame`."""
        return checkpoints_frame(self.source, since=since, limit=limit)

    def messages(self, *, since: Since | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Messages that waited in checkpoints; see `messages_frame`."""
        return messages_frame(self.source, since=since, limit=limit)

    def state(
        self, *, wide: bool = False, internal: bool = False, since: Since | None = None, limit: int | None = None
    ) -> "pd.DataFrame":
        """Changes of the shared state, or the whole of it; see `state_frame`."""
        return state_frame(self.source, wide=wide, internal=internal, since=since, limit=limit)

    def events(self, *, since: Since | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Events; see `events_frame`."""
        return events_frame(self.source, since=since, limit=limit)

    def timeline(self, *, since: Since | None = None, limit: int | None = None) -> "pd.DataFrame":
        """What each executor did in each superstep; see `timeline_frame`."""
        return timeline_frame(self.source, since=since, limit=limit)

    def usage(
        self, *, prices: Prices | None = None, since: Since | None = None, limit: int | None = None
    ) -> "pd.DataFrame":
        """Calls of models; see `usage_frame`."""
        return usage_frame(self.source, prices=prices, since=since, limit=limit)

    def requests(self, *, since: Since | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Requests to people; see `requests_frame`."""
        return requests_frame(self.source, since=since, limit=limit)

    def runs(
        self, *, prices: Prices | None = None, since: Since | None = None, limit: int | None = None
    ) -> "pd.DataFrame":
        """Runs; see `runs_frame`."""
        return runs_frame(self.source, prices=prices, since=since, limit=limit)

    def lineage(self, *, since: Since | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Which checkpoint followed which; see `lineage_frame`."""
        return lineage_frame(self.source, since=since, limit=limit)

    def __repr__(self) -> str:
        return f"Frames({type(self.source).__name__})"
