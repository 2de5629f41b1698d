"""Offline clients that answer from a script or echo their input."""
