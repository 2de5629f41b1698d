"""Constants, commands and interrupts."""

from agentbench.stategraph import (
    END,
    START,
    Command,
    GraphInterrupt,
    Interrupt,
    ResponseGranularity,
    Send,
    interrupt,
    pending_interrupt,
)

__all__ = [
    "END",
    "START",
    "Command",
    "GraphInterrupt",
    "Interrupt",
    "ResponseGranularity",
    "Send",
    "interrupt",
    "pending_interrupt",
]
