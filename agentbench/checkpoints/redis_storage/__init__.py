"""Checkpoints in the keys of a Redis server."""
