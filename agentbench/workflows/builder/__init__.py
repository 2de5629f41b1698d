"""Declaring graphs."""
