"""Runs as progress bars."""
