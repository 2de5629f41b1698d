"""Workflows that are Python functions."""
