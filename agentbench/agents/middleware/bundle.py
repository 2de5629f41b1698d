"""A group of middleware that is installed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from agentbench.agents.middleware.contexts import MiddlewareTypes
from agentbench.agents.middleware.sorting import flat_middleware


class MiddlewareBundle(Sequence[MiddlewareTypes]):
    """Middleware of any kinds that belongs together, to be passed as one wherever middleware is accepted.

    It is a sequence: its members take its place in the order, where each wraps the calls of its kind.

    Args:
        *middleware: The members, outermost first; they may be bundles or lists themselves.

    Example:
        class Timed(MiddlewareBundle):
            def __init__(self):
                super().__init__(chat_middleware(self.around), function_middleware(self.around))
                self.seconds = 0.0

            async def around(self, context, call_next):
                begin = time.monotonic()
                await call_next()
                self.seconds += time.monotonic() - begin
    """

    def __init__(self, *middleware: MiddlewareTypes | Sequence[MiddlewareTypes]) -> None:
        self._ab_members: tuple[MiddlewareTypes, ...] = tuple(flat_middleware(middleware))

    @overload
    def __getitem__(self, index: int) -> MiddlewareTypes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MiddlewareTypes]: ...
    def __getitem__(self, index: Any) -> Any:
        """Return a member, or a tuple of several."""
        return self._ab_members[index]

    def __len__(self) -> int:
        return len(self._ab_members)

    def __repr__(self) -> str:
        names = (getattr(each, "__name__", type(each).__name__) for each in self)
        return f"{type(self).__name__}({', '.join(names)})"
