"""Who does the work: executors, their handlers, what a handler may do, messages and shared state."""
