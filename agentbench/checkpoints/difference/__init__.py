"""Compares two values and lists the changes between them."""
