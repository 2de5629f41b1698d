"""Runs and checkpoint chains as data frames."""
