"""Executors, their handlers and contexts, messages, and shared state."""
