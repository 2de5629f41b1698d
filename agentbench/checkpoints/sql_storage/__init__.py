"""Checkpoints in the tables of a database."""
