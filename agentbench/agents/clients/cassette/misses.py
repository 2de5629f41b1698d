"""What is said of a request that no recorded call answers: pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from agentbench.agents.clients.cassette.nearest import Nearest
from agentbench.agents.clients.cassette.redaction import Redaction
from agentbench.agents.clients.cassette.secrets import mask_secrets
from agentbench.exceptions import CassetteMissError

__all__ = ["Why", "missed"]

Why = Literal["replay", "no client", "offline"]

_AGAIN: dict[Why, str] = {
    "replay": (
        "To record it, give a client and mode='auto', which adds what is missing, or mode='record', which starts the "
        "file anew."
    ),
    "no client": (
        "To record it, give a client, or a function that makes one: CassetteChatClient(path, client). mode='record' "
        "starts the file anew."
    ),
    "offline": (
        "To record it, unset AGENTBENCH_OFFLINE, since recording needs the network. mode='record' starts the file anew."
    ),
}


def missed(
    *,
    path: str,
    request: dict[str, Any],
    nearest: Nearest | None,
    equal: int,
    why: Why,
    secrets: Collection[str],
) -> CassetteMissError:
    """Make the error: file, nearest recorded call, first difference, how to record again.

    Args:
        path: The file.
        request: What was asked, in the form that is compared.
        nearest: The recorded call that is most like it, `None` if the file holds no calls.
        equal: How many recorded calls have this very request, and were all served.
        why: Why it is not recorded now.
        secrets: Text that must not be shown.
    """
    messages = len(request.get("messages") or ())
    lines = [f"No recorded answer in {path} to a request of {messages} message{'' if messages == 1 else 's'}."]
    difference: str | None = None
    if equal:
        times = "once" if equal == 1 else f"{equal} times"
        lines.append(f"It was recorded {times}, and served as often; on_repeat='last' would serve it again.")
    elif nearest is None:
        lines.append("The file holds no calls.")
    else:
        difference = str(nearest.difference) if nearest.difference else None
        lines.append(f"Nearest is call {nearest.call.number} in line {nearest.call.line}.")
        if difference is not None:
            lines.append(f"First difference: {difference}")
    lines.append(_AGAIN[why])
    return CassetteMissError(
        mask_secrets("\n".join(lines), secrets),
        path=path,
        request=Redaction(secrets).value(request),
        nearest=None if nearest is None else nearest.call,
        difference=None if difference is None else mask_secrets(difference, secrets),
    )
