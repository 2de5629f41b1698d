"""Constants, commands and interrupts."""

from agentbench.stategraph.command import Command, Send
from agentbench.stategraph.interrupts import GraphInterrupt, Interrupt, interrupt, pending_interrupt
from agentbench.stategraph.results import ResponseGranularity
from agentbench.stategraph.state import END, START

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
