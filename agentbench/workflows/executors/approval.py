"""The answer to a request for approval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Approval:
    """A person's yes or no.

    Give it as the response type of `ctx.request_info` to have the question shown with Approve and Reject.

    Attributes:
        approved: Whether what was asked about may happen. An `Approval` is true in conditions exactly when it is.
        reason: Why, in the person's words.
        edited: What to use in place of the proposal, if the person changed it; `None` leaves it as it was.
    """

    approved: bool
    reason: str = ""
    edited: object = None

    def __bool__(self) -> bool:
        return self.approved
