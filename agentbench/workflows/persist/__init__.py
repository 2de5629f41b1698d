"""Converts between a run's state and checkpoints."""
