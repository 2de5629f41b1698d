"""Runs as pictures: timeline, lineage, usage, comparison and difference."""
