"""Workflows written cell by cell."""
