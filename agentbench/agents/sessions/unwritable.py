"""Where something in a session's state is, and why it cannot be written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentbench._secrets import is_secret_class


class UnwritableError(Exception):
    """On the way from a value to the top of the state; each container adds where it holds it.

    Attributes:
        reason: What is wrong and how to mend it.
        steps: Keys and positions that lead to it, innermost first.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[Any] = []

    @classmethod
    def of(cls, kind: type, part: str = "") -> UnwritableError:
        """Of a value whose class has no form to be stored in.

        Args:
            kind: The class.
            part: Which part of the value it is; by default the value itself.
        """
        it = f"Its part {part}" if part else "It"
        if is_secret_class(kind):
            return cls(f"{it} is a secret ({kind.__qualname__}). Keep secrets in the environment, not in a session.")
        return cls(
            f"{it} is of type {kind.__module__}.{kind.__qualname__}, which has no stored form. Keep plain values "
            "there, make it a dataclass or a pydantic model at the top level of a module, give it to_dict() and "
            "from_dict(), or give its class to register_state_type()."
        )


def place(steps: Iterable[Any]) -> str:
    """Say where something is: `session.state['notes'][0]`.

    Args:
        steps: The name of what it is in, then keys and positions.
    """
    root, *inner = steps
    return f"{root}" + "".join(f"[{step!r}]" for step in inner)
