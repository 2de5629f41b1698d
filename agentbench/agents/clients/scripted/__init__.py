"""Clients that answer offline from a script, or echo what they read."""
