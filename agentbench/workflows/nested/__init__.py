"""Workflows inside workflows."""
