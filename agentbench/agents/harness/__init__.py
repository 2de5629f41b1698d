"""Context providers for long tasks: a task list, modes, background agents, and a persistent memory."""
