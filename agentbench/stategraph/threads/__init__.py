"""Threads of state graphs in a storage: calls on them, their snapshots and history, edits and forks."""
